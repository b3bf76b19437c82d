//! The same values with fewer operations: algebra that is applied before anything is scheduled.
//!
//! ```text
//! sum[j] p[i,j] * (x[i,d] - z[j,d])        x[i,d] * sum[j] p[i,j] - sum[j] p[i,j] * z[j,d]       split
//! sum[j,k] T[i,j,k] * B[j,r] * C[k,r]      sum[j] B[j,r] * sum[k] T[i,j,k] * C[k,r]              eliminate
//! sum[j,k] e[i - k, j]                     sum[k] S[i - k]  with  S[p] = sum[j] e[p, j]          eliminate
//! sum[d] exp(-s[i,j]) * z[j,d]             sum[d] E[i,j] * z[j,d]  with  E[i,j] = exp(-s[i,j])   hoist
//! f = … sum[k] a[i,k]^2 …, g = … sum[l] a[j,l]^2 …    one definition, read by both               share
//! sum[k in i..i+64] t[k]                   sum[b in 0..8] S[i + 8*b]  with  S[p] = sum[q in 0..8] t[p+q]   windows
//! E[i,j] = exp(…), read as E[i,j] * dy[i] only        E[i,j] = exp(…) * dy[i]                    absorb
//! ```
//!
//! Before these rules, `logsumexp` is written out as a maximum and a sum (`write_out`), and terms that are compared with their `max` or `min` become definitions of their own
//! (`ties`), so that they are the same to the last bit in both places.
//!
//! Every rule proposes ways to write a definition by way of parts, which are definitions of their own. A way is
//! taken if it lowers the number of operations at the assumed sizes ([`work`](mod@work)); a part that several definitions
//! can use counts once. So the number of operations never rises, as far as the sizes are near those assumed.
//!
//! **What may differ.** Values agree up to rounding wherever every term of every sum is finite and no partial sum or
//! product overflows. A product with a sum is multiplied out, so that its error is relative to the size of
//! its terms (`|p| * (|x| + |z|)`), as in a matrix product; squares, and products of sums that read the same
//! tensor, are left alone. A factor that can be infinite or NaN for finite values stands beside a sum only
//! if that sum is never empty. Where an input is infinite or NaN, `inf - inf` and `0 * inf` may appear or vanish.

mod absorb;
mod body;
pub mod canon;
mod choose;
mod elements;
mod eliminate;
mod hoist;
mod little;
mod number;
mod orient;
mod part;
mod reorder;
mod repeats;
mod rewrite;
mod share;
mod split;
mod straighten;
mod ties;
mod windows;
pub mod work;
mod write_out;
mod zeros;

use crate::diagnostic::Diagnostic;
use crate::program::expr::Rewriter;
use crate::program::{Affine, Constraint, Definition, ExprId, Program, ReduceOp, TensorId, TensorKind, circles, names};
use crate::simplify;
use crate::target::cost;
use canon::{Canon, Key};
use choose::{Choices, Provider, Way};
pub use elements::elements_once;
pub use little::{additions, is_little};
pub use repeats::repeats_once;
use rewrite::{Ids, Rewrite};
use share::{Known, Replace};
use std::collections::{BTreeMap, HashMap, HashSet};
use work::{Work, elements, work};

/// More sweeps than any program is known to need.
const MAX_SWEEPS: usize = 24;
/// More times than any program is known to need until nothing changes.
const MAX_AGAIN: usize = 3;

/// The program with fewer operations. `estimate` has an assumed value for every param.
///
/// ```
/// let ast = gradix::syntax::parse("input A[N, N], B[N, N], x[N]\ny[i] = sum[j, k] A[i, j] * B[j, k] * x[k]").unwrap();
/// let program = gradix::resolve(&ast, &[]).unwrap().program;
/// let cheap = gradix::economise(&program, &[512.0]).unwrap();
/// let text = gradix::print(&cheap).unwrap();
/// assert!(text.contains("y[i] = sum[j] A[i, j] * sum[k] B[j, k] * x[k]"), "{text}");
/// ```
pub fn economise(program: &Program, estimate: &[f64]) -> Result<Program, Diagnostic> {
    economise_within(program, estimate, cost::LARGE_PART_ADDITIONS)
}

/// The same without new definitions that have more elements than all inputs and results.
pub fn economise_lean(program: &Program, estimate: &[f64]) -> Result<Program, Diagnostic> {
    economise_within(program, estimate, f64::INFINITY)
}

fn economise_within(program: &Program, estimate: &[f64], large: f64) -> Result<Program, Diagnostic> {
    // Of a program with recurrences, the parts are economised.
    if !circles::circles(program).is_empty() {
        return Ok(program.clone());
    }
    let named = program.params.iter().map(|param| param.name.clone());
    let assumed: HashMap<String, f64> = named.zip(estimate.iter().copied()).collect();
    let mut best = economised(program, &assumed, large)?;
    // What is settled may be seen in another way: what comes out stays as it is.
    for _ in 0..MAX_AGAIN {
        let again = economised(&best, &assumed, large)?;
        if again == best {
            break;
        }
        best = again;
    }
    Ok(best)
}

