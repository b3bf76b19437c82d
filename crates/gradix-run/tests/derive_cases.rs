//! Derivatives as text, each held to its meaning: numeric differentiation, and the other modes.
//!
//! Sections: `derive` (reverse mode), `forward`, `jacobian`, `hessian`, `inline` (reverse mode without temporaries),
//! `again` (the derivative of the printed derivative) and `error MODE`. A section may restrict the derivative, as in
//! `derive wrt=x,y of=f`. Inputs are drawn from an interval where the results are finite.

#[path = "../../gradix/tests/support/mod.rs"]
mod cases;

use cases::Case;
use gradix::derive::{Derived, Mode, Options};

use gradix::domain::sizes::{Known, choose};
use gradix::program::print;
use gradix::program::{BinaryOp, Program, TensorId, UnaryOp, verify};
use gradix::syntax::parse;
use gradix::{Int, derive, resolve, simplify, syntax};
use gradix_run::check::{INTERVALS, Settings, check};
use gradix_run::{Array, Dtype, confirm, gradient, interp, random};
use std::collections::HashMap;

type Arrays = HashMap<String, Array>;

#[test]
fn cases() {
    cases::check("derive", |case, section| {
        let mut words = section.split_whitespace();
        let kind = words.next().unwrap_or_default();
        let subject = Subject::new(case, words.clone());
        match kind {
            "derive" => subject.reverse(),
            "forward" => subject.forward(),
            "jacobian" => subject.jacobian(),
            "hessian" => subject.hessian(),
            "inline" => subject.inline(),
            "again" => subject.again(),
            "error" => subject.refused(words.next().unwrap_or_default()),
            _ => panic!("unknown section `{section}`"),
        }
    });
}

#[test]
fn every_function_has_a_case() {
    let files = cases::files("derive");
    let titles: Vec<String> = files.iter().flat_map(|path| cases::read(path)).map(|case| case.title).collect();
    let unary = UnaryOp::ALL.iter().filter(|op| **op != UnaryOp::Neg).map(|op| op.name());
    let missing: Vec<&str> = unary
        .chain(BinaryOp::FUNCTIONS.iter().map(|(name, _)| *name))
        .filter(|name| !titles.iter().any(|title| title == name))
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}

/// A program and what to derive.
struct Subject {
    title: String,
    source: String,
    program: Program,
    sizes: Vec<Int>,
    wrt: Option<Vec<String>>,
    of: Option<Vec<String>>,
}

