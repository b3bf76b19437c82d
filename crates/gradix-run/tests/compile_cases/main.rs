//! What is decided for small programs, as text, each held to its meaning.
//!
//! A case is a program whose title states the decision that it is an example of. Sections show the values on the way to
//! code: `economised`, `arranged`, `schedule`, `nest`, and `c`, which is the kernels without what they share with all
//! others. Each may be that `of the derivative`. What decisions depend on stands behind `for`, as in
//! `nest of the derivative for avx2 f32 N=64`; what is not said there is `avx512`, `f64`, and 512 for every size.
//!
//! Loops are right for all sizes, so that each section's are also verified, run through to see that every element is
//! written once, and run by the virtual machine beside the oracle, at sizes from 0 on. Those with a section `nest` or `c`
//! are compiled and run, too: the others are larger programs, like the examples that the tests of backends compile.

#[path = "../../../gradix/tests/support/mod.rs"]
mod cases;
#[path = "../support/trial.rs"]
mod trial;
mod writes;

use cases::Case;
use gradix::compile::{self, Compiled};
use gradix::domain::estimate::extents;
use gradix::domain::sizes::{Known, bind, choose};
use gradix::nest::{Real, Step, Verified, verify};
use gradix::program::{Affine, ParamKind, Program};
use gradix::syntax::parse;
use gradix::{Int, Target, derive, emit, resolve};
use gradix_run::Element;
use gradix_run::machine::Machine;
use gradix_run::native::{Cache, Settings};
use std::path::PathBuf;
use trial::Trial;

#[test]
fn sections_show_what_was_decided() {
    cases::check("compile", |case, section| {
        let section = Section::parse(section).unwrap_or_else(|| panic!("`{}` has a section `{section}`", case.title));
        let subject = Subject::new(case, &section.circumstances);
        let text = section.text(&subject.compiled());
        assert_eq!(section.text(&subject.compiled()), text, "{} is compiled differently the second time", subject.name);
        text
    });
}

#[test]
fn no_access_leaves_its_buffer_and_every_element_is_written_once() {
    each_subject(|subject, _| {
        let nest = subject.compiled().nest;
        // Of a recurrence, the parts are verified, for all steps.
        let checks = match nest.params.iter().any(|param| matches!(param.kind, ParamKind::Time(_))) {
            true => nest.checks().to_vec(),
            false => verify(&nest).unwrap_or_else(|error| panic!("{}: {error}", subject.name)),
        };
        for sizes in subject.trial_sizes() {
            let own = nest.sizes(&subject.free(&sizes));
            for check in &checks {
                let (inside, buffer) = (gradix::nest::verify::holds(check, &own), &nest[check.buffer].name);
                assert!(inside, "{} at {own:?}: '{buffer}' may be left in kernel {}", subject.name, check.kernel);
            }
            writes::every_element_is_written_once(&subject.name, &nest, &own);
        }
    });
}

#[test]
fn values_are_those_of_the_oracle() {
    each_subject(|subject, shows_loops| match subject.circumstances.real {
        Real::F64 => subject.agrees::<f64>(shows_loops, 1e-12),
        Real::F32 => subject.agrees::<f32>(shows_loops, 1e-4),
    });
}

#[test]
#[should_panic(expected = "element of 'y' not written 1 times")]
fn an_element_that_is_left_out_is_found() {
    let circumstances = Circumstances::parse(false, "").unwrap();
    let subject = Subject::new(&case("input x[N]; y[i] = 2 * x[i]"), &circumstances);
    let mut nest = subject.compiled().nest.into_nest();
    let Step::Leaf(leaf) = &mut nest.kernels[0].steps[0] else { panic!("no leaf") };
    leaf.loops[0].range.low.push(Affine::constant(1));
    writes::every_element_is_written_once(&subject.name, &nest, &[Int::from(5)]);
}

#[test]
#[should_panic(expected = "and should be")]
fn a_wrong_value_is_found() {
    let circumstances = Circumstances::parse(false, "").unwrap();
    let [right, wrong] = ["input x[N]; y[i] = 2 * x[i]", "input x[N]; y[i] = 3 * x[i]"].map(case);
    let [right, wrong] = [right, wrong].map(|case| Subject::new(&case, &circumstances));
    let mut machine = Machine::vm(&right.program, wrong.compiled().nest, f64::DTYPE).unwrap();
    Trial::<f64>::new(&right.program, vec![Int::from(5)]).agrees(&mut machine, 1e-12, "twice");
}

fn case(source: &str) -> Case {
    Case { title: source.to_string(), source: source.to_string(), sections: Vec::new() }
}

