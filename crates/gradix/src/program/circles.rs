//! Definitions that read each other in a circle.

use super::{Definition, Expr, ExprId, Program, TensorId, TensorKind};
use std::collections::{HashMap, HashSet};

/// The definitions by number, in an order in which they can be computed: each alone, or with all others of its circle.
/// Units that could stand in either order stand as their first definitions do.
pub fn units(program: &Program) -> Vec<Vec<usize>> {
    let reads = reads(program);
    if reads.iter().enumerate().all(|(number, reads)| reads.iter().all(|read| *read < number)) {
        return (0..reads.len()).map(|number| vec![number]).collect();
    }
    grouped(&reads, &components(&reads))
}

/// The components of a graph, each after those that its edges lead to, and as early as its first node.
pub fn grouped(edges: &[Vec<usize>], component: &[usize]) -> Vec<Vec<usize>> {
    let mut members: HashMap<usize, Vec<usize>> = HashMap::new();
    for (node, &own) in component.iter().enumerate() {
        members.entry(own).or_default().push(node);
    }
    let (mut groups, mut done) = (Vec::new(), vec![false; edges.len()]);
    for start in 0..edges.len() {
        let mut open = vec![component[start]];
        while let Some(&own) = open.last() {
            let ends = members[&own].iter().flat_map(|&node| &edges[node]).map(|&end| component[end]);
            let missing = ends.filter(|&other| other != own && !done[other]).min();
            match missing {
                Some(other) if !done[own] => open.push(other),
                _ => {
                    open.pop();
                    if !std::mem::replace(&mut done[own], true) {
                        groups.push(members[&own].clone());
                    }
                }
            }
        }
    }
    groups
}

/// A definition that another one, which is not in its circle, reads although it stands later.
pub fn read_before(program: &Program) -> Option<TensorId> {
    let reads = reads(program);
    let circle = components(&reads);
    let early = |(number, reads): (usize, &Vec<usize>)| {
        reads.iter().copied().find(|&read| read >= number && circle[read] != circle[number])
    };
    reads.iter().enumerate().find_map(early).map(|number| program.definitions[number].tensor)
}

/// The circles among the definitions: those of several, and those of one that reads itself.
pub fn circles(program: &Program) -> Vec<Vec<usize>> {
    let is_circle = |unit: &Vec<usize>| unit.len() > 1 || reads_itself(program, &program.definitions[unit[0]]);
    units(program).into_iter().filter(is_circle).collect()
}

/// The tensors that belong to some circle, with its number.
pub fn recurrent(program: &Program) -> HashMap<TensorId, usize> {
    let circles = circles(program).into_iter().enumerate();
    let members = circles.flat_map(|(circle, members)| members.into_iter().map(move |number| (number, circle)));
    members.map(|(number, circle)| (program.definitions[number].tensor, circle)).collect()
}

/// The tensors themselves, and all that read one of them, maybe by way of others.
pub fn depending(program: &Program, tensors: impl IntoIterator<Item = TensorId>) -> HashSet<TensorId> {
    depending_by(program, tensors, &|body| program.exprs.postorder(body))
}

/// The tensors themselves, and all whose derivatives by them need not be 0: what `stop` holds does not count.
pub fn varying(program: &Program, tensors: impl IntoIterator<Item = TensorId>) -> HashSet<TensorId> {
    depending_by(program, tensors, &|body| program.exprs.flowing(body))
}

fn depending_by(
    program: &Program,
    tensors: impl IntoIterator<Item = TensorId>,
    nodes: &dyn Fn(ExprId) -> Vec<ExprId>,
) -> HashSet<TensorId> {
    let mut found: HashSet<TensorId> = tensors.into_iter().collect();
    for unit in units(program) {
        let members = || unit.iter().map(|&number| &program.definitions[number]);
        let mut nodes = members().flat_map(|definition| nodes(definition.body));
        if nodes.any(|id| matches!(&program.exprs[id], Expr::Access(read, _) if found.contains(read))) {
            found.extend(members().map(|d| d.tensor));
        }
    }
    found
}

/// Whether a definition reads its own tensor.
pub fn reads_itself(program: &Program, definition: &Definition) -> bool {
    program.exprs.reads(definition.body, definition.tensor)
}

/// Puts the definitions in an order in which they can be computed, those of a circle side by side.
pub fn sort(program: &mut Program) {
    let order: Vec<usize> = units(program).into_iter().flatten().collect();
    if !order.is_sorted() {
        program.definitions = order.into_iter().map(|number| program.definitions[number].clone()).collect();
    }
}

/// The named definitions that some other named definition reads, if need be by way of nested ones.
pub fn used_by_others(program: &Program) -> HashSet<TensorId> {
    let mut owners: HashMap<TensorId, TensorId> = HashMap::new();
    let mut used = HashSet::new();
    // A nested definition stands before its reader.
    for definition in program.definitions.iter().rev() {
        let owner = *owners.get(&definition.tensor).unwrap_or(&definition.tensor);
        for (read, _) in program.exprs.accesses(definition.body) {
            match program[read].kind {
                TensorKind::Nested => drop(owners.insert(read, owner)),
                TensorKind::Defined | TensorKind::Input if read != owner => drop(used.insert(read)),
                TensorKind::Defined | TensorKind::Input => {}
            }
        }
    }
    used
}

/// The definitions that each reads, by number.
fn reads(program: &Program) -> Vec<Vec<usize>> {
    let number: HashMap<TensorId, usize> = program.definitions.iter().enumerate().map(|(i, d)| (d.tensor, i)).collect();
    let of = |definition: &Definition| {
        let accesses = program.exprs.accesses(definition.body);
        accesses.filter_map(|(tensor, _)| number.get(&tensor).copied()).collect()
    };
    program.definitions.iter().map(of).collect()
}

/// The strongly connected components of a graph: for each node, the first node of its component.
pub fn components(edges: &[Vec<usize>]) -> Vec<usize> {
    let mut backward = vec![Vec::new(); edges.len()];
    for (from, ends) in edges.iter().enumerate() {
        ends.iter().for_each(|&to| backward[to].push(from));
    }
    let mut component = vec![usize::MAX; edges.len()];
    for start in finished(edges).into_iter().rev() {
        let (mut found, mut open) = (Vec::new(), vec![start]);
        while let Some(node) = open.pop() {
            if component[node] == usize::MAX {
                component[node] = start;
                found.push(node);
                open.extend(&backward[node]);
            }
        }
        let first = found.iter().copied().min().unwrap_or(start);
        found.into_iter().for_each(|node| component[node] = first);
    }
    component
}

/// The nodes in the order in which a search from each, depth first, is done with them.
fn finished(edges: &[Vec<usize>]) -> Vec<usize> {
    let (mut order, mut seen) = (Vec::new(), vec![false; edges.len()]);
    for start in 0..edges.len() {
        let mut open = vec![(start, 0)];
        while let Some((node, next)) = open.pop() {
            if next == 0 && std::mem::replace(&mut seen[node], true) {
                continue;
            }
            match edges[node].get(next) {
                Some(&to) => open.extend([(node, next + 1), (to, 0)]),
                None => order.push(node),
            }
        }
    }
    order
}

#[cfg(test)]
mod tests {
    use super::components;

    #[test]
    fn nodes_that_reach_each_other_are_one_component() {
        let edges = [vec![1], vec![2], vec![0, 3], vec![3], vec![0], vec![6], vec![5, 4]];
        assert_eq!(components(&edges), [0, 0, 0, 3, 4, 5, 5]);
        assert_eq!(components(&[]), [0usize; 0]);
    }
}
