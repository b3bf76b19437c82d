//! Everything that must hold for a program, whatever it says: text and meaning of the program, of its
//! derivatives in every mode and of their derivatives, held to the [brute](super::brute) evaluator.

use super::brute::{Brute, brute, outputs};
use super::noise;
use super::scope::{Scope, inputs, params, size_names};
use super::tape::Slope;
use gradix::derive::{Derived, Mode, Options};
use gradix::domain::sizes::{Known, bind, choose};
use gradix::program::Places;
use gradix::program::print;
use gradix::program::{Program, TensorKind};
use gradix::syntax::ast::{Ast, CompareOp};
use gradix::{Diagnostic, Int, derive, economise, program, resolve, simplify, syntax};
use gradix_run::confirm::Mismatch;
use gradix_run::{Array, Dtype, confirm, interp};
use std::collections::{BTreeMap, HashMap, HashSet};

/// What a check looks at.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Decides sizes and data.
    pub seed: u64,
    /// Whether the data has zeros and ties.
    pub special: bool,
    /// Whether all sizes are 1, then 2, then 0, before they are random.
    pub small: bool,
    /// How many assignments of sizes are run.
    pub runs: usize,
    /// Whether derivatives are compared where something is infinite too.
    pub infinities: bool,
    /// Whether Jacobians are derived too.
    pub jacobian: bool,
    /// Whether the derivative is derived again.
    pub second: bool,
}

/// What does not hold.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The broken promise, the same for the same cause.
    pub kind: &'static str,
    pub detail: String,
    pub derivative: String,
}

/// How it went.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// Everything held; `runs` assignments of sizes were compared, `delicate` more left to rounding.
    Held { runs: usize, delicate: usize },
    /// The compiler refused the program.
    Refused(String),
}

type Outcome<T = ()> = Result<T, Failure>;

fn failure(kind: &'static str, detail: impl Into<String>) -> Failure {
    Failure { kind, detail: detail.into(), derivative: String::new() }
}

fn listed(diagnostics: &[Diagnostic]) -> String {
    diagnostics.iter().map(|d| format!("{}: {}", d.code, d.message)).collect::<Vec<_>>().join("; ")
}

/// Checks one program; what does not hold is listed once for each kind.
pub fn check(text: &str, plan: Plan) -> Result<Verdict, Vec<Failure>> {
    let ast = match syntax::parse(text) {
        Ok(ast) => ast,
        Err(diagnostics) => return Ok(Verdict::Refused(listed(&diagnostics))),
    };
    let resolved = match resolve(&ast, &[]) {
        Ok(resolved) => resolved,
        Err(diagnostics) => return Ok(Verdict::Refused(listed(&diagnostics))),
    };
    let program = resolved.program;
    // A program whose accesses contradict each other runs only where nothing is computed; its derivative,
    // which says so more plainly, may be refused.
    let chosen = choose(&program, &Known::default(), &resolved.places);
    if chosen.is_err() || chosen.is_ok_and(|sizes| sizes.contains(&gradix::Int::ZERO)) {
        return Ok(Verdict::Refused("no-sizes: only empty tensors fit".to_string()));
    }
    let mut findings = Findings::default();
    findings.note(well_formed("program", &program));
    let simpler = findings.note(simplified("program", &program));
    let cheaper = findings.note(economised("program", &program, plan.seed));
    if let Some(derivative) = findings.note(derived(&program, Mode::Reverse)) {
        let shown = print::print(&derivative).unwrap_or_default();
        findings.note(well_formed("derivative", &derivative));
        let again = findings.note(simplified("derivative", &derivative));
        let again = again.map(|program| print::print(&program).unwrap_or_default());
        if let Some(text) = again.filter(|text| *text != shown) {
            findings.note::<()>(Err(failure("the derivative is simplified", format!("simplified again:\n{text}"))));
        }
        let cheaper_derivative = findings.note(economised("derivative", &derivative, plan.seed));
        let subject = Subject {
            ast: &ast,
            program: &program,
            places: &resolved.places,
            simpler: simpler.as_ref(),
            cheaper: cheaper.as_ref(),
            derivative: &derivative,
            cheaper_derivative: cheaper_derivative.as_ref(),
        };
        let (runs, delicate) = subject.check(plan, &mut findings);
        findings.0.iter_mut().for_each(|failure| failure.derivative = shown.clone());
        if findings.0.is_empty() {
            return Ok(Verdict::Held { runs, delicate });
        }
    }
    Err(findings.0)
}

