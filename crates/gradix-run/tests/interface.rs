//! Emitted files as programs in C and C++ use them: several in one program, called through their headers, beside the oracle.

use gradix::Int;
use gradix::domain::sizes::{Known, bind};
use gradix::emit::Real;
use gradix::emit::c::interface::Interface;
use gradix::nest::{Stage, Verified};
use gradix::program::{ParamKind, Program, TensorId};
use gradix_run::gradient::shape;
use gradix_run::{Array, Dtype, interp, random};
use std::collections::HashMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A file and what its program is to compute.
struct Subject {
    name: String,
    program: Program,
    nest: Verified,
    real: Real,
    sizes: Vec<Int>,
    inputs: Vec<(String, Array)>,
    expected: Vec<(String, Array)>,
}

/// Sizes by name.
type Sizes<'a> = &'a [(&'a str, i64)];

impl Subject {
    fn new(name: &str, text: &str, with_derivatives: bool, real: Real, given: Sizes) -> Subject {
        let ast = gradix::syntax::parse(text).unwrap();
        let mut resolved = gradix::resolve(&ast, &[]).unwrap();
        let given = given.iter().map(|(name, size)| (name.to_string(), Int::from(*size))).collect();
        let known = Known { given, shapes: Vec::new() };
        if with_derivatives {
            let options = gradix::derive::Options { with_results: true, ..Default::default() };
            resolved.program = gradix::derive(&resolved.program, &options).unwrap().program;
        }
        let program = resolved.program;
        let sizes = bind(&program, &known, &resolved.places).unwrap();
        let nest = gradix::compile(&program, &[], real, &gradix::target::AVX2).unwrap().nest;
        let rounded = |value: &f64| if real == Real::F32 { f64::from(*value as f32) } else { *value };
        let array = |id: TensorId| {
            let array = random::array(7, &program[id].name, shape(&program, &sizes, id).unwrap()).unwrap();
            (program[id].name.clone(), Array { data: array.data.iter().map(rounded).collect(), ..array })
        };
        let inputs: Vec<(String, Array)> = program.inputs().map(array).collect();
        let named: HashMap<String, Array> = inputs.iter().cloned().collect();
        let expected = interp(&program, &sizes, &named, Dtype::F64).unwrap().results;
        Subject { name: name.into(), program, nest, real, sizes, inputs, expected }
    }

    fn interface(&self) -> Interface<'_> {
        Interface { name: &self.name, program: &self.program, nest: &self.nest, real: self.real }
    }

    /// A function in the C that C++ shares: it runs everything at once, then item by item, and prints the results.
    fn caller(&self) -> String {
        let (name, number) = (&self.name, if self.real == Real::F64 { "double" } else { "float" });
        let mut text = format!("static void call_{name}(void)\n{{\n    {name}_sizes sizes;\n    {name}_inputs in;\n");
        let _ = writeln!(text, "    {name}_outputs out, again;\n    memset(&sizes, 0, sizeof sizes);");
        let params = self.program.params.iter().zip(&self.sizes).filter(|(param, _)| param.kind == ParamKind::Free);
        text.extend(params.map(|(param, size)| format!("    sizes.{} = {size};\n", member(&param.name))));
        for (input, array) in &self.inputs {
            let values: Vec<String> = array.data.iter().map(|value| format!("({number}){value:e}")).collect();
            let (own, values) = (member(input), if values.is_empty() { "0".into() } else { values.join(", ") });
            let _ = writeln!(text, "    static const {number} in_{own}[] = {{{values}}};\n    in.{own} = in_{own};");
        }
        for (output, array) in &self.expected {
            let (own, count) = (member(output), array.data.len().max(1));
            let _ = writeln!(text, "    static {number} out_{own}[{count}], again_{own}[{count}];");
            let _ = writeln!(text, "    out.{own} = out_{own};\n    again.{own} = again_{own};");
        }
        // Callers can't run the kernels of one that goes through steps: it is run again as a whole.
        let goes_through_steps = self.nest.stages.iter().any(|stage| matches!(stage, Stage::Time(_)));
        let (call, items) = if goes_through_steps { (CALL, AGAIN) } else { (CALL, ITEMS) };
        text += &[call, items, FREE].concat().replace("NAME", name);
        for (output, array) in &self.expected {
            let (own, count) = (member(output), array.data.len());
            let _ =
                writeln!(text, "    check(!memcmp(out_{own}, again_{own}, sizeof out_{own}), \"{name}: same bits\");");
            let _ = writeln!(text, "    for (int i = 0; i < {count}; i++) printf(\"%.17g\\n\", (double)out_{own}[i]);");
        }
        text + "}\n\n"
    }

    /// Holds the next of the printed numbers to the oracle.
    fn compare(&self, printed: &mut dyn Iterator<Item = f64>, what: &str) {
        let tolerance = if self.real == Real::F64 { 1e-12 } else { 1e-4 };
        for (name, expected) in &self.expected {
            let scale = expected.data.iter().fold(1.0, |most: f64, value| most.max(value.abs()));
            for (place, b) in expected.data.iter().enumerate() {
                let a = printed.next().unwrap();
                let is_close = (a - b).abs() <= tolerance * scale;
                assert!(is_close, "{what}, {}: {name} is {a} and should be {b} at {place}", self.name);
            }
        }
    }
}

/// What a name becomes that C or C++ keeps to itself.
fn member(name: &str) -> String {
    if ["new", "double"].contains(&name) { format!("{name}_1") } else { name.replace('σ', "u3c3") }
}

const START: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check(int holds, const char *what)
{
    if (holds) return;
    fprintf(stderr, "%s\n", what);
    exit(1);
}

/* Memory at an odd address that holds NaNs; exactly so long that tools find what is written outside. */
static char *memory(size_t bytes)
{
    char *start = (char *)malloc(bytes + 1);
    memset(start, 0xff, bytes + 1);
    return start + 1;
}

"#;

const CALL: &str = r#"
    size_t bytes = NAME_workspace_bytes(&sizes);
    check(bytes != SIZE_MAX, "NAME: bytes");
    char *workspace = bytes ? memory(bytes) : NULL;
    check(NAME_run(&sizes, &in, &out, workspace) == NAME_ok, "NAME: run");
    check(!bytes || NAME_run(&sizes, &in, &out, NULL) == NAME_null_pointer, "NAME: no workspace");
    check(NAME_run(&sizes, &in, NULL, workspace) == NAME_null_pointer, "NAME: no outputs");
"#;

const AGAIN: &str = r#"
    check(NAME_run(&sizes, &in, &again, workspace) == NAME_ok, "NAME: run again");
"#;

const ITEMS: &str = r#"
    size_t local_bytes = NAME_local_bytes(&sizes);
    check(local_bytes != SIZE_MAX, "NAME: local bytes");
    char *local = local_bytes ? memory(local_bytes) : NULL;
    for (int k = 0; k < NAME_kernels; k++) {
        int64_t items = NAME_items(k, &sizes);
        check(items >= 0, "NAME: items");
        for (int64_t n = items; n-- > 0;)
            check(NAME_run_items(k, n, n + 1, &sizes, &in, &again, workspace, local) == NAME_ok, "NAME: an item");
        int past = NAME_run_items(k, items, items + 1, &sizes, &in, &again, workspace, local);
        check(past == NAME_bad_items, "NAME: past the items");
    }
    check(NAME_items(NAME_kernels, &sizes) == -1 && NAME_items(-1, &sizes) == -1, "NAME: no such kernel");
    if (local_bytes) free(local - 1);
"#;

const FREE: &str = r#"
    if (bytes) free(workspace - 1);
"#;

fn example(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../examples/{name}.gx"));
    std::fs::read_to_string(path).unwrap()
}

fn subjects() -> Vec<Subject> {
    let matmul: Sizes = &[("N", 37), ("M", 29), ("K", 41)];
    let attention: Sizes = &[("T", 70), ("S", 35), ("D", 5), ("E", 3)];
    let words =
        "param N >= 1, σ >= 0; input new[N], double; y[i] = new[i] * double; f = max[i] y[i]; z[i in 0..σ] = i*f";
    let shorter = "param M, N >= 2*M; input x[N], w[M]; y[i in 0..N - 2*M + 1] = sum[k] x[i + 2*k] * w[k]";
    vec![
        Subject::new("matmul", &example("matmul"), false, Real::F64, matmul),
        Subject::new("matmul_gradient", &example("matmul"), true, Real::F32, matmul),
        Subject::new(
            "softmax_gradient",
            "input x[N, K]; y[i, j] = exp(x[i, j]) / sum[k] exp(x[i, k])",
            true,
            Real::F64,
            &[("N", 13), ("K", 70)],
        ),
        Subject::new("attention_gradient", &example("attention"), true, Real::F32, attention),
        Subject::new("words", words, true, Real::F64, &[("N", 5), ("σ", 3)]),
        Subject::new("shorter", shorter, true, Real::F32, &[("N", 9), ("M", 3)]),
        Subject::new("nothing", "input x[N]; y[i] = 2*x[i]; f = sum[i] x[i]", true, Real::F64, &[("N", 0)]),
        Subject::new("alone", "f[i in 0..3] = i + 1", false, Real::F64, &[]),
        Subject::new("steps", &example("gray_scott_steps"), true, Real::F64, &[("H", 9), ("W", 35), ("T", 4)]),
        Subject::new("substitution", &example("substitution"), true, Real::F32, &[("N", 23)]),
        Subject::new("no_steps", &example("heat_steps"), true, Real::F64, &[("N", 7), ("T", 0)]),
    ]
}

/// A folder of one test.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// The compilers of this machine, each for C and for C++.
fn compilers() -> Vec<[&'static str; 2]> {
    let is_there = |name: &str| Command::new(name).arg("--version").output().is_ok();
    let found =
        [["gcc", "g++"], ["clang", "clang++"]].into_iter().filter(|pair| pair.iter().all(|name| is_there(name)));
    found.collect()
}

fn run(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && told.is_empty(), "{command:?}: {told}");
    String::from_utf8(output.stdout).unwrap()
}