/// The program with fewer operations, until nothing saves any more.
fn economised(program: &Program, assumed: &HashMap<String, f64>, large: f64) -> Result<Program, Diagnostic> {
    let mut best = settled(prepared(program)?)?;
    let sizes = work::sizes(&best, assumed);
    if orient::orient(&mut best, &sizes) {
        best = settled(best)?;
    }
    let context = best.size_context();
    if reorder::reorder(&mut best, &sizes, &context) {
        best = settled(best)?;
    }
    let mut before = works(&best, assumed);
    for _ in 0..MAX_SWEEPS {
        let next = sweep(&best, &before, assumed, large).and_then(|next| settled(next).ok());
        let next = next.map(|next| (works(&next, assumed), next)).filter(|(after, _)| is_cheaper(after, &before));
        let absorbed = || absorbed(&best, assumed).map(|next| (works(&next, assumed), next));
        let Some(next) = next.or_else(absorbed) else { break };
        (before, best) = next;
    }
    Ok(best)
}

fn is_cheaper(after: &[Work], before: &[Work]) -> bool {
    let [before, after] = [before, after].map(total);
    after.operations <= before.operations && after.weight < before.weight
}

/// With factors moved into parts, if there are any.
fn absorbed(program: &Program, assumed: &HashMap<String, f64>) -> Option<Program> {
    let mut next = program.clone();
    let (context, sizes) = (program.size_context(), work::sizes(program, assumed));
    let changed = absorb::absorb(&mut next, &sizes, &context);
    changed.then(|| settled(next).ok()).flatten()
}

/// The program in operations that loops have: what takes all values at once is written out, and terms that are compared with
/// their reduction are computed in one place.
pub fn prepared(program: &Program) -> Result<Program, Diagnostic> {
    let mut program = program.clone();
    write_out::write_out(&mut program);
    straighten::straighten(&mut program);
    ties::store(&mut program)?;
    Ok(program)
}

/// Simplified, without terms that are zero, and equal definitions computed once.
fn settled(mut program: Program) -> Result<Program, Diagnostic> {
    let mut taken = names::taken(&program);
    for _ in 0..MAX_SWEEPS {
        simplify::run(&mut program, HashSet::new(), &mut taken, false)?;
        if straighten::straighten(&mut program) {
            simplify::run(&mut program, HashSet::new(), &mut taken, false)?;
        }
        for _ in 0..MAX_SWEEPS {
            let context = program.size_context();
            if !share::share(&mut program, &context) {
                break;
            }
            simplify::run(&mut program, HashSet::new(), &mut taken, false)?;
        }
        if !zeros::leave_out(&mut program) {
            break;
        }
    }
    Ok(program)
}

/// The work of each definition.
fn works(program: &Program, assumed: &HashMap<String, f64>) -> Vec<Work> {
    let sizes = work::sizes(program, assumed);
    program.definitions.iter().map(|definition| work(&program.exprs, definition, &sizes)).collect()
}

fn total(works: &[Work]) -> Work {
    works.iter().copied().fold(Work::default(), std::ops::Add::add)
}

/// Takes the ways that save most, one for each definition; `None` if there is none.
fn sweep(program: &Program, works: &[Work], assumed: &HashMap<String, f64>, large: f64) -> Option<Program> {
    let mut program = program.clone();
    let context = program.size_context();
    let sizes = work::sizes(&program, assumed);
    let mut canon = Canon::default();
    let existing = learn(&program, &mut canon);
    let common = hoist::common(&program, &mut canon, &existing);
    let ways = ways(&mut program, works, &mut canon, &common, &sizes, &context);
    let room = room(&program, &sizes);
    let mut choices = Choices { program, context, sizes, existing, ways, room, large, valid: HashMap::new() };
    let chosen = choices.choose();
    if chosen.is_empty() {
        return None;
    }
    let Choices { program, ways, context, .. } = choices;
    Some(apply(program, ways, chosen, &context))
}

fn learn(program: &Program, canon: &mut Canon) -> HashMap<Key, Provider> {
    let mut existing = HashMap::new();
    for (place, definition) in program.definitions.iter().enumerate() {
        let form = canon.learn(&program.exprs, definition);
        let open = share::unmasked(&program.exprs, definition).map(|open| (canon.form(&program.exprs, &open), open));
        let known = Known::new(definition, &form);
        existing.entry(form.key).or_insert(Provider { known, place, masked: false });
        if let Some((form, open)) = open {
            let known = Known::new(&open, &form);
            existing.entry(form.key).or_insert(Provider { known, place, masked: true });
        }
    }
    existing
}

