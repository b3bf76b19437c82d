//! What `stop` holds, computed from inputs of its own: numeric differentiation moves the others only.
//!
//! ```text
//! input x[N]                              input x[N], x_held[N]
//! y[i] = x[i] * stop(x[i]^2)              y[i] = x[i] * x_held[i]^2
//! ```
//!
//! Where both inputs are the same, so are the results, and their slope along `x` is the derivative of the program.

use crate::program::expr::{Rewriter, Rules};
use crate::program::names::{self, fresh};
use crate::program::{
    Affine, Definition, Expr, ExprId, Exprs, Program, Tensor, TensorId, TensorKind, UnaryOp, circles,
};
use crate::simplify::settle;
use std::collections::{HashMap, HashSet};

/// A program without `stop`.
pub struct Held {
    /// It has the tensors of the program under the same ids, and more.
    pub program: Program,
    /// The names of inputs, each with the name of the one that is held.
    pub inputs: Vec<(String, String)>,
}

/// The program with its held inputs.
pub fn hold(program: &Program) -> Held {
    let mut hold = Hold {
        out: program.clone(),
        taken: names::taken(program),
        sources: program.definitions.iter().map(|d| (d.tensor, d.clone())).collect(),
        named: HashMap::new(),
        inputs: Vec::new(),
    };
    for definition in &program.definitions {
        let body = hold.outside(definition.body);
        let own = hold.out.definitions.iter_mut().find(|d| d.tensor == definition.tensor);
        own.expect("a definition of the program").body = body;
    }
    let Hold { mut out, inputs, .. } = hold;
    settle::drop_unread(&mut out);
    circles::sort(&mut out);
    Held { program: out, inputs }
}

struct Hold {
    out: Program,
    taken: HashSet<String>,
    sources: HashMap<TensorId, Definition>,
    /// The held tensors with names: one each. Nested ones are made anew for each reader.
    named: HashMap<TensorId, TensorId>,
    inputs: Vec<(String, String)>,
}

impl Hold {
    /// An expression in which all that `stop` holds is computed from held inputs.
    fn outside(&mut self, body: ExprId) -> ExprId {
        let stops = |exprs: &Exprs, id: &ExprId| matches!(exprs[*id], Expr::Unary(UnaryOp::Stop, _));
        let found: Vec<ExprId> =
            self.out.exprs.flowing(body).into_iter().filter(|id| stops(&self.out.exprs, id)).collect();
        let mut nested = HashMap::new();
        let held: Vec<(ExprId, ExprId)> = found.iter().map(|&id| (id, self.inside(id, &mut nested))).collect();
        Rewriter::with(held).copy(&mut self.out.exprs, body)
    }

    /// An expression with the held tensor in the place of each; `nested` are those made for this reader.
    fn inside(&mut self, body: ExprId, nested: &mut HashMap<TensorId, TensorId>) -> ExprId {
        let read: Vec<TensorId> = self.out.exprs.accesses(body).map(|(tensor, _)| tensor).collect();
        let pairs: Vec<(TensorId, TensorId)> =
            read.into_iter().map(|tensor| (tensor, self.tensor(tensor, nested))).collect();
        Rewriter::default().rewrite(&mut self.out.exprs, body, &mut Replace(pairs.into_iter().collect()))
    }

    fn tensor(&mut self, tensor: TensorId, nested: &mut HashMap<TensorId, TensorId>) -> TensorId {
        let kind = self.out[tensor].kind;
        if let Some(&known) = self.named.get(&tensor).or(nested.get(&tensor)) {
            return known;
        }
        let record = self.out[tensor].clone();
        let name = match kind {
            TensorKind::Nested => record.name.clone(),
            TensorKind::Input | TensorKind::Defined => fresh(&format!("{}_held", record.name), &mut self.taken),
        };
        let held = self.out.add_tensor(Tensor { name: name.clone(), ..record.clone() });
        match kind {
            TensorKind::Nested => nested.insert(tensor, held),
            TensorKind::Input | TensorKind::Defined => self.named.insert(tensor, held),
        };
        match self.sources.get(&tensor).cloned() {
            Some(definition) => {
                let body = self.inside(definition.body, &mut HashMap::new());
                self.out.definitions.push(Definition { tensor: held, body, ..definition });
            }
            None => self.inputs.push((record.name, name)),
        }
        held
    }
}

struct Replace(HashMap<TensorId, TensorId>);

impl Rules for Replace {
    fn access(&mut self, exprs: &mut Exprs, tensor: TensorId, subscripts: Vec<Affine>) -> ExprId {
        exprs.access(self.0[&tensor], subscripts)
    }

    fn unary(&mut self, exprs: &mut Exprs, op: UnaryOp, a: ExprId) -> ExprId {
        if op == UnaryOp::Stop { a } else { exprs.add(Expr::Unary(op, a)) }
    }
}
