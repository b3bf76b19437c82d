//! The elementary functions of generated code, measured against wider arithmetic.
//!
//! Each is applied to all special values, to numbers of every exponent and to points near its hard spots, in f64 and
//! f32, with the vectors of this machine and with those that every machine of its kind has. The error is in ulp: the
//! distance between the two numbers of the type around the exact value. The exact value in f64 comes from libquadmath
//! or, where there is none, from an 80-bit long double; in f32 from `gradix::scalar`.

use gradix::emit::c::library;
use gradix::program::op::{BinaryOp, UnaryOp};
use gradix::scalar::{lgamma, log1p};
use std::f64::consts::PI;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Random points per function, besides the fixed ones.
const RANDOM: usize = 50_000;

#[test]
fn every_function_is_within_two_ulp() {
    let Some(setup) = Setup::new() else {
        eprintln!("no C compiler: the elementary functions are not tested");
        return;
    };
    let functions = functions();
    let (next, rows) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some(function) = functions.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let row = setup.measure(function);
                    rows.lock().unwrap().push(row);
                }
            });
        }
    });
    let mut rows = rows.into_inner().unwrap();
    rows.sort_by_key(|row| row.name);
    println!("{:10}{}", "", setup.builds.iter().map(|build| format!("{:>16}", build.title())).collect::<String>());
    rows.iter().for_each(|row| println!("{}", row.line()));
    std::fs::remove_dir_all(&setup.directory).unwrap();
    let wrong: Vec<String> = rows.iter().flat_map(|row| row.wrong(setup.limit)).collect();
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

/// How far a result may be from the exact value, besides the limit in ulp: near the roots of `digamma` and those of
/// `lgamma` on the negative side, where larger terms cancel, half an ulp of the larger term, or of 1.
fn allowance(name: &str, x: f64, epsilon: f64) -> f64 {
    match name {
        "digamma" => epsilon / 2.0 * log1p(x.abs()).max(1.0),
        "lgamma" if x < 0.0 => epsilon / 2.0 * lgamma(x.abs()).abs().max(1.0),
        _ => 0.0,
    }
}

struct Function {
    name: &'static str,
    value: Value,
}

#[derive(Clone, Copy)]
enum Value {
    One(UnaryOp),
    Two(BinaryOp),
}

impl Value {
    fn apply(self, x: f64, y: f64) -> f64 {
        match self {
            Value::One(op) => op.apply(x),
            Value::Two(op) => op.apply(x, y),
        }
    }
}

fn functions() -> Vec<Function> {
    // These two are no calls.
    let unary = UnaryOp::ALL.iter().filter(|op| !matches!(op, UnaryOp::Neg | UnaryOp::Stop));
    let unary = unary.map(|op| Function { name: op.name(), value: Value::One(*op) });
    unary.chain(BinaryOp::FUNCTIONS.iter().map(|(name, op)| Function { name, value: Value::Two(*op) })).collect()
}

// The programs.

struct Setup {
    directory: PathBuf,
    builds: Vec<Build>,
    /// The program for exact values in f64, and the limit in ulp for the functions.
    reference: Option<PathBuf>,
    limit: f64,
}

struct Build {
    double: bool,
    native: bool,
    program: PathBuf,
}

impl Build {
    fn title(&self) -> String {
        format!("{}{}", if self.double { "f64" } else { "f32" }, if self.native { " native" } else { "" })
    }
}