impl Subject {
    fn new<'a>(case: &Case, words: impl Iterator<Item = &'a str>) -> Self {
        let (mut wrt, mut of) = (None, None);
        for (option, value) in words.filter_map(|word| word.split_once('=')) {
            let names = Some(value.split(',').map(str::to_string).collect());
            match option {
                "wrt" => wrt = names,
                "of" => of = names,
                _ => panic!("unknown option `{option}`"),
            }
        }
        let program = resolved(&case.title, &case.source);
        let sizes = choose(&program, &Known::default(), &Default::default());
        let sizes = sizes.unwrap_or_else(|errors| panic!("`{}`: {errors:?}", case.title));
        Subject { title: case.title.clone(), source: case.source.clone(), program, sizes, wrt, of }
    }

    fn derived(&self, mode: Mode) -> Derived {
        let options = Options { mode, wrt: self.wrt.clone(), of: self.of.clone(), ..Options::default() };
        let derivative = derive(&self.program, &options);
        let derivative =
            derivative.unwrap_or_else(|errors| panic!("`{}`\n{}", self.title, cases::render(&self.source, &errors)));
        confirmed(&self.title, &self.program, &derivative, &options);
        derivative
    }

    fn gradient(&self) -> Derived {
        let options = Options { wrt: self.wrt.clone(), of: self.of.clone(), ..Options::default() };
        derive(&self.program, &options).unwrap()
    }

    /// Reverse mode agrees with numeric differentiation.
    fn reverse(&self) -> String {
        let gradient = self.gradient();
        assert!(gradient.program == self.derived(Mode::Reverse).program, "`{}`: deriving twice differs", self.title);
        let text = well_formed(&self.title, &gradient.program);
        measured(&format!("{}\n{text}", self.title), &self.program, &gradient, &self.sizes);
        text
    }

    /// `Σ df · f_dot = Σ dx · x_dot`
    fn forward(&self) -> String {
        let (gradient, forward) = (self.gradient(), self.derived(Mode::Forward));
        let text = well_formed(&self.title, &forward.program);
        for seed in SEEDS {
            let inputs = self.inputs(seed);
            let (mut tangents, mut upstream) = (inputs.clone(), inputs.clone());
            for (derived, data) in [(&forward, &mut tangents), (&gradient, &mut upstream)] {
                data.extend(derived.seeds.iter().map(|s| (s.name.clone(), self.random(seed, &s.name, s.of))));
            }
            let by_results = self.run(&forward.program, &tangents).into_iter().zip(&gradient.seeds);
            let left: f64 = by_results.map(|((_, f_dot), df)| dot(&f_dot, &upstream[&df.name])).sum();
            let by_arguments = self.run(&gradient.program, &upstream).into_iter().zip(&forward.seeds);
            let right: f64 = by_arguments.map(|((_, dx), x_dot)| dot(&dx, &tangents[&x_dot.name])).sum();
            assert_close(&self.title, left, right, 1e-9);
        }
        text
    }

    /// A row of the Jacobian is the reverse-mode derivative with `df` 1 at one element and 0 elsewhere.
    fn jacobian(&self) -> String {
        let (gradient, jacobian) = (self.gradient(), self.derived(Mode::Jacobian).program);
        let text = well_formed(&self.title, &jacobian);
        let inputs = self.inputs(SEEDS[0]);
        let mut blocks = self.run(&jacobian, &inputs).into_iter();
        for own in &gradient.seeds {
            let blocks: Vec<Array> = gradient.wrt.iter().map(|_| blocks.next().expect("a block").1).collect();
            for position in 0..self.zeros(own.of).data.len() {
                let mut upstream = inputs.clone();
                for seed in &gradient.seeds {
                    upstream.insert(seed.name.clone(), self.zeros(seed.of));
                }
                upstream.get_mut(&own.name).expect("its own").data[position] = 1.0;
                for ((_, row), block) in self.run(&gradient.program, &upstream).iter().zip(&blocks) {
                    let start = position * row.data.len();
                    for (a, b) in row.data.iter().zip(&block.data[start..]) {
                        assert_close(&format!("{}\n{text}", self.title), *a, *b, 1e-9);
                    }
                }
            }
        }
        assert_eq!(blocks.next(), None);
        text
    }

    /// The Hessian is symmetric and agrees with differences of the gradient.
    fn hessian(&self) -> String {
        let (gradient, hessian) = (self.gradient(), self.derived(Mode::Hessian).program);
        let text = well_formed(&self.title, &hessian);
        let inputs = self.inputs(SEEDS[0]);
        let count = gradient.wrt.len();
        let blocks: Vec<Array> = self.run(&hessian, &inputs).into_iter().map(|(_, array)| array).collect();
        let length = |x: usize| self.zeros(gradient.wrt[x]).data.len();
        for number in 0..gradient.of.len() {
            let block = |x: usize, y: usize| &blocks[(number * count + x) * count + y].data;
            for (x, y) in (0..count).flat_map(|x| (0..count).map(move |y| (x, y))) {
                let slopes = self.gradient_slopes(&gradient, number, y, &inputs, x);
                for (i, j) in (0..length(x)).flat_map(|i| (0..length(y)).map(move |j| (i, j))) {
                    let entry = block(x, y)[i * length(y) + j];
                    assert_close(&self.title, entry, block(y, x)[j * length(x) + i], 1e-9);
                    assert_close(&format!("{}\n{text}", self.title), entry, slopes[j][i], 1e-6);
                }
            }
        }
        text
    }

    /// Central differences of the gradient by argument `x` of one result, along each element of argument `y`.
    fn gradient_slopes(&self, gradient: &Derived, of: usize, y: usize, inputs: &Arrays, x: usize) -> Vec<Vec<f64>> {
        let mut given = inputs.clone();
        for (number, seed) in gradient.seeds.iter().enumerate() {
            let mut upstream = self.zeros(seed.of);
            upstream.data.fill(if number == of { 1.0 } else { 0.0 });
            given.insert(seed.name.clone(), upstream);
        }
        let name = &self.program[gradient.wrt[y]].name;
        let slope = |position: usize| {
            let at = |step: f64| {
                let mut moved = given.clone();
                moved.get_mut(name).expect("an input").data[position] += step;
                self.run(&gradient.program, &moved).swap_remove(x).1.data
            };
            let (ahead, behind) = (at(STEP), at(-STEP));
            ahead.iter().zip(behind).map(|(a, b)| (a - b) / (2.0 * STEP)).collect()
        };
        (0..given[name].data.len()).map(slope).collect()
    }

    /// The inlined derivative has the same values.
    fn inline(&self) -> String {
        let gradient = self.gradient();
        let text = syntax::print(&print::ast(&gradient.program, true).unwrap());
        let inlined = resolved(&self.title, &text);
        let mut given = self.inputs(SEEDS[0]);
        given.extend(gradient.seeds.iter().map(|s| (s.name.clone(), self.random(SEEDS[0], &s.name, s.of))));
        let (plain, inlined) = (self.run(&gradient.program, &given), self.run(&inlined, &given));
        for ((name, a), (other, b)) in plain.iter().zip(&inlined) {
            assert_eq!((name, &a.shape), (other, &b.shape));
            a.data.iter().zip(&b.data).for_each(|(a, b)| assert_close(&self.title, *a, *b, 1e-9));
        }
        text
    }

    /// The derivative of the printed derivative.
    fn again(&self) -> String {
        let printed = print::print(&self.derived(Mode::Reverse).program).unwrap();
        let first = resolved(&self.title, &printed);
        let gradient = derive(&first, &Options::default()).unwrap();
        confirmed(&self.title, &first, &gradient, &Options::default());
        let text = well_formed(&self.title, &gradient.program);
        let sizes = gradient::carried(&self.program, &self.sizes, &self.gradient().program).unwrap();
        measured(&format!("{}\n{text}", self.title), &first, &gradient, &sizes);
        text
    }

    fn refused(&self, mode: &str) -> String {
        let mode = match mode {
            "derive" | "inline" => Mode::Reverse,
            "forward" => Mode::Forward,
            "jacobian" => Mode::Jacobian,
            "hessian" => Mode::Hessian,
            _ => panic!("unknown mode `{mode}`"),
        };
        let options = Options { mode, wrt: self.wrt.clone(), of: self.of.clone(), ..Options::default() };
        let inlined =
            derive(&self.program, &options).and_then(|d| print::ast(&d.program, true).map_err(|error| vec![error]));
        let errors = inlined.err().unwrap_or_else(|| panic!("`{}` can be derived", self.title));
        cases::render(&self.source, &errors)
    }

    /// Inputs from the first interval in which every result is finite.
    fn inputs(&self, seed: u64) -> Arrays {
        let drawn = INTERVALS.iter().map(|(low, high)| {
            let array = |x: TensorId| {
                let mut array = self.random(seed, &self.program[x].name, x);
                array.data.iter_mut().for_each(|value| *value = (low + high) / 2.0 + (high - low) / 2.0 * *value);
                array
            };
            self.program.inputs().map(|x| (self.program[x].name.clone(), array(x))).collect::<Arrays>()
        });
        let finite =
            |inputs: &Arrays| self.run(&self.program, inputs).iter().all(|(_, f)| f.data.iter().all(|v| v.is_finite()));
        drawn.into_iter().find(finite).unwrap_or_else(|| panic!("`{}` has no finite results", self.title))
    }

    fn zeros(&self, tensor: TensorId) -> Array {
        Array::zeros(gradient::shape(&self.program, &self.sizes, tensor).unwrap()).unwrap()
    }

    fn random(&self, seed: u64, name: &str, like: TensorId) -> Array {
        random::array(seed, name, self.zeros(like).shape).unwrap()
    }

    /// Runs a program whose sizes have the names of this one's.
    fn run(&self, program: &Program, inputs: &Arrays) -> Vec<(String, Array)> {
        let given = self.program.params.iter().zip(&self.sizes).map(|(p, v)| (p.name.clone(), v.clone())).collect();
        let sizes = gradix::domain::sizes::bind(program, &Known { given, shapes: Vec::new() }, &Default::default());
        let sizes = sizes.unwrap_or_else(|errors| panic!("`{}`: {errors:?}", self.title));
        interp(program, &sizes, inputs, Dtype::F64).unwrap_or_else(|error| panic!("`{}`: {error}", self.title)).results
    }
}