/// What does not hold, one of each kind.
#[derive(Default)]
struct Findings(Vec<Failure>);

impl Findings {
    fn note<T>(&mut self, outcome: Outcome<T>) -> Option<T> {
        let failure = match outcome {
            Ok(value) => return Some(value),
            Err(failure) => failure,
        };
        if self.0.iter().all(|known| known.kind != failure.kind) {
            self.0.push(failure);
        }
        None
    }
}

/// The invariants, and the way to text and back.
fn well_formed(what: &str, program: &Program) -> Outcome {
    program::verify(program).map_err(|e| failure("verify", format!("{what}: {e}")))?;
    let text = print::print(program).map_err(|e| failure("print", format!("{what}: {e}")))?;
    let ast =
        syntax::parse(&text).map_err(|e| failure("printed text parses", format!("{what}: {}\n{text}", listed(&e))))?;
    let again =
        resolve(&ast, &[]).map_err(|e| failure("printed text resolves", format!("{what}: {}\n{text}", listed(&e))))?;
    let second = print::print(&again.program).map_err(|e| failure("print", format!("{what}: {e}")))?;
    if second != text {
        return Err(failure("printed text prints the same", format!("{what}:\n{text}\nagain:\n{second}")));
    }
    if again.program != *program {
        let difference = first_difference(&format!("{program:#?}"), &format!("{:#?}", again.program));
        return Err(failure("printed text is an equal program", format!("{what}:\n{text}\n{difference}")));
    }
    Ok(())
}

fn first_difference(a: &str, b: &str) -> String {
    let lines: Vec<(&str, &str)> = a.lines().zip(b.lines()).collect();
    let Some(at) = lines.iter().position(|(a, b)| a != b) else { return "one is longer".into() };
    let around = &lines[at.saturating_sub(3)..(at + 4).min(lines.len())];
    around.iter().map(|(a, b)| format!("{a}   |   {b}\n")).collect()
}

/// The program simplified, which a second time changes nothing.
fn simplified(what: &str, program: &Program) -> Outcome<Program> {
    let simplify = |program| simplify(program).map_err(|e| failure("simplify", format!("{what}: {e}")));
    let once = simplify(program)?;
    program::verify(&once).map_err(|e| failure("verify", format!("{what}, simplified: {e}")))?;
    let (first, second) = (print::print(&once), print::print(&simplify(&once)?));
    if first != second {
        let texts = format!("{what}:\n{}\nagain:\n{}", first.unwrap_or_default(), second.unwrap_or_default());
        return Err(failure("simplify is idempotent", texts));
    }
    Ok(once)
}

/// The program with fewer operations at sizes near 10, which a second time changes nothing.
fn economised(what: &str, program: &Program, seed: u64) -> Outcome<Program> {
    let economise = |program: &Program| {
        let estimate: Vec<f64> =
            program.params.iter().map(|param| 8.0 + (noise::at(seed, &param.name, 0) % 9) as f64).collect();
        economise(program, &estimate).map_err(|e| failure("economise", format!("{what}: {e}")))
    };
    let once = economise(program)?;
    well_formed(&format!("{what}, economised"), &once)?;
    let (first, second) = (print::print(&once), print::print(&economise(&once)?));
    if first != second {
        let texts = format!("{what}:\n{}\nagain:\n{}", first.unwrap_or_default(), second.unwrap_or_default());
        return Err(failure("economise is idempotent", texts));
    }
    Ok(once)
}

