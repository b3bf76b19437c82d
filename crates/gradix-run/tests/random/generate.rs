//! Random programs as text, made so that almost all of them are legal.
//!
//! Every index in scope has a hull: bounds in sizes that its values can't leave. A subscript is an affine
//! expression shifted so that its smallest value over the hulls is 0; a *growing* input takes the largest value
//! of all its subscripts as its extent, and a tensor whose extent is settled (a *fixed* input, or a definition)
//! is read by subscripts that fit for all small sizes, or through `clamp`, `wrap`, `reflect`, `pad` or a guard.

#[path = "subscripts.rs"]
mod subscripts;

use super::affine::Affine;
use crate::support::noise::Noise;

/// The program of a seed.
pub fn generate(seed: u64) -> String {
    let mut generator = Generator { noise: Noise::new(seed), ..Generator::default() };
    generator.program()
}

#[derive(Clone, Debug)]
struct Index {
    name: String,
    low: Affine,
    high: Affine,
    /// Without a written range; bare uses must all agree, so there is just the one that tells it.
    inferred: bool,
}

#[derive(Clone, Debug)]
enum Dimension {
    Settled(Affine),
    /// The largest subscripts so far.
    Growing(Vec<Affine>),
}

#[derive(Clone, Debug)]
struct Tensor {
    name: String,
    dimensions: Vec<Dimension>,
    input: bool,
}

#[derive(Default)]
struct Generator {
    noise: Noise,
    params: Vec<(String, i64)>,
    bounds: Vec<String>,
    tensors: Vec<Tensor>,
    tensor_names: Vec<&'static str>,
    index_names: Vec<&'static str>,
    /// How many reductions are still allowed in this definition.
    reductions: usize,
}

impl Default for Noise {
    fn default() -> Self {
        Noise::new(0)
    }
}

const TENSORS: &[&str] = &[
    "x", "y", "w", "a", "f", "g", "h", "dx", "df", "dx_1", "x_dot", "dy", "dw", "σ", "jac_f_x", "f_dot", "ddx", "x_sum",
];
const INDICES: &[&str] = &["i", "j", "k", "l", "z", "i_1", "k_1", "da", "dg", "m", "z_1", "y_1"];
const SIZES: &[&str] = &["N", "M", "K", "n", "D", "N_1"];

impl Generator {
    fn program(&mut self) -> String {
        self.tensor_names = self.shuffled(TENSORS);
        self.index_names = self.shuffled(INDICES);
        if self.noise.percent(60) {
            self.tensor_names = TENSORS.to_vec();
            self.index_names = INDICES.to_vec();
        }
        self.declare_sizes();
        self.declare_inputs();
        let mut definitions = Vec::new();
        for _ in 0..*self.noise.pick(&[1, 1, 2, 2, 3, 4]) {
            let definition = self.definition();
            definitions.push(definition);
        }
        let mut text = format!("param {}\n", self.bounds.join(", "));
        let inputs: Vec<String> = self.tensors.iter().filter(|t| t.input).map(declaration).collect();
        text += &format!("input {}\n", inputs.join(", "));
        if self.noise.percent(25) {
            let defined: Vec<&Tensor> = self.tensors.iter().filter(|t| !t.input).collect();
            let names: Vec<&str> = defined.iter().map(|t| t.name.as_str()).collect();
            let first = self.noise.below(names.len());
            text += &format!("output {}\n", names[first..].join(", "));
        }
        text + &definitions.join("\n") + "\n"
    }