const SEEDS: [u64; 2] = [1, 2];
const STEP: f64 = 1e-5;

fn resolved(title: &str, source: &str) -> Program {
    let resolved = parse(source).and_then(|ast| resolve(&ast, &[]));
    resolved.unwrap_or_else(|errors| panic!("`{title}`\n{}\n{source}", cases::render(source, &errors))).program
}

/// The text of a program that verifies, comes back from its text, and can't be simplified.
fn well_formed(title: &str, program: &Program) -> String {
    assert_eq!(verify(program), Ok(()), "`{title}`");
    let text = print::print(program).unwrap();
    let again = resolved(title, &text);
    assert_eq!(print::print(&again).unwrap(), text, "`{title}` prints differently");
    assert!(again == *program, "`{title}` prints as another program:\n{text}");
    let simple = simplify(program).unwrap();
    assert!(simple == *program, "`{title}` is simplified further:\n{text}to\n{}", print::print(&simple).unwrap());
    text
}

/// Every element is what enumeration of the function gives.
fn confirmed(title: &str, program: &Program, derived: &Derived, options: &Options) {
    let report = confirm(program, derived, options);
    let confirmed = report.unwrap_or_else(|m| panic!("`{title}`\n{}", m.report(title, options, &[], &derived.program)));
    assert!(!confirmed.sizes.is_empty(), "`{title}` is {confirmed}");
}

/// Every derivative agrees with central differences, and most elements could be measured.
fn measured(what: &str, program: &Program, gradient: &Derived, sizes: &[Int]) {
    for seed in SEEDS {
        let report = check(program, gradient, sizes, Settings { seed, ..Settings::default() }, &|_, _| {}).unwrap();
        assert_eq!(report.comparisons.len(), gradient.wrt.len(), "{what}");
        for comparison in &report.comparisons {
            assert!(comparison.passed && !comparison.is_doubtful(), "{what}\n{comparison:?}");
        }
    }
}

fn dot(a: &Array, b: &Array) -> f64 {
    assert_eq!(a.shape, b.shape);
    a.data.iter().zip(&b.data).map(|(a, b)| a * b).sum()
}

fn assert_close(what: &str, a: f64, b: f64, tolerance: f64) {
    assert!((a - b).abs() <= tolerance * (1.0 + a.abs().max(b.abs())), "{what}: {a} and {b}");
}