fn derived(program: &Program, mode: Mode) -> Outcome<Program> {
    let options = Options { mode, ..Options::default() };
    let derivative = derive(program, &options).map_err(|e| failure("derive", format!("{mode:?}: {}", listed(&e))))?;
    confirmed(program, &derivative, &options)?;
    Ok(derivative.program)
}

/// The self-check that users have: every element is what enumeration of the function gives.
fn confirmed(program: &Program, derivative: &Derived, options: &Options) -> Outcome {
    let wrong = |mismatch: Mismatch| failure("confirm", mismatch.report("", options, &[], &derivative.program));
    confirm(program, derivative, options).map(|_| ()).map_err(wrong)
}

/// A program and what was made of it.
struct Subject<'a> {
    ast: &'a Ast,
    program: &'a Program,
    places: &'a Places,
    simpler: Option<&'a Program>,
    cheaper: Option<&'a Program>,
    derivative: &'a Program,
    cheaper_derivative: Option<&'a Program>,
}

/// Numbers for one run.
struct Run {
    sizes: BTreeMap<String, i64>,
    data: HashMap<String, Array>,
    /// The seed of each result.
    seeds: Vec<(String, Array)>,
}

impl Subject<'_> {
    /// How many assignments of sizes were run, and how many were left to rounding.
    fn check(&self, plan: Plan, findings: &mut Findings) -> (usize, usize) {
        let (mut runs, mut delicate) = (0, 0);
        let forward = findings.note(derived(self.program, Mode::Forward));
        let jacobian = plan.jacobian.then(|| findings.note(derived(self.program, Mode::Jacobian))).flatten();
        for (what, program) in [("forward derivative", &forward), ("Jacobian", &jacobian)] {
            program.as_ref().and_then(|program| findings.note(well_formed(what, program)));
        }
        let second = plan.second.then(|| self.second_derivative(findings)).flatten();
        // Without a size to choose, every run is the same.
        let trials = if size_names(self.ast).is_empty() { 1 } else { 12 };
        for trial in 0..trials {
            let sizes = self.sizes(plan, trial);
            let Some(run) = findings.note(self.prepare(plan, sizes)).flatten() else { continue };
            let expected = brute(self.ast, &run.sizes, &run.data);
            if expected.tape.delicate {
                delicate += 1;
                continue;
            }
            findings.note(self.values(&run, &expected));
            if expected.tape.infinite && !plan.infinities {
                delicate += 1;
                continue;
            }
            let wanted: Vec<String> = inputs(self.ast).map(|input| input.name.text.clone()).collect();
            let slopes = expected.gradient(&run.seeds, &wanted);
            findings.note(self.gradients(&run, &slopes));
            forward.as_ref().map(|forward| findings.note(self.tangents(plan, &run, forward, &slopes)));
            jacobian.as_ref().map(|jacobian| findings.note(self.contracted(&run, jacobian, &slopes)));
            second.as_ref().map(|(ast, second)| findings.note(self.second_order(plan, &run, ast, second)));
            runs += 1;
            if runs == plan.runs {
                break;
            }
        }
        (runs, delicate)
    }

    fn sizes(&self, plan: Plan, trial: usize) -> BTreeMap<String, i64> {
        let mut sizes = BTreeMap::new();
        for name in size_names(self.ast) {
            let declared = params(self.ast).find(|p| p.name.text == name);
            let fixed = declared.and_then(|p| p.bounds.iter().find(|(op, _)| *op == CompareOp::Eq));
            let small = noise::at(plan.seed, &name, trial) as i64 & i64::MAX;
            let size = match fixed {
                Some((_, value)) => Scope { sizes: sizes.clone(), ..Scope::default() }.integer(value, &[]).unwrap(),
                None if plan.small && trial < 3 => [1, 2, 0][trial],
                None if trial % 3 == 2 => small % 3,
                None => 1 + small % 5,
            };
            sizes.insert(name, size);
        }
        sizes
    }

    /// Data for these sizes, if the program can run at them; whether it can must be found by the compiler too.
    fn prepare(&self, plan: Plan, sizes: BTreeMap<String, i64>) -> Outcome<Option<Run>> {
        let scope = Scope::new(self.ast, &sizes);
        let bound = bind(self.program, &given(&sizes), self.places);
        let problem = match scope.bounds_hold(self.ast) {
            true => scope.violation(self.ast),
            false => Some("a declared bound".to_string()),
        };
        match (bound, problem) {
            (Ok(_), Some(problem)) => return Err(failure("wrong sizes are refused", format!("{sizes:?}: {problem}"))),
            // Extents of one index that differ are refused even where no element is computed.
            (Err(e), None) if e.iter().all(|d| d.code == "extents-differ") => return Ok(None),
            (Err(e), None) => return Err(failure("right sizes are accepted", format!("{sizes:?}: {}", listed(&e)))),
            (Err(_), Some(_)) => return Ok(None),
            (Ok(_), None) => {}
        }
        let filled = |name: &str, shape: &[i64]| {
            let shape: Vec<usize> = shape.iter().map(|&extent| extent as usize).collect();
            let count: usize = shape.iter().product();
            Array::new(shape, (0..count).map(|place| noise::value(plan.seed, plan.special, name, place)).collect())
        };
        let total: i64 = scope.shapes.values().map(|shape| shape.iter().product::<i64>()).sum();
        if total > 3000 {
            return Ok(None);
        }
        let names = inputs(self.ast).map(|input| input.name.text.clone());
        let data = names.map(|name| (name.clone(), filled(&name, &scope.shapes[&name]))).collect();
        let seed = |name: &String| (name.clone(), filled(&format!("{name}'"), &scope.shapes[name]));
        let seeds = outputs(self.ast).iter().map(seed).collect();
        Ok(Some(Run { sizes, data, seeds }))
    }

    fn values(&self, run: &Run, expected: &Brute) -> Outcome {
        let simpler = self.simpler.map(|program| ("value after simplify", program));
        let cheaper = self.cheaper.map(|program| ("value after economise", program));
        for (what, program) in std::iter::once(("value", self.program)).chain(simpler).chain(cheaper) {
            let found = evaluate(program, run, &run.data)?;
            let names: Vec<&String> = found.iter().map(|(name, _)| name).collect();
            if names != run.seeds.iter().map(|(name, _)| name).collect::<Vec<_>>() {
                return Err(failure("results", format!("found {names:?}")));
            }
            for (name, found) in &found {
                if what == "value" || !expected.tape.infinite {
                    same_values(what, run, name, found, &expected.array(name))?;
                }
            }
        }
        Ok(())
    }

    /// The derivatives by every input, from interp and from the printed text.
    fn gradients(&self, run: &Run, slopes: &[Vec<Slope>]) -> Outcome {
        let data = self.derivative_data(run);
        let found = evaluate(self.derivative, run, &data)?;
        for ((name, found), slopes) in found.iter().zip(slopes) {
            same_slopes("gradient", run, name, found, slopes)?;
        }
        if let Some(cheaper) = self.cheaper_derivative {
            for ((name, found), slopes) in evaluate(cheaper, run, &data)?.iter().zip(slopes) {
                same_slopes("gradient after economise", run, name, found, slopes)?;
            }
        }
        let Ok(ast) = syntax::parse(&print::print(self.derivative).unwrap_or_default()) else { return Ok(()) };
        if let Some(problem) = Scope::new(&ast, &run.sizes).violation(&ast) {
            return Err(failure("printed derivative stays in bounds", format!("{:?}: {problem}", run.sizes)));
        }
        let printed = brute(&ast, &run.sizes, &data);
        for (name, found) in &found {
            same_values("printed derivative", run, name, found, &printed.array(name))?;
        }
        Ok(())
    }

    /// Data and seeds under the names that the derivative gives them.
    fn derivative_data(&self, run: &Run) -> HashMap<String, Array> {
        let mut data = run.data.clone();
        let names = seed_names(self.program, |name| format!("d{name}"));
        data.extend(names.into_iter().zip(run.seeds.iter().map(|(_, seed)| seed.clone())));
        data
    }

    /// Forward and reverse mode agree on `df · J · x_dot`.
    fn tangents(&self, plan: Plan, run: &Run, forward: &Program, slopes: &[Vec<Slope>]) -> Outcome {
        let mut data = run.data.clone();
        let mut taken = taken(self.program);
        let mut expected = Slope::default();
        for (input, slopes) in inputs(self.ast).zip(slopes) {
            let name = fresh(format!("{}_dot", input.name.text), &mut taken);
            let mut tangent = run.data[&input.name.text].clone();
            for (place, (value, slope)) in tangent.data.iter_mut().zip(slopes).enumerate() {
                *value = noise::value(plan.seed, false, &format!("{}_dot", input.name.text), place);
                expected.value += *value * slope.value;
                expected.magnitude += value.abs() * slope.magnitude;
            }
            data.insert(name, tangent);
        }
        let found = evaluate(forward, run, &data)?;
        let products = found.iter().zip(&run.seeds).flat_map(|((_, dot), (_, seed))| dot.data.iter().zip(&seed.data));
        let found = products.fold(0.0, |sum, (dot, seed)| sum + dot * seed);
        same_slopes("forward mode", run, "df · f_dot", &Array::scalar(found), &[expected])
    }

    /// The Jacobians contracted with the seeds are the gradients.
    fn contracted(&self, run: &Run, jacobian: &Program, slopes: &[Vec<Slope>]) -> Outcome {
        let found = evaluate(jacobian, run, &run.data)?;
        for (number, slopes) in slopes.iter().enumerate() {
            let mut sum = vec![0.0; slopes.len()];
            for (result, (_, seed)) in run.seeds.iter().enumerate() {
                let (_, block) = &found[result * slopes_count(self.ast) + number];
                for (row, df) in block.data.chunks(slopes.len().max(1)).zip(&seed.data) {
                    row.iter().zip(&mut sum).for_each(|(j, sum)| *sum += df * j);
                }
            }
            let found = Array::new(vec![sum.len()], sum);
            same_slopes("Jacobian", run, &format!("input {number}"), &found, slopes)?;
        }
        Ok(())
    }

    /// The derivative's text, and its derivative; `None` where the language has no function for that.
    fn second_derivative(&self, findings: &mut Findings) -> Option<(Ast, Program)> {
        let text = findings.note(print::print(self.derivative).map_err(|e| failure("print", e.to_string())))?;
        let ast = syntax::parse(&text).ok()?;
        let second = match derive(self.derivative, &Options::default()) {
            Err(e) if e.iter().all(|d| d.code == "no-derivative") => return None,
            other => findings.note(other.map_err(|e| failure("derive twice", listed(&e))))?,
        };
        findings.note(well_formed("second derivative", &second.program));
        findings.note(confirmed(self.derivative, &second, &Options::default()));
        Some((ast, second.program))
    }

    /// The derivative of the derivative is the derivative of its text.
    fn second_order(&self, plan: Plan, run: &Run, ast: &Ast, second: &Program) -> Outcome {
        let mut data = self.derivative_data(run);
        if Scope::new(ast, &run.sizes).violation(ast).is_some() {
            return Ok(());
        }
        let expected = brute(ast, &run.sizes, &data);
        let seed = |name: &String| {
            let mut seed = expected.array(name);
            let noise = |(place, value): (usize, &mut f64)| {
                *value = noise::value(plan.seed, false, &format!("{name}''"), place)
            };
            seed.data.iter_mut().enumerate().for_each(noise);
            (name.clone(), seed)
        };
        let seeds: Vec<(String, Array)> = outputs(ast).iter().map(seed).collect();
        let wanted: Vec<String> = inputs(ast).map(|input| input.name.text.clone()).collect();
        let slopes = expected.gradient(&seeds, &wanted);
        let names = seed_names(self.derivative, |name| format!("d{name}"));
        data.extend(names.into_iter().zip(seeds.into_iter().map(|(_, seed)| seed)));
        if expected.tape.delicate || expected.tape.infinite && !plan.infinities {
            return Ok(());
        }
        for ((name, found), slopes) in evaluate(second, run, &data)?.iter().zip(&slopes) {
            let shown = |f: Failure| Failure {
                detail: format!("{}\nsecond derivative:\n{}", f.detail, print::print(second).unwrap_or_default()),
                ..f
            };
            same_slopes("second derivative", run, name, found, slopes).map_err(shown)?;
        }
        Ok(())
    }
}

