//! Derivatives as text, each held to its meaning: numeric differentiation, and the other modes.
//!
//! Sections: `derive` (reverse mode), `forward`, `jacobian`, `hessian`, `inline` (reverse mode without temporaries),
//! `again` (the derivative of the printed derivative) and `error MODE`. A section may restrict the derivative, as in
//! `derive wrt=x,y of=f`. Inputs are drawn from an interval where the results are finite.

#[path = "../../gradix/tests/support/mod.rs"]
mod cases;

use cases::Case;
use gradix::derive::{Mode, Options};

use gradix::program::{BinaryOp, Program, TensorId, UnaryOp, names, verify};
use gradix::sizes::{Known, choose};
use gradix::syntax::parse;
use gradix::{Int, derive, print, resolve, simplify, syntax};
use gradix_run::check::{INTERVALS, Settings, check};
use gradix_run::{Array, Dtype, Gradient, confirm, gradient, interp, random};
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

    fn derived(&self, mode: Mode) -> Program {
        let options = Options { mode, wrt: self.wrt.clone(), of: self.of.clone(), ..Options::default() };
        let derivative = derive(&self.program, &options);
        let derivative =
            derivative.unwrap_or_else(|errors| panic!("`{}`\n{}", self.title, cases::render(&self.source, &errors)));
        confirmed(&self.title, &self.program, &derivative, &options);
        derivative
    }

    fn gradient(&self) -> Gradient {
        Gradient::new(&self.program, self.wrt.clone(), self.of.clone()).unwrap()
    }

    /// Reverse mode agrees with numeric differentiation.
    fn reverse(&self) -> String {
        let gradient = self.gradient();
        assert!(gradient.derivative == self.derived(Mode::Reverse), "`{}`: deriving twice differs", self.title);
        let text = well_formed(&self.title, &gradient.derivative);
        measured(&format!("{}\n{text}", self.title), &self.program, &gradient, &self.sizes);
        text
    }

    /// `Σ df · f_dot = Σ dx · x_dot`
    fn forward(&self) -> String {
        let (gradient, forward) = (self.gradient(), self.derived(Mode::Forward));
        let text = well_formed(&self.title, &forward);
        for seed in SEEDS {
            let inputs = self.inputs(seed);
            let mut taken = names::taken(&self.program);
            let dots: Vec<String> = (gradient.wrt.iter())
                .map(|&x| names::fresh(&format!("{}_dot", self.program[x].name), &mut taken))
                .collect();
            let mut tangents = inputs.clone();
            for (&x, dot) in gradient.wrt.iter().zip(&dots) {
                tangents.insert(dot.clone(), self.random(seed, dot, x));
            }
            let mut upstream = inputs.clone();
            for (f, name) in &gradient.upstream {
                upstream.insert(name.clone(), self.random(seed, name, *f));
            }
            let by_results = self.run(&forward, &tangents).into_iter().zip(&gradient.upstream);
            let left: f64 = by_results.map(|((_, f_dot), (_, df))| dot(&f_dot, &upstream[df])).sum();
            let by_arguments = self.run(&gradient.derivative, &upstream).into_iter().zip(&dots);
            let right: f64 = by_arguments.map(|((_, dx), x_dot)| dot(&dx, &tangents[x_dot])).sum();
            assert_close(&self.title, left, right, 1e-9);
        }
        text
    }

    /// A row of the Jacobian is the reverse-mode derivative with `df` 1 at one element and 0 elsewhere.
    fn jacobian(&self) -> String {
        let (gradient, jacobian) = (self.gradient(), self.derived(Mode::Jacobian));
        let text = well_formed(&self.title, &jacobian);
        let inputs = self.inputs(SEEDS[0]);
        let mut blocks = self.run(&jacobian, &inputs).into_iter();
        for (f, own) in &gradient.upstream {
            let blocks: Vec<Array> = gradient.wrt.iter().map(|_| blocks.next().expect("a block").1).collect();
            for position in 0..self.zeros(*f).data.len() {
                let mut upstream = inputs.clone();
                for (g, name) in &gradient.upstream {
                    upstream.insert(name.clone(), self.zeros(*g));
                }
                upstream.get_mut(own).expect("its own").data[position] = 1.0;
                for ((_, row), block) in self.run(&gradient.derivative, &upstream).iter().zip(&blocks) {
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
        let (gradient, hessian) = (self.gradient(), self.derived(Mode::Hessian));
        let text = well_formed(&self.title, &hessian);
        let inputs = self.inputs(SEEDS[0]);
        let count = gradient.wrt.len();
        let blocks: Vec<Array> = self.run(&hessian, &inputs).into_iter().map(|(_, array)| array).collect();
        let length = |x: usize| self.zeros(gradient.wrt[x]).data.len();
        for (number, _) in gradient.upstream.iter().enumerate() {
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
    fn gradient_slopes(&self, gradient: &Gradient, of: usize, y: usize, inputs: &Arrays, x: usize) -> Vec<Vec<f64>> {
        let mut given = inputs.clone();
        for (number, (f, name)) in gradient.upstream.iter().enumerate() {
            let mut seed = self.zeros(*f);
            seed.data.fill(if number == of { 1.0 } else { 0.0 });
            given.insert(name.clone(), seed);
        }
        let name = &self.program[gradient.wrt[y]].name;
        let slope = |position: usize| {
            let at = |step: f64| {
                let mut moved = given.clone();
                moved.get_mut(name).expect("an input").data[position] += step;
                self.run(&gradient.derivative, &moved).swap_remove(x).1.data
            };
            let (ahead, behind) = (at(STEP), at(-STEP));
            ahead.iter().zip(behind).map(|(a, b)| (a - b) / (2.0 * STEP)).collect()
        };
        (0..given[name].data.len()).map(slope).collect()
    }

    /// The inlined derivative has the same values.
    fn inline(&self) -> String {
        let gradient = self.gradient();
        let text = syntax::print(&print::ast(&gradient.derivative, true).unwrap());
        let inlined = resolved(&self.title, &text);
        let mut given = self.inputs(SEEDS[0]);
        for (f, name) in &gradient.upstream {
            given.insert(name.clone(), self.random(SEEDS[0], name, *f));
        }
        let (plain, inlined) = (self.run(&gradient.derivative, &given), self.run(&inlined, &given));
        for ((name, a), (other, b)) in plain.iter().zip(&inlined) {
            assert_eq!((name, &a.shape), (other, &b.shape));
            a.data.iter().zip(&b.data).for_each(|(a, b)| assert_close(&self.title, *a, *b, 1e-9));
        }
        text
    }

    /// The derivative of the printed derivative.
    fn again(&self) -> String {
        let printed = print::print(&self.derived(Mode::Reverse)).unwrap();
        let first = resolved(&self.title, &printed);
        let gradient = Gradient::new(&first, None, None).unwrap();
        confirmed(&self.title, &first, &gradient.derivative, &Options::default());
        let text = well_formed(&self.title, &gradient.derivative);
        let sizes = self.gradient().sizes(&self.program, &self.sizes).unwrap();
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
        let inlined = derive(&self.program, &options).and_then(|d| print::ast(&d, true).map_err(|error| vec![error]));
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
        let sizes = gradix::sizes::bind(program, &Known { given, shapes: Vec::new() }, &Default::default());
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
fn confirmed(title: &str, program: &Program, derivative: &Program, options: &Options) {
    let report = confirm(program, derivative, options);
    let confirmed = report.unwrap_or_else(|m| panic!("`{title}`\n{}", m.report(title, options, &[], derivative)));
    assert!(!confirmed.sizes.is_empty(), "`{title}` is {confirmed}");
}

/// Every derivative agrees with central differences, and most elements could be measured.
fn measured(what: &str, program: &Program, gradient: &Gradient, sizes: &[Int]) {
    for seed in SEEDS {
        let report = check(program, gradient, sizes, Settings { seed, tolerance: None }, &|_, _| {}).unwrap();
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
