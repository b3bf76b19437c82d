//! How much work one evaluation of an expression is.

use super::work::Work;
use crate::program::expr::Exprs;
use crate::program::hash::QuickSet;
use crate::program::{Affine, Cond, CondId, Constraint, Expr, ExprId, Relation};
use crate::target::cost;
use std::collections::HashMap;

/// An expression made ready for counting: its nodes in order, each with its operands by their places.
pub struct Body {
    nodes: Vec<(Work, Vec<usize>, Option<Choice>)>,
    /// Whether a condition chooses what is evaluated.
    pub chooses: bool,
    /// The work of everything, all branches included.
    pub all: Work,
}

/// `if test then a else b`, by the places of the branches.
struct Choice(Test, usize, usize);

/// A condition, with what it compares by their places.
enum Test {
    Index(Constraint),
    Compare(usize, usize),
    Not(Box<Test>),
    And(Box<Test>, Box<Test>),
    Or(Box<Test>, Box<Test>),
}

impl Body {
    /// Makes an expression ready. Of a reduction, the indices from `terms` on are reduced over.
    pub fn of(exprs: &Exprs, root: ExprId, terms: Option<usize>) -> Self {
        let turn = |id: ExprId| match terms.is_some_and(|rank| turns(exprs, id, rank)) {
            true => Work { operations: 0.0, weight: cost::TURN_ADDITIONS },
            false => Work::default(),
        };
        Self::priced(exprs, root, &|id| price(exprs, id) + turn(id))
    }

    /// Makes an expression ready where each of its nodes alone is this much work.
    pub fn priced(exprs: &Exprs, root: ExprId, price: &dyn Fn(ExprId) -> Work) -> Self {
        let order = exprs.postorder(root);
        let places: HashMap<ExprId, usize> = order.iter().enumerate().map(|(place, id)| (*id, place)).collect();
        let node = |id: &ExprId| match exprs[*id] {
            Expr::Select(c, a, b) => {
                (price(*id), Vec::new(), Some(Choice(Test::of(exprs, c, &places), places[&a], places[&b])))
            }
            _ => (price(*id), exprs.operands(*id).iter().map(|o| places[o]).collect(), None),
        };
        let nodes: Vec<_> = order.iter().map(node).collect();
        let all = nodes.iter().fold(Work::default(), |sum, (price, ..)| sum + *price);
        Body { chooses: nodes.iter().any(|(_, _, choice)| choice.is_some()), nodes, all }
    }

    /// The work of one evaluation; branches that nothing decides count both.
    pub fn at(&self, outcome: &dyn Fn(&Constraint) -> bool) -> Work {
        if !self.chooses {
            return self.all;
        }
        let mut needed = vec![false; self.nodes.len()];
        needed[self.nodes.len() - 1] = true;
        let mut total = Work::default();
        // Operands stand before their users.
        for (place, (price, operands, choice)) in self.nodes.iter().enumerate().rev() {
            if !needed[place] {
                continue;
            }
            total = total + *price;
            operands.iter().for_each(|&operand| needed[operand] = true);
            if let Some(Choice(test, a, b)) = choice {
                let taken = test.outcome(outcome, &mut needed, &mut total);
                needed[*a] |= taken != Some(false);
                needed[*b] |= taken != Some(true);
            }
        }
        total
    }
}

impl Test {
    fn of(exprs: &Exprs, id: CondId, places: &HashMap<ExprId, usize>) -> Self {
        let part = |id: CondId| Box::new(Test::of(exprs, id, places));
        match &exprs[id] {
            Cond::Index(constraint) => Test::Index(constraint.clone()),
            Cond::Compare(_, a, b) => Test::Compare(places[a], places[b]),
            Cond::Not(a) => Test::Not(part(*a)),
            Cond::And(a, b) => Test::And(part(*a), part(*b)),
            Cond::Or(a, b) => Test::Or(part(*a), part(*b)),
        }
    }

    /// The outcome, if indices decide it; what is compared is needed.
    fn outcome(&self, index: &dyn Fn(&Constraint) -> bool, needed: &mut [bool], total: &mut Work) -> Option<bool> {
        let mut part = |test: &Test| test.outcome(index, needed, total);
        match self {
            Test::Index(constraint) => Some(index(constraint)),
            Test::Not(a) => part(a).map(|holds| !holds),
            Test::And(a, b) => match part(a) {
                Some(false) => Some(false),
                Some(true) => part(b),
                None => part(b).filter(|holds| !holds),
            },
            Test::Or(a, b) => match part(a) {
                Some(true) => Some(true),
                Some(false) => part(b),
                None => part(b).filter(|holds| *holds),
            },
            Test::Compare(a, b) => {
                (needed[*a], needed[*b]) = (true, true);
                *total = *total + Work { operations: 1.0, weight: 1.0 };
                None
            }
        }
    }
}

/// Whether a node keeps a loop over one of the indices from `rank` on from being straight: it chooses by where that is, or
/// reads an element at a remainder of it. (A single point, as on a diagonal, is masked.)
pub fn turns(exprs: &Exprs, id: ExprId, rank: usize) -> bool {
    let uses = |affine: &Affine| {
        let mut found = false;
        affine.visit_indices(&mut |index| found |= index >= rank);
        found
    };
    match &exprs[id] {
        Expr::Select(c, ..) => {
            let mut found = false;
            exprs.visit_condition(*c, &mut |condition| {
                let Cond::Index(Constraint { affine, relation: Relation::NonNegative }) = condition else { return };
                found |= uses(affine);
            });
            found
        }
        Expr::Access(_, subscripts) => subscripts.iter().any(|s| !s.is_straight() && uses(s)),
        Expr::Constant(_) | Expr::Index(_) | Expr::Unary(..) | Expr::Binary(..) => false,
    }
}

/// Whether the work of everything in an expression, all branches included, has at least this weight.
pub fn weighs(exprs: &Exprs, root: ExprId, least: f64) -> bool {
    let (mut seen, mut stack, mut weight) = (QuickSet::default(), vec![root], 0.0);
    while let Some(id) = stack.pop() {
        if seen.insert(id) {
            weight += price(exprs, id).weight;
            stack.extend(exprs.operands(id));
        }
        if weight >= least {
            return true;
        }
    }
    false
}

/// The work of one node alone.
fn price(exprs: &Exprs, id: ExprId) -> Work {
    cost::operation(exprs, id).map_or(Work::default(), |weight| Work { operations: 1.0, weight })
}