const WARNINGS: [&str; 4] = ["-Wall", "-Wextra", "-pedantic", "-Werror"];

#[test]
fn several_files_and_their_headers_make_one_program_in_c_and_in_cpp() {
    let (folder, subjects) = (folder("one-program"), subjects());
    let mut main = String::new();
    for subject in &subjects {
        let path = |ending: &str| folder.join(format!("{}.{ending}", subject.name));
        std::fs::write(path("h"), subject.interface().header()).unwrap();
        std::fs::write(path("c"), subject.interface().source()).unwrap();
        let _ = writeln!(main, "#include \"{0}.h\"\n#include \"{0}.h\"", subject.name);
    }
    main += START;
    subjects.iter().for_each(|subject| main += &subject.caller());
    let calls: String = subjects.iter().map(|subject| format!("    call_{}();\n", subject.name)).collect();
    main += &format!("int main(void)\n{{\n{calls}    return 0;\n}}\n");
    ["main.c", "main.cpp"].iter().for_each(|file| std::fs::write(folder.join(file), &main).unwrap());
    for [c, cpp] in compilers() {
        let sources = subjects.iter().map(|subject| format!("{}.c", subject.name));
        run(Command::new(c).args(WARNINGS).args(["-std=c99", "-O1", "-c"]).args(sources).current_dir(&folder));
        let objects: Vec<String> = subjects.iter().map(|subject| format!("{}.o", subject.name)).collect();
        for (compiler, standard, file) in [(c, "-std=c99", "main.c"), (cpp, "-std=c++11", "main.cpp")] {
            let mut command = Command::new(compiler);
            run(command
                .args(WARNINGS)
                .args([standard, file, "-o", "run"])
                .args(&objects)
                .arg("-lm")
                .current_dir(&folder));
            let printed = run(&mut Command::new(folder.join("run")));
            let mut printed = printed.lines().map(|line| line.parse().unwrap());
            subjects.iter().for_each(|subject| subject.compare(&mut printed, compiler));
            assert_eq!(printed.next(), None);
        }
    }
}