/// Calls `each` for every case under all circumstances of its sections, and says whether its loops are shown.
fn each_subject(each: impl Fn(&Subject, bool)) {
    for case in cases::files("compile").iter().flat_map(|path| cases::read(path)) {
        let sections: Vec<Section> = case.sections.iter().filter_map(|(name, _)| Section::parse(name)).collect();
        for (number, Section { circumstances, .. }) in sections.iter().enumerate() {
            let is_same = |other: &&Section| other.circumstances == *circumstances;
            if !sections[..number].iter().any(|other| is_same(&other)) {
                let loops = [Shown::Stage(compile::Stage::Nest), Shown::C];
                let shows_loops = sections.iter().filter(is_same).any(|section| loops.contains(&section.shown));
                each(&Subject::new(&case, circumstances), shows_loops);
            }
        }
    }
}

/// What is shown of a program, and under which circumstances.
#[derive(Debug, PartialEq)]
struct Section {
    shown: Shown,
    circumstances: Circumstances,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Shown {
    Stage(compile::Stage),
    C,
}

/// What decisions depend on.
#[derive(Clone, Debug, PartialEq)]
struct Circumstances {
    of_the_derivative: bool,
    target: Target,
    real: Real,
    /// The sizes that are assumed, where they are not [`ASSUMED_SIZE`].
    assumed: Vec<(String, i64)>,
}

const ASSUMED_SIZE: i64 = 512;

impl Section {
    fn parse(text: &str) -> Option<Section> {
        let (what, circumstances) = text.split_once(" for ").unwrap_or((text, ""));
        let (stage, of_the_derivative) = match what.strip_suffix(" of the derivative") {
            Some(stage) => (stage, true),
            None => (what, false),
        };
        let shown = match stage {
            "economised" => Shown::Stage(compile::Stage::Economised),
            "arranged" => Shown::Stage(compile::Stage::Arranged),
            "schedule" => Shown::Stage(compile::Stage::Schedule),
            "nest" => Shown::Stage(compile::Stage::Nest),
            "c" => Shown::C,
            _ => return None,
        };
        let circumstances = Circumstances::parse(of_the_derivative, circumstances)?;
        Some(Section { shown, circumstances })
    }

    fn text(&self, compiled: &Compiled) -> String {
        match self.shown {
            Shown::Stage(stage) => compiled.print(stage).unwrap(),
            Shown::C => kernels(&emit::c(&compiled.nest, self.circumstances.real)),
        }
    }
}

impl Circumstances {
    fn parse(of_the_derivative: bool, text: &str) -> Option<Circumstances> {
        let (target, real) = (gradix::target::AVX512, Real::F64);
        let mut parsed = Circumstances { of_the_derivative, target, real, assumed: Vec::new() };
        for word in text.split_whitespace() {
            match (word, word.split_once('=')) {
                (_, Some((name, size))) => parsed.assumed.push((name.to_string(), size.parse().ok()?)),
                ("f64", None) => parsed.real = Real::F64,
                ("f32", None) => parsed.real = Real::F32,
                (_, None) => parsed.target = Target::named(word)?,
            }
        }
        Some(parsed)
    }
}

/// The functions of the kernels, from the whole text.
fn kernels(c: &str) -> String {
    let mut text = String::new();
    let mut is_inside = false;
    for line in c.lines() {
        is_inside |= line.starts_with("void gx_kernel_") && !line.ends_with(';');
        if is_inside {
            text += line;
            text += "\n";
        }
        is_inside &= line != "}";
    }
    text
}

/// A program under some circumstances.
struct Subject<'a> {
    name: String,
    program: Program,
    circumstances: &'a Circumstances,
}

/// Sizes of trials: the same for all.
const EQUAL_SIZES: [i64; 5] = [0, 1, 2, 3, 7];
/// Sizes of trials, turned around by one after the other: past blocks, past tiles, and odd.
const MIXED_SIZES: [i64; 4] = [67, 34, 5, 2];
/// The largest size of a trial, past items of work; it is halved until there are few enough points.
const LARGE_SIZE: i64 = 1030;
/// The most points of a trial: what the oracle does in some tens of milliseconds.
const MAX_POINTS: f64 = 200_000.0;

