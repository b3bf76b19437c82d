//! Nests of one kernel, made by hand.

use crate::machine::{run, run_at};
use gradix::Int;
use gradix::nest::{Buffer, Kernel, Kind, Leaf, Loop, LoopId, Nest, Panels, Scope, Stage, Step, Work};
use gradix::program::{Affine, BinaryOp, Expr, ExprId, Exprs, Param, ParamKind, Range, TensorId};
use gradix::target::PanelSize;
use gradix_run::vm::Level;
use std::collections::HashMap;

/// A nest with one kernel and one size, `N`.
pub struct Builder {
    pub nest: Nest,
    pub inputs: HashMap<String, Vec<f64>>,
    size: i64,
}

impl Builder {
    pub fn new(size: i64, work: Work) -> Self {
        let params = vec![Param { name: "N".into(), kind: ParamKind::Free }];
        let variables = ["first", "last", "item"].map(String::from).to_vec();
        let kernel = Kernel { name: "k".into(), doc: Vec::new(), variables, work: vec![work], steps: Vec::new() };
        let nest = Nest {
            params,
            context: Vec::new(),
            buffers: Vec::new(),
            exprs: Exprs::default(),
            kernels: vec![kernel],
            target: gradix::target::AVX512,
            plain: false,
            stages: vec![Stage::Kernel(0, Vec::new())],
        };
        Builder { nest, inputs: HashMap::new(), size }
    }

    pub fn buffer(&mut self, name: &str, scope: Scope, extents: &[Affine]) -> TensorId {
        self.nest.buffers.push(Buffer {
            name: name.into(),
            extents: extents.to_vec(),
            scope,
            streamed: false,
            registers: false,
            interleaved: None,
        });
        TensorId(self.nest.buffers.len() as u32 - 1)
    }

    /// An input of constant extents; its elements have no pattern.
    pub fn input(&mut self, name: &str, extents: &[i64]) -> (TensorId, Vec<f64>) {
        let count: i64 = extents.iter().product();
        let salt = name.bytes().map(f64::from).sum::<f64>();
        let data: Vec<f64> = (0..count).map(|i| (12.9898 * (i + 1) as f64 + salt).sin()).collect();
        self.inputs.insert(name.into(), data.clone());
        let extents: Vec<Affine> = extents.iter().map(|e| Affine::constant(*e)).collect();
        (self.buffer(name, Scope::Input(0), &extents), data)
    }

    pub fn output(&mut self, extents: &[i64]) -> TensorId {
        let extents: Vec<Affine> = extents.iter().map(|e| Affine::constant(*e)).collect();
        self.buffer("y", Scope::Output(0), &extents)
    }

    pub fn variable(&mut self) -> LoopId {
        let variables = &mut self.nest.kernels[0].variables;
        variables.push(format!("v{}", variables.len()));
        LoopId(variables.len() as u32 - 1)
    }

    /// Adds a dimension to the grid of items: from 0 on, below a number.
    pub fn divide(&mut self, below: i64, step: i64) -> Work {
        let [first, last, item] = [(); 3].map(|()| self.variable());
        let (low, high, step) = (number(0), number(below - 1), number(step));
        let work = Work { first, last, item, low, high, step, parts: None };
        self.nest.kernels[0].work.push(work.clone());
        work
    }

    pub fn read(&mut self, tensor: TensorId, subscripts: &[Affine]) -> ExprId {
        self.nest.exprs.access(tensor, subscripts.to_vec())
    }

    pub fn binary(&mut self, op: BinaryOp, a: ExprId, b: ExprId) -> ExprId {
        self.nest.exprs.add(Expr::Binary(op, a, b))
    }