#[test]
fn sizes_that_can_not_be_are_refused() {
    let folder = folder("bad-sizes");
    let text = "param M, N >= 2*M; input x[N, N, N], w[M]; y[i in 0..N - 2*M + 1] = sum[k] x[0, 0, i + 2*k] * w[k]";
    let subject = Subject::new("bad", text, false, Real::F64, &[("N", 9), ("M", 3)]);
    std::fs::write(folder.join("bad.h"), subject.interface().header()).unwrap();
    std::fs::write(folder.join("bad.c"), subject.interface().source()).unwrap();
    let cases = [(5, 3), (-1, 0), (5, -1), (1 << 39, 1), (1 << 41, 1), (i64::MAX, i64::MAX), (i64::MIN, 0), (0, 0)];
    let code = |(n, m): (i64, i64)| {
        let sizes = format!("bad_sizes sizes = {{.N = INT64_C({n}), .M = INT64_C({m})}};")
            .replace("INT64_C(-9223372036854775808)", "INT64_MIN");
        format!(
            "    {{ const {sizes} printf(\"%d %d\\n\", bad_run(&sizes, &in, &out, NULL), bad_workspace_bytes(&sizes) == SIZE_MAX); }}\n"
        )
    };
    let calls: String = cases.into_iter().map(code).collect();
    let main = format!(
        "#include \"bad.h\"\n#include <stdio.h>\nint main(void)\n{{\n    double y[9] = {{0}};\n    \
        const bad_inputs in = {{NULL, NULL}};\n    const bad_outputs out = {{y}};\n{calls}    \
        printf(\"%d\\n\", bad_run(NULL, &in, &out, NULL));\n    return 0;\n}}\n"
    );
    std::fs::write(folder.join("main.c"), main).unwrap();
    for [c, _] in compilers() {
        run(Command::new(c)
            .args(WARNINGS)
            .args(["-std=c99", "main.c", "bad.c", "-lm", "-o", "run"])
            .current_dir(&folder));
        // Without elements, no array is needed.
        let expected = "1 1\n1 1\n1 1\n3 1\n3 1\n3 1\n1 1\n0 0\n2\n";
        assert_eq!(run(&mut Command::new(folder.join("run"))), expected, "{c}");
    }
}

