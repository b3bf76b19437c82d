//! What is known at one place of a definition while it is walked.

use crate::diagnostic::{Diagnostic, Span};
use crate::domain::guard;
use crate::program::{Affine, CondId, Constraint, ExprId, Exprs, Index, Range, TensorId, build};

/// What is at hand at one place of a definition. Indices are numbered by their depth.
pub(super) struct Frame {
    pub(super) name: String,
    pub(super) scope: Vec<(String, usize)>,
    pub(super) indices: Vec<Index>,
    /// Ranges by order of introduction, in the numbers of the survey.
    pub(super) ranges: Vec<Range>,
    /// The depth of each index of the survey that is in scope.
    pub(super) depths: Vec<Option<usize>>,
    pub(super) next: usize,
    /// Index conditions that hold here.
    pub(super) assumptions: Vec<Constraint>,
    /// Conditions on indices that hold, too, and are no conjunction of constraints.
    pub(super) split: Vec<CondId>,
    /// Places of accesses, until their definition is known.
    pub(super) accesses: Vec<(ExprId, Span)>,
    /// Places of accesses in nested definitions.
    pub(super) placed: Vec<(TensorId, ExprId, Span)>,
    /// The accesses to nested definitions made so far, to share equal ones.
    pub(super) shared: Vec<ExprId>,
    /// A mistake inside a reduction: later reductions of this definition are not looked at.
    pub(super) broken: Option<Diagnostic>,
}

impl Frame {
    /// Brings the next index of the survey into scope.
    pub(super) fn push(&mut self, name: &str) {
        let depth = self.indices.len();
        self.depths[self.next] = Some(depth);
        let depths = &self.depths;
        let map: Vec<Affine> = depths.iter().map(|d| Affine::index(d.map_or(u32::MAX as usize, |d| d))).collect();
        let range = self.ranges[self.next].map(|bound| bound.with_indices(&map));
        self.scope.push((name.to_string(), depth));
        self.indices.push(Index { name: name.to_string(), range });
        self.next += 1;
    }

    /// Notes that a condition has this outcome from here on, for sizes that satisfy `context`.
    pub(super) fn assume(&mut self, exprs: &mut Exprs, condition: CondId, outcome: bool, context: &[Constraint]) {
        let ranges = self.indices.iter().enumerate().flat_map(|(depth, index)| index.range.constraints(depth));
        let domain: Vec<Constraint> = context.iter().chain(&self.assumptions).cloned().chain(ranges).collect();
        let (facts, is_split) = guard::facts_within(exprs, condition, outcome, &domain);
        self.assumptions.extend(facts);
        if is_split {
            self.split.push(if outcome { condition } else { build::opposite(exprs, condition) });
        }
    }

    pub(super) fn pop_to(&mut self, depth: usize, assumed: usize) {
        self.scope.truncate(depth);
        self.indices.truncate(depth);
        self.assumptions.truncate(assumed);
    }
}
