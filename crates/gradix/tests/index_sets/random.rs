//! Random index expressions, constraints and definitions, the same for the same seed.

use gradix::Int;
use gradix::program::{
    Affine, Constraint, Definition, ExprId, Index, ParamId, Program, Range, ReduceOp, Relation, Tensor, TensorId,
    TensorKind,
};
use gradix::program::{Param, ParamKind};

/// The SplitMix64 generator.
pub struct Noise(u64);

impl Noise {
    pub fn new(seed: u64) -> Self {
        Noise(seed.wrapping_mul(0xd134_2543_de82_ef95))
    }

    pub fn below(&mut self, count: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % count as u64) as usize
    }

    pub fn between(&mut self, low: i64, high: i64) -> i64 {
        low + self.below((high - low + 1) as usize) as i64
    }

    pub fn percent(&mut self, chance: usize) -> bool {
        self.below(100) < chance
    }

    pub fn pick<T: Clone>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())].clone()
    }
}

/// What expressions may mention, and how many floors they may have.
#[derive(Clone)]
pub struct Scope {
    pub atoms: Vec<Affine>,
    pub floors: usize,
}

impl Scope {
    pub fn new(indices: std::ops::Range<usize>, params: usize, floors: usize) -> Self {
        let params = (0..params).map(|p| Affine::param(ParamId(p as u32)));
        Scope { atoms: indices.map(Affine::index).chain(params).collect(), floors }
    }

    /// A sum of a few atoms and, as long as there are any left, floors and remainders.
    pub fn affine(&mut self, noise: &mut Noise) -> Affine {
        let mut sum = Affine::constant(noise.between(-3, 4));
        for _ in 0..noise.pick(&[1, 1, 2, 2, 3]) {
            let factor = Int::from(noise.pick(&[1, 1, 1, -1, -1, 2, -2, 3, -3]));
            let term = self.term(noise);
            sum = sum.add_scaled(&factor, &term);
        }
        sum
    }

    fn term(&mut self, noise: &mut Noise) -> Affine {
        let plain = |noise: &mut Noise, atoms: &[Affine]| match atoms {
            [] => Affine::constant(1),
            atoms => noise.pick(atoms),
        };
        if self.floors == 0 || noise.percent(45) {
            return plain(noise, &self.atoms);
        }
        self.floors -= 1;
        let inner = if noise.percent(50) { plain(noise, &self.atoms) } else { self.affine(noise) };
        let divisor = Int::from(noise.pick(&[2, 2, 3, 3, 4, 6]));
        if noise.percent(60) { inner.floor_div(&divisor) } else { inner.remainder(&divisor) }
    }

    /// An inequality, or rarer an equation.
    pub fn constraint(&mut self, noise: &mut Noise) -> Constraint {
        let affine = self.affine(noise);
        match noise.percent(25) {
            true => Constraint::zero(affine),
            false => Constraint::non_negative(affine),
        }
    }

    pub fn constraints(&mut self, noise: &mut Noise, most: usize) -> Vec<Constraint> {
        (0..noise.below(most + 1)).map(|_| self.constraint(noise)).collect()
    }
}

/// A small range that is never without end: numbers or a size, often one point, sometimes none.
pub fn plain_range(noise: &mut Noise, params: usize) -> Range {
    let low = noise.pick(&[0, 0, 0, 0, 1, -1, 3]);
    let high = match params > 0 && noise.percent(40) {
        true => Affine::param(ParamId(noise.below(params) as u32)).shift(noise.pick(&[-1, -1, -1, 0, -2])),
        false => Affine::constant(low + noise.pick(&[-1, 0, 0, 0, 1, 2, 3, 5])),
    };
    Range { low: vec![Affine::constant(low)], high: vec![high] }
}

/// The same, and now and then bounds that depend on earlier indices.
pub fn range(noise: &mut Noise, scope: &mut Scope, params: usize) -> Range {
    let mut range = plain_range(noise, params);
    if noise.percent(15) {
        range.low.push(scope.affine(noise));
    }
    if noise.percent(15) {
        range.high.push(scope.affine(noise));
    }
    range
}

/// A program with sizes, one input and one definition over random indices; the body is filled in by the caller.
pub fn program(noise: &mut Noise, floors: usize) -> Program {
    let params = noise.pick(&[0, 0, 1, 1, 2]);
    let mut program = Program::default();
    for name in ["N", "M"].iter().take(params) {
        let own = Affine::param(ParamId(program.params.len() as u32));
        program.params.push(Param { name: name.to_string(), kind: ParamKind::Free });
        program.facts.push(Constraint::non_negative(own.shift(-noise.pick(&[0, 0, 1, 2]))));
    }
    let count = noise.pick(&[1, 1, 2, 2, 3]);
    let rank = noise.below(count + 1);
    let extents = vec![Affine::constant(1); count];
    let input = Tensor { name: "x".into(), kind: TensorKind::Input, extents, rank: count };
    program.tensors.push(input);
    let result = Tensor { name: "y".into(), kind: TensorKind::Nested, extents: Vec::new(), rank };
    let tensor = program.add_tensor(result);
    let mut definition = Definition {
        tensor,
        indices: Vec::new(),
        rank,
        reduction: (count > rank).then_some(ReduceOp::Sum),
        conditions: Vec::new(),
        assumptions: Vec::new(),
        body: ExprId(0),
    };
    for position in 0..count {
        let mut scope = Scope::new(0..position, params, floors.min(1));
        let range = range(noise, &mut scope, params);
        definition.indices.push(Index { name: format!("i{position}"), range });
    }
    if count > rank {
        definition.conditions = Scope::new(0..count, params, floors).constraints(noise, 2);
    }
    definition.body = program.exprs.access(TensorId(0), (0..count).map(Affine::index).collect());
    program.definitions.push(definition);
    program
}

/// All values of the sizes that the facts allow, each from a few small ones.
pub fn sizes(program: &Program) -> Vec<Vec<i64>> {
    let mut all = vec![Vec::new()];
    for _ in &program.params {
        let with = |sizes: &Vec<i64>, size: i64| [sizes.as_slice(), &[size]].concat();
        all = all.iter().flat_map(|sizes| [0, 1, 2, 3, 5].map(|size| with(sizes, size))).collect();
    }
    all.retain(|sizes| program.facts.iter().all(|fact| crate::points::holds(fact, &[], sizes)));
    all
}

/// What a test shows of its constraints.
pub fn shown(constraints: &[Constraint]) -> String {
    let sign = |c: &Constraint| if c.relation == Relation::Zero { "==" } else { ">=" };
    constraints.iter().map(|c| format!("  {} {} 0\n", c.affine, sign(c))).collect()
}