#[test]
fn the_example_runs_at_the_sizes_that_it_is_made_for() {
    let folder = folder("example");
    let subject = Subject::new("norm", "input x[N]; f = sum[i] x[i]^2", true, Real::F32, &[("N", 3)]);
    let interface = subject.interface();
    std::fs::write(folder.join("norm.h"), interface.header()).unwrap();
    std::fs::write(folder.join("norm.c"), interface.source()).unwrap();
    std::fs::write(folder.join("main.c"), interface.example(&[3.into()])).unwrap();
    std::fs::write(folder.join("CMakeLists.txt"), interface.cmake()).unwrap();
    for [c, _] in compilers() {
        run(Command::new(c)
            .args(WARNINGS)
            .args(["-std=c99", "main.c", "norm.c", "-lm", "-o", "run"])
            .current_dir(&folder));
        assert_eq!(run(&mut Command::new(folder.join("run"))), "f: 1.36111\ndx[N]: 2 1 0.666667\n");
    }
    if Command::new("cmake").arg("--version").output().is_ok() {
        run(Command::new("cmake").args(["-S", ".", "-B", "build"]).current_dir(&folder));
        run(Command::new("cmake").args(["--build", "build"]).current_dir(&folder));
    }
}

#[test]
fn sizes_are_held_to_what_64_bits_hold() {
    let limit = |text: &str| {
        let header = Subject::new("long", text, false, Real::F64, &[("N", 0)]).interface().header();
        let (_, rest) = header.split_once("a size is past ").unwrap();
        rest.split_once(',').unwrap().0.parse::<i64>().unwrap()
    };
    assert_eq!(limit("input x[N]; y[i] = x[i]"), 1 << 40);
    assert_eq!(limit("param N <= 0; y[i in 0..1000000000000*N] = i"), 1 << 21);
}