fn slopes_count(ast: &Ast) -> usize {
    inputs(ast).count()
}

fn given(sizes: &BTreeMap<String, i64>) -> Known {
    let given = sizes.iter().map(|(name, &size)| (name.clone(), Int::from(size))).collect();
    Known { given, shapes: Vec::new() }
}

fn evaluate(program: &Program, run: &Run, data: &HashMap<String, Array>) -> Outcome<Vec<(String, Array)>> {
    let sizes = bind(program, &given(&run.sizes), &Places::default())
        .map_err(|e| failure("sizes of the program fit its derivative", format!("{:?}: {}", run.sizes, listed(&e))))?;
    let outcome = interp(program, &sizes, data, Dtype::F64);
    outcome.map(|o| o.results).map_err(|e| failure("interp", format!("{:?}: {e}", run.sizes)))
}

/// The names of the seeds, by the rule of section 5.
fn seed_names(program: &Program, name: impl Fn(&str) -> String) -> Vec<String> {
    let mut taken = taken(program);
    program.outputs.iter().map(|&f| fresh(name(&program[f].name), &mut taken)).collect()
}

fn taken(program: &Program) -> HashSet<String> {
    let tensors = program.tensors.iter().filter(|t| t.kind != TensorKind::Nested).map(|t| t.name.clone());
    let indices = program.definitions.iter().flat_map(|d| d.indices.iter().map(|i| i.name.clone()));
    tensors.chain(indices).chain(program.params.iter().map(|p| p.name.clone())).collect()
}