    fn shuffled(&mut self, names: &[&'static str]) -> Vec<&'static str> {
        let mut left = names.to_vec();
        let mut order = Vec::new();
        while !left.is_empty() {
            order.push(left.remove(self.noise.below(left.len())));
        }
        order
    }

    fn declare_sizes(&mut self) {
        for place in 0..*self.noise.pick(&[1, 1, 2, 2, 3]) {
            let name = SIZES[place + if self.noise.percent(10) { 3 } else { 0 }].to_string();
            if self.params.iter().any(|(known, _)| *known == name) {
                continue;
            }
            let earlier = self.params.first().map(|(name, _)| name.clone());
            let (least, bound) = match (self.noise.below(10), earlier) {
                (0..=2, _) => (1, format!("{name} >= 1")),
                (3, _) => (2, format!("{name} >= 2")),
                (4, Some(other)) => (0, format!("{name} <= {other} + 2")),
                (5, _) => (4, format!("{name} = 4")),
                _ => (0, name.clone()),
            };
            self.params.push((name, least));
            self.bounds.push(bound);
        }
    }

    fn declare_inputs(&mut self) {
        for _ in 0..*self.noise.pick(&[1, 2, 2, 3]) {
            let name = self.tensor_name();
            let rank = *self.noise.pick(&[0, 1, 1, 1, 1, 2, 2, 2, 3]);
            let settled = self.noise.percent(40);
            let dimension = |g: &mut Self| match settled {
                true => Dimension::Settled(g.extent()),
                false => Dimension::Growing(Vec::new()),
            };
            let dimensions = (0..rank).map(|_| dimension(self)).collect();
            self.tensors.push(Tensor { name, dimensions, input: true });
        }
    }

    fn tensor_name(&mut self) -> String {
        self.tensor_names.remove(0).to_string()
    }

    fn size(&mut self) -> Affine {
        let place = self.noise.below(self.params.len());
        Affine::name(&self.params[place].0)
    }

    fn extent(&mut self) -> Affine {
        match self.noise.below(12) {
            0..=6 => self.size(),
            7 => self.size().shift(1),
            8 => self.size().plus(1, &self.size().shift(-1)),
            9 => Affine::number(self.noise.between(1, 4)),
            10 => self.size().shift(-1),
            _ => self.size().plus(1, &self.size()),
        }
    }

    fn definition(&mut self) -> String {
        let name = self.tensor_name();
        self.reductions = 3;
        let mut scope: Vec<Index> = Vec::new();
        let mut binders = Vec::new();
        let mut tellers = Vec::new();
        for _ in 0..*self.noise.pick(&[0, 1, 1, 1, 2, 2]) {
            let index = self.fresh_index(&scope, true);
            let (index, teller) = self.maybe_inferred(index);
            tellers.extend(teller);
            binders.push(match index.inferred {
                true => index.name.clone(),
                false => format!("{} in 0..{}", index.name, index.high.shift(1)),
            });
            scope.push(index);
        }
        let depth = *self.noise.pick(&[2, 3, 3, 4]);
        let mut body = self.value(depth, &scope);
        for teller in tellers {
            body = format!("{body} {} {teller}", self.noise.pick(&["*", "+"]));
        }
        let dimensions = scope.iter().map(|index| Dimension::Settled(index.high.shift(1))).collect();
        self.tensors.push(Tensor { name: name.clone(), dimensions, input: false });
        match binders.is_empty() {
            true => format!("{name} = {body}"),
            false => format!("{name}[{}] = {body}", binders.join(", ")),
        }
    }

    /// An index over `0..extent`, with a name that others in scope may have unless `distinct`.
    fn fresh_index(&mut self, scope: &[Index], distinct: bool) -> Index {
        let hiding = !distinct && !scope.is_empty() && self.noise.percent(12);
        let name = match hiding {
            true => scope[self.noise.below(scope.len())].name.clone(),
            false => {
                let free = self.index_names.iter().filter(|name| {
                    scope.iter().all(|index| index.name != **name) && self.tensors.iter().all(|t| t.name != **name)
                });
                let free: Vec<&str> = free.copied().collect();
                free[if self.noise.percent(80) { 0 } else { self.noise.below(free.len()) }].to_string()
            }
        };
        let high = self.extent().shift(-1);
        Index { name, low: Affine::number(0), high, inferred: false }
    }

    /// Leaves the range out, if some access can tell it.
    fn maybe_inferred(&mut self, index: Index) -> (Index, Option<String>) {
        let settled = self.tensors.iter().filter_map(|t| match t.dimensions.as_slice() {
            [Dimension::Settled(extent)] => Some((t.name.clone(), extent.clone())),
            _ => None,
        });
        let settled: Vec<(String, Affine)> = settled.collect();
        if settled.is_empty() || !self.noise.percent(30) {
            return (index, None);
        }
        let (tensor, extent) = self.noise.pick(&settled).clone();
        let access = format!("{tensor}[{}]", index.name);
        (Index { high: extent.shift(-1), inferred: true, ..index }, Some(access))
    }

    fn value(&mut self, depth: usize, scope: &[Index]) -> String {
        if depth == 0 {
            return self.leaf(scope);
        }
        let inner = depth - 1;
        match self.noise.below(100) {
            0..=14 => self.leaf(scope),
            15..=29 => {
                let (a, b) = (self.value(inner, scope), self.value(inner, scope));
                format!("({a} {} {b})", self.noise.pick(&["+", "-", "*", "*"]))
            }
            30..=33 => {
                let (a, b) = (self.value(inner, scope), self.value(inner, scope));
                format!("({a} / (1.5 + {b}^2))")
            }
            34..=49 => {
                let a = self.value(inner, scope);
                self.unary(&a)
            }
            50..=55 => {
                let (a, b) = (self.value(inner, scope), self.value(inner, scope));
                match self.noise.below(6) {
                    0 => format!("max({a}, {b})"),
                    1 => format!("min({a}, {b})"),
                    2 => format!("hypot({a}, {b})"),
                    3 => format!("atan2({a}, 2 + {b}^2)"),
                    4 => format!("(1.1 + {a}^2)^({b})"),
                    _ => format!("pow({a}, {})", self.noise.pick(&["0", "1", "2", "3"])),
                }
            }
            56..=69 => self.choice(inner, scope),
            _ if self.reductions > 0 => self.reduction(inner, scope),
            _ => {
                let (a, b) = (self.value(inner, scope), self.leaf(scope));
                format!("({a} + {b})")
            }
        }
    }

    fn unary(&mut self, a: &str) -> String {
        let functions = [
            "sin",
            "cos",
            "tanh",
            "sigmoid",
            "softplus",
            "atan",
            "erf",
            "relu",
            "abs",
            "asinh",
            "exp(-",
            "sqrt(1 + ",
            "log(1.5 + ",
            "^2",
            "^3",
            "-",
            "sign",
            "floor",
            "expm1(tanh",
            "log1p(",
            "cbrt(2 + ",
            "erfc",
            "round",
            "^-1",
        ];
        match *self.noise.pick(&functions) {
            "exp(-" => format!("exp(-({a})^2)"),
            start @ ("sqrt(1 + " | "log(1.5 + " | "log1p(" | "cbrt(2 + ") => format!("{start}({a})^2)"),
            "expm1(tanh" => format!("expm1(tanh({a}))"),
            "^-1" => format!("(2 + ({a})^2)^-1"),
            power @ ("^2" | "^3") => format!("({a}){power}"),
            "-" => format!("(-{a})"),
            function => format!("{function}({a})"),
        }
    }

    fn leaf(&mut self, scope: &[Index]) -> String {
        match self.noise.below(20) {
            0 => self.noise.pick(&["2", "0.5", "-1.25", "0", "1", "3"]).to_string(),
            1 if !visible(scope).is_empty() => format!("({})", self.mixture(scope, 2)),
            2 if !visible(scope).is_empty() => {
                let op = *self.noise.pick(&["// 2", "% 3", "% 2", "// 3"]);
                format!("(({}) {op})", self.mixture(scope, 2))
            }
            3 => format!("({} / 3)", self.size()),
            _ => self.access(scope),
        }
    }

    fn choice(&mut self, depth: usize, scope: &[Index]) -> String {
        let condition = self.condition(scope);
        let (then, otherwise) = (self.value(depth, scope), self.value(depth.min(1), scope));
        match self.noise.percent(20) {
            true => format!("(if {condition} then {then} else 0)"),
            false => format!("(if {condition} then {then} else {otherwise})"),
        }
    }

    fn condition(&mut self, scope: &[Index]) -> String {
        match self.noise.below(10) {
            0..=4 => self.index_condition(scope),
            5..=7 => self.value_condition(scope),
            8 => {
                let op = *self.noise.pick(&["and", "or"]);
                let (a, b) = (self.condition(scope), self.value_condition(scope));
                format!("({a}) {op} {b}")
            }
            _ => format!("not ({})", self.condition(scope)),
        }
    }

    fn value_condition(&mut self, scope: &[Index]) -> String {
        let (a, b) = (self.access(scope), self.leaf(scope));
        let op = *self.noise.pick(&["<", "<=", ">", ">=", "==", "!="]);
        format!("{a} {op} {b}")
    }

    fn index_condition(&mut self, scope: &[Index]) -> String {
        let (a, b) = (self.mixture(scope, 2), self.mixture(scope, 1));
        match self.noise.below(10) {
            0 => format!("({a}) % {} == {}", self.noise.between(2, 3), self.noise.between(0, 1)),
            1 => format!("({a}) % 2 != 0"),
            2 => format!("({a}) // 2 < {b}"),
            3 => format!("0 <= {a} < {}", self.size()),
            4 => format!("{a} != {b}"),
            5 => format!("{a} == {b}"),
            6 => {
                let size = self.size();
                format!("({a} > 0 and {b} < {size})")
            }
            7 => format!("({a} < 1 or {b} >= 2)"),
            8 => format!("not {a} <= {b}"),
            _ => format!("{a} {} {b}", self.noise.pick(&["<", "<=", ">", ">="])),
        }
    }

    fn reduction(&mut self, depth: usize, scope: &[Index]) -> String {
        self.reductions -= 1;
        let op = *self.noise.pick(&["sum", "sum", "sum", "sum", "sum", "prod", "max", "min"]);
        let mut inner = scope.to_vec();
        let mut items = Vec::new();
        let mut tellers = Vec::new();
        for _ in 0..*self.noise.pick(&[1, 1, 1, 2]) {
            let index = self.fresh_index(&inner, items.len() == 1);
            let (index, teller) = self.maybe_inferred(index);
            let index = match teller {
                Some(teller) => {
                    tellers.push(teller);
                    items.push(index.name.clone());
                    index
                }
                None => {
                    let (index, range) = self.range(index, &inner);
                    items.push(format!("{} in {range}", index.name));
                    index
                }
            };
            inner.push(index);
        }
        if self.noise.percent(35) {
            items.push(self.index_condition(&inner));
        }
        let mut body = self.value(depth, &inner);
        for teller in tellers {
            body = format!("({body} {} {teller})", self.noise.pick(&["*", "+"]));
        }
        format!("({op}[{}] {body})", items.join(", "))
    }

    /// A range for a new index, which may use those in scope, and what it can't leave.
    fn range(&mut self, index: Index, scope: &[Index]) -> (Index, String) {
        let outer: Vec<Index> = visible(scope).into_iter().filter(|i| i.name != index.name).collect();
        let Some(outer) = (!outer.is_empty()).then(|| self.noise.pick(&outer).clone()) else {
            return self.plain_range(index);
        };
        let i = outer.name.clone();
        let from_zero = outer.low == Affine::number(0);
        let extent = index.high.shift(1);
        let (low, high, text) = match self.noise.below(16) {
            0 | 1 if from_zero => (Affine::number(0), outer.high, format!("0..={i}")),
            2 => (outer.low, index.high, format!("{i}..{extent}")),
            3 if from_zero => (Affine::number(0), outer.high, format!("max(0, {i} - 2)..=min({i}, {})", index.high)),
            4 => (outer.low.shift(-1), outer.high.shift(1), format!("{i} - 1..={i} + 1")),
            5 if from_zero => (Affine::number(0), outer.high, format!("0..={i} // 2")),
            6 => (Affine::number(0), index.high, format!("{i} % 2..{extent}")),
            7 => (outer.low.plus(1, &outer.low), outer.high.plus(1, &outer.high).shift(1), format!("2*{i}..2*{i} + 2")),
            8 if from_zero => (Affine::number(0), outer.high, format!("0..{i}")),
            9 if from_zero => (Affine::number(0), index.high, format!("{i} // 2..{extent}")),
            _ => return self.plain_range(index),
        };
        (Index { low, high, ..index }, text)
    }

    fn plain_range(&mut self, index: Index) -> (Index, String) {
        let extent = index.high.shift(1);
        match self.noise.below(12) {
            0 => (Index { low: Affine::number(1), ..index }, format!("1..{extent}")),
            1 => (Index { low: Affine::number(-1), high: Affine::number(1), ..index }, "-1..=1".to_string()),
            2 => (Index { high: Affine::number(0), ..index }, "0..1".to_string()),
            3 => (Index { high: Affine::number(2), ..index }, "0..3".to_string()),
            4 => (
                Index { low: Affine::number(1).plus(-1, &extent), ..index.clone() },
                format!("{}..={}", Affine::number(1).plus(-1, &extent), index.high),
            ),
            _ => (index, format!("0..{extent}")),
        }
    }
}

/// The indices that no inner one hides.
fn visible(scope: &[Index]) -> Vec<Index> {
    let last = |place: usize, index: &Index| scope[place + 1..].iter().all(|inner| inner.name != index.name);
    scope.iter().enumerate().filter(|(place, index)| last(*place, index)).map(|(_, index)| index.clone()).collect()
}

fn declaration(tensor: &Tensor) -> String {
    let extents: Vec<String> = tensor.dimensions.iter().map(extent_text).collect();
    match extents.is_empty() {
        true => tensor.name.clone(),
        false => format!("{}[{}]", tensor.name, extents.join(", ")),
    }
}

fn extent_text(dimension: &Dimension) -> String {
    match dimension {
        Dimension::Settled(extent) => extent.to_string(),
        Dimension::Growing(largest) => {
            let mut extents: Vec<String> = largest.iter().map(|l| l.shift(1).to_string()).collect();
            extents.sort();
            extents.dedup();
            match extents.as_slice() {
                [] => "2".to_string(),
                [one] => one.clone(),
                several => format!("max({})", several.join(", ")),
            }
        }
    }
}