/// The elements of all inputs and results.
fn room(program: &Program, sizes: &[f64]) -> f64 {
    let results = program.definitions.iter().filter(|d| program.outputs.contains(&d.tensor));
    let results: f64 = results.map(|d| elements(d, sizes)).sum();
    results + program.inputs().map(|id| program[id].elements(sizes)).sum::<f64>()
}

/// Every way that the rules propose.
fn ways(
    program: &mut Program,
    works: &[Work],
    canon: &mut Canon,
    common: &[HashSet<ExprId>],
    sizes: &[f64],
    context: &[Constraint],
) -> Vec<Way> {
    let lazy = share::lazy(program);
    let all = total(works);
    let mut ids = Ids::default();
    let mut ways = Vec::new();
    for (place, (common, before)) in common.iter().zip(works.iter().copied()).enumerate() {
        let site = program.definitions[place].clone();
        if lazy.contains(&site.tensor) {
            continue;
        }
        let mut rewrites = eliminate::eliminations(program, &site, &mut ids, context);
        rewrites.extend(split::splits(program, &site, &mut ids, sizes, context));
        rewrites.extend(hoist::hoists(program, &site, &mut ids, context, common));
        if before.weight >= cost::WINDOW_WORK_SHARE * all.weight {
            rewrites.extend(windows::windows(program, &site, &mut ids, sizes));
        }
        for rewrite in rewrites {
            let exprs = &program.exprs;
            let forms = rewrite.parts.iter().map(|part| canon.learn(exprs, &part.definition)).collect();
            let price = |definition: &Definition| {
                let store = match definition.reduction {
                    Some(_) => cost::SUMMED_VALUE_ADDITIONS,
                    None => cost::KEPT_VALUE_ADDITIONS,
                };
                let kept = Work { operations: 0.0, weight: store * elements(definition, sizes) };
                work(exprs, definition, sizes) + kept
            };
            let costs = rewrite.parts.iter().map(|part| price(&part.definition)).collect();
            let saved = before - work(exprs, &rewrite.main, sizes);
            if saved.weight > 0.0 {
                ways.push(Way { place, rewrite, forms, costs, before, saved });
            }
        }
    }
    ways
}

/// Writes the definitions in the ways chosen, by place. A part that is there already is read again.
fn apply(mut program: Program, ways: Vec<Way>, chosen: BTreeMap<usize, usize>, context: &[Constraint]) -> Program {
    let mut canon = Canon::default();
    let mut known: HashMap<Key, Known> = HashMap::new();
    for (place, definition) in std::mem::take(&mut program.definitions).into_iter().enumerate() {
        let mut definition = definition;
        if let Some(way) = chosen.get(&place) {
            let Rewrite { parts, main, .. } = ways[*way].rewrite.clone();
            let mut replaced: HashMap<TensorId, (Vec<Affine>, TensorId)> = HashMap::new();
            for part in parts {
                let mut new = part.definition;
                let placeholder = new.tensor;
                new.body = Rewriter::default().rewrite(&mut program.exprs, new.body, &mut Replace(&replaced));
                let form = canon.form(&program.exprs, &new);
                let own = Known::new(&new, &form);
                let outputs = new.outputs();
                if let Some(first) = known.get(&form.key).filter(|first| first.covers(&own, context)) {
                    replaced.insert(placeholder, (first.subscripts(&form, &outputs), first.tensor));
                    continue;
                }
                let name = part_name(&program, definition.tensor, new.reduction);
                new.tensor = program.add_nested(name, new.rank);
                replaced.insert(placeholder, (outputs, new.tensor));
                canon.learn(&program.exprs, &new);
                known.insert(form.key.clone(), Known { tensor: new.tensor, ..own });
                program.definitions.push(new);
            }
            definition = main;
            definition.body = Rewriter::default().rewrite(&mut program.exprs, definition.body, &mut Replace(&replaced));
        }
        let form = canon.learn(&program.exprs, &definition);
        known.entry(form.key.clone()).or_insert_with(|| Known::new(&definition, &form));
        if let Some(open) = share::unmasked(&program.exprs, &definition) {
            let form = canon.form(&program.exprs, &open);
            known.entry(form.key.clone()).or_insert_with(|| Known::new(&open, &form));
        }
        program.definitions.push(definition);
    }
    program
}

/// A part is called after the definition that it is made for.
fn part_name(program: &Program, owner: TensorId, reduction: Option<ReduceOp>) -> String {
    let name = &program[owner].name;
    match (reduction, program[owner].kind) {
        (_, TensorKind::Nested) => name.clone(),
        (Some(op), _) => format!("{name}_{}", op.name()),
        (None, _) => format!("{name}_part"),
    }
}