fn fresh(name: String, taken: &mut HashSet<String>) -> String {
    let numbered = (1..).map(|n| format!("{name}_{n}"));
    let free = std::iter::once(name.clone()).chain(numbered).find(|name| !taken.contains(name)).expect("endless");
    taken.insert(free.clone());
    free
}

fn same_values(what: &'static str, run: &Run, name: &str, found: &Array, expected: &Array) -> Outcome {
    if found.shape != expected.shape {
        let shapes = format!("{name} at {:?} has shape {:?}, expected {:?}", run.sizes, found.shape, expected.shape);
        return Err(failure(what, shapes));
    }
    let largest = expected.data.iter().filter(|v| v.is_finite()).fold(1.0, |a: f64, b| a.max(b.abs()));
    for (place, (&found, &expected)) in found.data.iter().zip(&expected.data).enumerate() {
        let close = (found - expected).abs() <= 1e-9 * largest;
        if !(close || found == expected || found.is_nan() && expected.is_nan()) {
            let detail = format!("{name} at element {place}, sizes {:?}: {found}, expected {expected}", run.sizes);
            return Err(failure(what, detail));
        }
    }
    Ok(())
}

/// Where the expected derivative is not finite, anything goes.
fn same_slopes(what: &'static str, run: &Run, name: &str, found: &Array, expected: &[Slope]) -> Outcome {
    if found.data.len() != expected.len() {
        return Err(failure(what, format!("{name} has {} elements, expected {}", found.data.len(), expected.len())));
    }
    for (place, (&found, slope)) in found.data.iter().zip(expected).enumerate() {
        let close = (found - slope.value).abs() <= 1e-9 * (1.0 + slope.magnitude);
        if !close && slope.magnitude.is_finite() {
            let detail = format!("{name} at element {place}, sizes {:?}: {found}, expected {}", run.sizes, slope.value);
            return Err(failure(what, detail));
        }
    }
    Ok(())
}
