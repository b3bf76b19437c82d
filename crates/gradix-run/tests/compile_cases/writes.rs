//! All loops of a nest run through, to see what they write.

use gradix::Int;
use gradix::nest::{ByLoop, Leaf, LoopId, Nest, Scope, Step, Work, along, evaluate, leaves, print};
use gradix::program::{Affine, Atom, Constraint, Expr, ParamId, Range, TensorId};

/// All loops are run through without their reductions: results and temporaries are written once, inputs never.
pub fn every_element_is_written_once(title: &str, nest: &Nest, sizes: &[Int]) {
    let buffers = (0..nest.buffers.len() as u32).map(TensorId);
    let mut writes: Vec<Vec<usize>> = buffers.map(|b| vec![0; nest.elements(b, sizes).unwrap()]).collect();
    for kernel in &nest.kernels {
        let counts: Vec<usize> = kernel.work.iter().map(|work| usize::try_from(&work.items(sizes)).unwrap()).collect();
        let reductions = leaves(&kernel.steps).into_iter().filter(|leaf| leaf.reduction.is_some());
        let reductions: Vec<TensorId> = reductions.map(|leaf| leaf.target).collect();
        for item in 0..nest.items(kernel, sizes).unwrap() {
            let point = ByLoop(vec![Int::ZERO; kernel.variables.len()]);
            let mut run = Run { nest, sizes, point, reductions: &reductions, writes: &mut writes };
            along(item, &counts, &mut |dimension, number| run.covers(&kernel.work[dimension], number));
            kernel.steps.iter().for_each(|step| run.step(step));
        }
    }
    for (buffer, writes) in nest.buffers.iter().zip(&writes) {
        let wanted = match buffer.scope {
            Scope::Input(_) => 0,
            Scope::Output(_) => 1,
            // What is computed in place of it may leave a temporary without use.
            Scope::Run if writes.iter().all(|count| *count == 0) => 0,
            Scope::Run => 1,
            Scope::Local(_) => continue,
        };
        let wrong = writes.iter().position(|count| *count != wanted);
        let name = &buffer.name;
        assert_eq!(
            wrong,
            None,
            "`{title}` at {sizes:?}: element of '{name}' not written {wanted} times\n{}",
            print(nest)
        );
    }
}

/// One item of a kernel.
struct Run<'a> {
    nest: &'a Nest,
    sizes: &'a [Int],
    point: ByLoop<Int>,
    /// What the reductions of the kernel write.
    reductions: &'a [TensorId],
    /// How often each element of each buffer was written, other than by going on from what it holds.
    writes: &'a mut [Vec<usize>],
}

impl Run<'_> {
    /// The item of this number along a dimension of the grid.
    fn covers(&mut self, work: &Work, number: usize) {
        let (step, high) = (evaluate(&work.step, self.sizes).max(Int::ONE), evaluate(&work.high, self.sizes));
        let first = evaluate(&work.low, self.sizes) + &step * Int::from(number);
        self.point[work.last] = (&first + step - Int::ONE).min(high);
        self.point[work.first] = first;
        self.point[work.item] = Int::from(number);
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Leaf(leaf) => self.leaf(leaf, 0),
            Step::Together(together) => together.leaves.iter().for_each(|leaf| self.leaf(leaf, 0)),
            Step::Tile(tile) => {
                let (mut value, high) = self.bounds(&tile.range);
                while value <= high {
                    self.point[tile.variable] = value.clone();
                    tile.steps.iter().for_each(|step| self.step(step));
                    value += Int::from(tile.size);
                }
            }
        }
    }

    fn leaf(&mut self, leaf: &Leaf, depth: usize) {
        if depth < leaf.outputs {
            let (mut value, high) = self.bounds(&leaf.loops[depth].range);
            while value <= high {
                self.point[leaf.loops[depth].variable] = value.clone();
                self.leaf(leaf, depth + 1);
                value += Int::ONE;
            }
        } else if !leaf.accumulate && !self.adds(leaf) && (leaf.reduction.is_some() || self.all_hold(&leaf.guards)) {
            let (place, neutral) = (self.place(leaf), self.is_neutral(leaf));
            let writes = &mut self.writes[leaf.target.0 as usize][place];
            // Where its condition fails, a reduction may have been computed as well.
            *writes = if neutral { (*writes).max(1) } else { *writes + 1 };
        }
    }

    /// Whether a leaf sets a number where a reduction of its kernel has no terms.
    fn is_neutral(&self, leaf: &Leaf) -> bool {
        let mut reductions = self.reductions.iter();
        let of_reduction = reductions.any(|target| *target == leaf.target);
        leaf.reduction.is_none() && of_reduction && matches!(self.nest.exprs[leaf.body], Expr::Constant(_))
    }

    /// Whether a leaf adds to what its target holds: then something else has written that.
    fn adds(&self, leaf: &Leaf) -> bool {
        let mut read = self.nest.exprs.accesses(leaf.body);
        read.any(|(tensor, subscripts)| tensor == leaf.target && subscripts == leaf.subscripts)
    }

    fn at(&self, affine: &Affine) -> Int {
        affine.evaluate(&|atom| self.atom(atom))
    }

    fn atom(&self, atom: &Atom) -> Int {
        match atom {
            Atom::Index(variable) => self.point[LoopId(*variable)].clone(),
            Atom::Param(ParamId(param)) => self.sizes[*param as usize].clone(),
            Atom::Floor(..) => unreachable!("evaluated by its parts"),
        }
    }

    fn all_hold(&self, guards: &[Constraint]) -> bool {
        guards.iter().all(|guard| guard.holds(&|atom| self.atom(atom)))
    }

    fn bounds(&self, range: &Range) -> (Int, Int) {
        let low = range.low.iter().map(|bound| self.at(bound)).max().unwrap();
        (low, range.high.iter().map(|bound| self.at(bound)).min().unwrap())
    }

    fn place(&self, leaf: &Leaf) -> usize {
        let mut place = 0;
        for (subscript, extent) in leaf.subscripts.iter().zip(&self.nest[leaf.target].extents) {
            let (subscript, extent) = (self.at(subscript), evaluate(extent, self.sizes));
            let name = &self.nest[leaf.target].name;
            assert!(Int::ZERO <= subscript && subscript < extent, "'{name}' is written at {subscript} of {extent}");
            place = place * usize::try_from(&extent).unwrap() + usize::try_from(&subscript).unwrap();
        }
        place
    }
}