impl<'a> Subject<'a> {
    fn new(case: &Case, circumstances: &'a Circumstances) -> Subject<'a> {
        let resolved = parse(&case.source).and_then(|ast| resolve(&ast, &[]));
        let refused = |errors: Vec<_>| panic!("`{}`\n{}", case.title, cases::render(&case.source, &errors));
        let mut program = resolved.unwrap_or_else(refused).program;
        if circumstances.of_the_derivative {
            program = derive(&program, &Default::default()).unwrap().program;
        }
        let Circumstances { of_the_derivative, target, real, assumed } = circumstances;
        let what = if *of_the_derivative { "derivative of " } else { "" };
        let name = format!("{what}`{}` for {} {real:?} {assumed:?}", case.title, target.name);
        Subject { name, program, circumstances }
    }

    fn compiled(&self) -> Compiled {
        let Circumstances { target, real, assumed, .. } = self.circumstances;
        for (name, _) in assumed {
            assert!(self.program.params.iter().any(|param| param.name == *name), "{} has no size '{name}'", self.name);
        }
        let named = |param: &str| assumed.iter().find(|(name, _)| name == param).map(|(_, size)| *size);
        let sizes = self.sizes(&|name, _| named(name).unwrap_or(ASSUMED_SIZE));
        let sizes = sizes.unwrap_or_else(|| panic!("{} can't have the sizes that are assumed", self.name));
        gradix::compile(&self.program, &sizes, *real, target).unwrap_or_else(|error| panic!("{}: {error}", self.name))
    }

    /// All sizes, where free ones are chosen by their names and places, if the program can have them.
    fn sizes(&self, choose: &dyn Fn(&str, usize) -> i64) -> Option<Vec<Int>> {
        let free = self.program.params.iter().filter(|param| param.kind == ParamKind::Free).enumerate();
        let given = free.map(|(place, param)| (param.name.clone(), Int::from(choose(&param.name, place)))).collect();
        bind(&self.program, &Known { given, shapes: Vec::new() }, &Default::default()).ok()
    }

    fn free(&self, sizes: &[Int]) -> Vec<Int> {
        let params = self.program.params.iter().zip(sizes).filter(|(param, _)| param.kind == ParamKind::Free);
        params.map(|(_, size)| size.clone()).collect()
    }

    /// Sizes to run at, those that the program can't have aside.
    fn trial_sizes(&self) -> Vec<Vec<Int>> {
        let smallest = choose(&self.program, &Known::default(), &Default::default()).ok();
        let equal = EQUAL_SIZES.iter().filter_map(|&size| self.sizes(&|_, _| size));
        let count = MIXED_SIZES.len();
        let mixed = (0..count).filter_map(|turn| self.halved(&|place| MIXED_SIZES[(place + turn) % count]));
        let large = self.halved(&|_| LARGE_SIZE);
        let mut trials: Vec<Vec<Int>> = smallest.into_iter().chain(equal).chain(mixed).chain(large).collect();
        trials.sort();
        trials.dedup();
        assert!(trials.len() >= 3, "{} can't run at the sizes of trials", self.name);
        trials
    }

    /// Sizes by the places of params, halved until there are few enough points.
    fn halved(&self, size: &dyn Fn(usize) -> i64) -> Option<Vec<Int>> {
        let divided = (0..8).map(|halvings| self.sizes(&|_, place| (size(place) >> halvings).max(2)));
        divided.flatten().find(|sizes| self.points(sizes) <= MAX_POINTS)
    }

    fn points(&self, sizes: &[Int]) -> f64 {
        let sizes: Vec<f64> = sizes.iter().map(|size| size.to_f64().value()).collect();
        let definitions = self.program.definitions.iter();
        definitions.map(|definition| extents(definition, &sizes).iter().product::<f64>()).sum()
    }

    /// Values are those of the oracle at all sizes, on one thread and three; compiled ones as well if loops are shown.
    fn agrees<T: Element>(&self, shows_loops: bool, tolerance: f64) {
        let nest = self.compiled().nest;
        let mut machines = vec![Machine::vm(&self.program, nest.clone(), T::DTYPE).unwrap()];
        if shows_loops {
            machines.extend(self.native::<T>(nest));
        }
        for sizes in self.trial_sizes() {
            let trial = Trial::<T>::new(&self.program, sizes);
            for machine in &mut machines {
                let what = format!("{}, {}", self.name, if machine.is_native() { "native" } else { "vm" });
                trial.agrees(machine, tolerance, &what);
            }
        }
    }

    /// `None` where there is no compiler; the tests of backends then say so.
    fn native<T: Element>(&self, nest: Verified) -> Option<Machine> {
        let settings = settings();
        let compiler = settings.compiler().ok()?;
        let made = Machine::native(&self.program, nest, T::DTYPE, &compiler, &settings);
        Some(made.unwrap_or_else(|note| panic!("{}: {}", self.name, note.message)).0)
    }
}

/// A cache that only this test uses, and that is there for the next time.
fn settings() -> Settings {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("compile_cases");
    Settings { cache: Some(Cache { folder, limit: 64 << 20 }), ..Settings::from_environment() }
}