impl Setup {
    fn new() -> Option<Setup> {
        Command::new("cc").arg("--version").output().ok()?;
        let directory = std::env::temp_dir().join(format!("gradix-elementary-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let kinds = [(true, true), (true, false), (false, true), (false, false)];
        let builds = std::thread::scope(|scope| {
            let here = &directory;
            let running = kinds.map(|(double, native)| scope.spawn(move || build(here, double, native)));
            running.map(|build| build.join().unwrap()).into()
        });
        let reference = reference(&directory);
        let limit = if reference.is_some() { 2.0 } else { 3.0 };
        Some(Setup { directory, builds, reference, limit })
    }

    fn measure(&self, function: &Function) -> Row {
        let errors = self.builds.iter().map(|build| self.measure_build(function, build)).collect();
        Row { name: function.name, errors }
    }
}

fn build(directory: &Path, double: bool, native: bool) -> Build {
    let (mut unary, mut binary) = (String::new(), String::new());
    for function in functions() {
        let list = if matches!(function.value, Value::One(_)) { &mut unary } else { &mut binary };
        list.push_str(&format!(" F({})", function.name));
    }
    let names: Vec<&str> = functions().iter().map(|function| function.name).collect();
    let text = format!(
        "#define GX_{}\n{}\n#define UNARY(F){unary}\n#define BINARY(F){binary}\n{}",
        if double { "F64" } else { "F32" },
        library::functions(names),
        include_str!("elementary/run.c"),
    );
    let name = format!("run_{double}_{native}");
    let mut flags = vec!["-Wall", "-Wextra", "-Werror", "-ffp-contract=fast"];
    flags.extend(native.then_some("-march=native"));
    let program = compile(directory, &name, &text, &flags, &["-lm"]);
    Build { double, native, program: program.expect("the elementary functions compile without warnings") }
}

fn reference(directory: &Path) -> Option<PathBuf> {
    let text = include_str!("elementary/reference.c");
    let quad = compile(directory, "reference", text, &["-DQUAD"], &["-lquadmath", "-lm"]);
    quad.or_else(|_| compile(directory, "reference", text, &[], &["-lm"])).ok()
}

fn compile(directory: &Path, name: &str, text: &str, flags: &[&str], libraries: &[&str]) -> Result<PathBuf, String> {
    let (program, file) = (directory.join(name), directory.join(format!("{name}.c")));
    std::fs::write(&file, text).unwrap();
    let mut command = Command::new("cc");
    command.args(["-std=c11", "-O2"]).args(flags).arg(&file).arg("-o").arg(&program).args(libraries);
    let output = command.output().unwrap();
    if output.status.success() { Ok(program) } else { Err(String::from_utf8_lossy(&output.stderr).into_owned()) }
}

// The measurement.

struct Row {
    name: &'static str,
    /// The largest error of each build.
    errors: Vec<Largest>,
}

/// The largest error in ulp, and where it is.
struct Largest {
    error: f64,
    place: String,
}

impl Row {
    fn line(&self) -> String {
        let errors: String = self.errors.iter().map(|largest| format!("{:16.3}", largest.error)).collect();
        format!("{:10}{errors}", self.name)
    }

    fn wrong(&self, limit: f64) -> Vec<String> {
        let wrong = self.errors.iter().filter(|largest| largest.error > limit);
        wrong.map(|largest| format!("{}: {} ulp at {}", self.name, largest.error, largest.place)).collect()
    }
}

impl Setup {
    fn measure_build(&self, function: &Function, build: &Build) -> Largest {
        let name = function.name;
        let [input, output] = ["in", "out"].map(|end| self.directory.join(format!("{name}_{}.{end}", build.title())));
        let points = points(function.value, build.double);
        write(&input, &points, build.double);
        run(&build.program, name, &input, &output);
        let found = read(&output, build.double);
        let exact = self.exact(function, &points, build.double, &input);
        let count = found.len();
        let mut largest = Largest { error: 0.0, place: String::new() };
        for (i, (found, exact)) in found.into_iter().zip(exact).enumerate() {
            let (x, y) = (points[i], points[(count + i) % points.len()]);
            let epsilon = if build.double { f64::EPSILON } else { f32::EPSILON.into() };
            let error = error(found, exact, allowance(name, x, epsilon), build.double);
            if error.is_nan() || error > largest.error {
                let place = format!("({x:?}, {y:?}): found {found:?}, exact {:?} ({})", exact.0, build.title());
                largest = Largest { error, place };
            }
        }
        largest
    }

    /// The exact values, each as a sum of two.
    fn exact(&self, function: &Function, points: &[f64], double: bool, input: &Path) -> Vec<(f64, f64)> {
        if let (true, Some(reference)) = (double, &self.reference) {
            let output = self.directory.join(format!("{}.exact", function.name));
            if !output.exists() {
                run(reference, function.name, input, &output);
            }
            return read(&output, true).chunks(2).map(|pair| (pair[0], pair[1])).collect();
        }
        let count = if matches!(function.value, Value::One(_)) { points.len() } else { points.len() / 2 };
        let second = |i: usize| points[(count + i) % points.len()];
        (0..count).map(|i| (function.value.apply(points[i], second(i)), 0.0)).collect()
    }
}

/// The distance in ulp; infinite where one value is NaN, infinite or a zero of one sign, and the other is not.
fn error(found: f64, (exact, rest): (f64, f64), allowance: f64, double: bool) -> f64 {
    let (largest, lowest, digits) = if double { (f64::MAX, -1022, 52) } else { (f32::MAX.into(), -126, 23) };
    let same_sign = found.is_sign_negative() == exact.is_sign_negative();
    let same_or_infinite = |same: bool| if same { 0.0 } else { f64::INFINITY };
    if found.is_nan() || exact.is_nan() {
        return same_or_infinite(found.is_nan() && exact.is_nan());
    }
    if found == 0.0 && exact == 0.0 && rest == 0.0 {
        return same_or_infinite(same_sign);
    }
    let beyond = |value: f64| value.abs() > largest;
    if beyond(found) && beyond(exact) {
        return same_or_infinite(same_sign);
    }
    if beyond(found) || beyond(exact) {
        // Within an ulp of the largest number, overflow may come early or late.
        let near = largest * if double { 1.0 - f64::EPSILON } else { 1.0 - f64::from(f32::EPSILON) };
        return if same_sign && found.abs() >= near && exact.abs() >= near { 1.0 } else { f64::INFINITY };
    }
    let exponent = (((exact.to_bits() >> 52) & 0x7ff) as i32 - 1023).max(lowest) - digits;
    let ulp = 2f64.powi(exponent / 2) * 2f64.powi(exponent - exponent / 2);
    (((found - exact) - rest).abs() - allowance).max(0.0) / ulp
}

fn run(program: &Path, name: &str, input: &Path, output: &Path) {
    let result = Command::new(program).arg(name).arg(input).arg(output).output().unwrap();
    assert!(result.status.success(), "{name}: {}", String::from_utf8_lossy(&result.stderr));
}

fn write(path: &Path, numbers: &[f64], double: bool) {
    let bytes: Vec<u8> = if double {
        numbers.iter().flat_map(|x| x.to_ne_bytes()).collect()
    } else {
        numbers.iter().flat_map(|x| (*x as f32).to_ne_bytes()).collect()
    };
    std::fs::write(path, bytes).unwrap();
}

fn read(path: &Path, double: bool) -> Vec<f64> {
    let bytes = std::fs::read(path).unwrap();
    if double {
        bytes.chunks(8).map(|b| f64::from_ne_bytes(b.try_into().unwrap())).collect()
    } else {
        bytes.chunks(4).map(|b| f32::from_ne_bytes(b.try_into().unwrap()).into()).collect()
    }
}

// The points.

/// The numbers of the first argument, then those of the second.
fn points(value: Value, double: bool) -> Vec<f64> {
    match value {
        Value::One(_) => {
            let mut points = special(double);
            let mut random = Random(1);
            points.extend((0..RANDOM).map(|i| random.point(i, double)));
            points
        }
        Value::Two(op) => pairs(op, double),
    }
}

/// Zeros, denormals, the ends of the range, infinities, NaN, and the neighbours of small multiples of 1/4, pi/8 and
/// of the powers of 2; all with both signs.
fn special(double: bool) -> Vec<f64> {
    let (tiny, normal, largest, powers) = match double {
        true => (f64::from_bits(1), f64::MIN_POSITIVE, f64::MAX, -1074..1024),
        false => (f32::from_bits(1).into(), f32::MIN_POSITIVE.into(), f32::MAX.into(), -149..128),
    };
    let mut points = vec![0.0, tiny, 2.0 * tiny, normal - tiny, normal, largest, f64::INFINITY, f64::NAN];
    points.extend([709.7827, 710.4758, 745.13, 88.7228, 89.4159, 103.972, 26.543, 27.226, 9.194, 10.054]);
    let quarters = (1..400).map(|n| f64::from(n) / 4.0);
    let angles = (1..600).map(|n| f64::from(n) * PI / 8.0);
    let far = (0..200).map(|n| (f64::from(n) * 0.12).exp().round() * PI / 2.0);
    let powers = powers.map(|n| 2f64.powi(n / 2) * 2f64.powi(n - n / 2));
    let centres: Vec<f64> = quarters.chain(angles).chain(far).chain(powers).chain([1e9, 1e12, 1e15]).collect();
    for x in centres {
        let step = |x: f64, n: i64| match double {
            true => f64::from_bits((x.to_bits() as i64 + n) as u64),
            false => f32::from_bits(((x as f32).to_bits() as i64 + n) as u32).into(),
        };
        points.extend([-3, -1, 0, 1, 3].map(|n| if x > 8.0 * tiny { step(x, n) } else { x }));
    }
    points.iter().flat_map(|x| [round_to(*x, double), round_to(-*x, double)]).collect()
}

fn pairs(op: BinaryOp, double: bool) -> Vec<f64> {
    let (tiny, largest) = if double { (f64::from_bits(1), f64::MAX) } else { (1e-45f32.into(), f32::MAX.into()) };
    let ordinary = [0.3, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 7.0, 1e10, 9007199254740991.0, 1e17];
    let extreme = [0.0, tiny, 1e-30, largest, f64::INFINITY, f64::NAN];
    let fixed = ordinary.iter().chain(&extreme).flat_map(|x| [*x, -*x]);
    let fixed: Vec<f64> = fixed.map(|x| round_to(x, double)).collect();
    let (mut first, mut second) = (Vec::new(), Vec::new());
    for x in &fixed {
        for y in &fixed {
            first.push(*x);
            second.push(*y);
        }
    }
    let mut random = Random(2);
    for i in 0..RANDOM {
        let (x, other) = (random.point(i / 8, double), random.point(i, double));
        let near = x * random.uniform(-4.0, 4.0);
        let y = match (op, i % 4) {
            // The result is anywhere in the range of the type, and a little beyond it.
            (BinaryOp::Pow, 0..=2) => {
                let range = if double { 1080.0 } else { 155.0 };
                let y = random.uniform(-range, range) / x.abs().log2();
                if x < 0.0 { y.round() } else { y }
            }
            (_, 0..=1) => near,
            _ => other,
        };
        first.push(x);
        second.push(round_to(y, double));
    }
    first.extend(second);
    first
}

fn round_to(x: f64, double: bool) -> f64 {
    if double { x } else { (x as f32).into() }
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn uniform(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A number of the kind `i`: any bits, any exponent of moderate size, or uniform in a range.
    fn point(&mut self, i: usize, double: bool) -> f64 {
        let bits = self.bits();
        let x = match i % 8 {
            0 if double => f64::from_bits(bits),
            0 => f32::from_bits(bits as u32).into(),
            1 => self.uniform(-1.0, 1.0) * 2f64.powi((bits % 64) as i32 - 40),
            2 => self.uniform(-1.0, 1.0),
            3 => self.uniform(0.0, 3.0),
            4 => self.uniform(-12.0, 12.0),
            5 => self.uniform(-30.0, 30.0),
            6 if double => self.uniform(-760.0, 720.0),
            6 => self.uniform(-110.0, 100.0),
            _ => self.uniform(-1000.0, 1000.0) * 2f64.powi((bits % 24) as i32),
        };
        round_to(x, double)
    }
}