    /// The shape of a contraction with rows over the first loop.
    pub fn packed(&mut self, lane_loop: usize, by_row: &[ExprId], by_lane: &[ExprId], by_term: &[ExprId]) -> Shape {
        let panels = Panels {
            scratch: TensorId(0),
            by_row: by_row.to_vec(),
            by_lane: by_lane.to_vec(),
            by_term: by_term.to_vec(),
            rows_in_place: false,
            lanes_in_place: false,
            rows_in_lanes: false,
            rows_beside: false,
            kept: None,
            lanes_stay: false,
            ahead: None,
            size: PanelSize { terms: 384, rows: 96, lanes: 256 },
        };
        let scratch = self.buffer("panels", Scope::Local(0), &[number(panels.elements() as i64)]);
        Shape { rows: Some((0, 8)), panels: Some(Panels { scratch, ..panels }), ..lanes(lane_loop) }
    }

    pub fn leaf(&mut self, leaf: Leaf) {
        self.nest.kernels[0].steps.push(Step::Leaf(leaf));
    }

    pub fn run(&self) -> Vec<f64> {
        let sizes = [Int::from(self.size)];
        gradix::nest::verify(&self.nest).unwrap();
        let exact = run::<f64>(&self.nest, &sizes, &self.inputs, 1).remove("y").unwrap();
        for level in [Level::Baseline, Level::Avx2] {
            close(&run_at::<f64>(&self.nest, &sizes, &self.inputs, 1, level).remove("y").unwrap(), &exact);
        }
        let bits = |values: &[f64]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
        assert_eq!(bits(&run::<f64>(&self.nest, &sizes, &self.inputs, 3)["y"]), bits(&exact), "three threads");
        let single = run::<f32>(&self.nest, &sizes, &self.inputs, 1).remove("y").unwrap();
        for (a, b) in exact.iter().zip(&single) {
            let close = (a - f64::from(*b)).abs() <= 1e-4 * (1.0 + a.abs()) || a == &f64::from(*b);
            assert!(close || (a.is_nan() && b.is_nan()), "{a} in f64, {b} in f32");
        }
        exact
    }
}

pub fn index(variable: LoopId) -> Affine {
    Affine::index(variable)
}

pub fn number(value: i64) -> Affine {
    Affine::constant(value)
}

/// From `low` to `high`, both included.
pub fn range(low: Affine, high: Affine) -> Range {
    Range { low: vec![low], high: vec![high] }
}

pub fn count(extent: i64) -> Range {
    range(number(0), number(extent - 1))
}

pub fn loops(list: &[(LoopId, Range)]) -> Vec<Loop> {
    list.iter()
        .map(|(variable, range)| Loop { variable: *variable, range: range.clone(), kind: Kind::Serial })
        .collect()
}

/// Which loop runs in lanes, and which is unrolled how often.
#[derive(Clone, Default)]
pub struct Shape {
    pub lanes: Option<usize>,
    pub rows: Option<(usize, usize)>,
    pub panels: Option<Panels>,
}

pub fn lanes(position: usize) -> Shape {
    Shape { lanes: Some(position), ..Shape::default() }
}

pub fn plain(target: TensorId, subscripts: &[Affine], mut loops: Vec<Loop>, body: ExprId, shape: Shape) -> Leaf {
    shape.lanes.into_iter().for_each(|position| loops[position].kind = Kind::Lanes(1));
    shape.rows.into_iter().for_each(|(position, count)| loops[position].kind = Kind::Unrolled(count));
    Leaf { panels: shape.panels, ..Leaf::pointwise(target, subscripts.to_vec(), loops, body) }
}

pub fn close(found: &[f64], expected: &[f64]) {
    assert_eq!(found.len(), expected.len());
    let scale = expected.iter().filter(|e| e.is_finite()).fold(1.0, |scale, e| f64::max(scale, e.abs()));
    for (position, (a, b)) in found.iter().zip(expected).enumerate() {
        let fine = a == b || (a - b).abs() <= 1e-13 * scale || (a.is_nan() && b.is_nan());
        assert!(fine, "at {position}: {a}, expected {b}");
    }
}
