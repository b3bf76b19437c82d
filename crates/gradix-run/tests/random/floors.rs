//! Random programs of one or two definitions, full of floors and remainders: several of one index, one inside another,
//! on both sides of conditions, in ranges and extents; indices that a range or a condition leaves one value, or none.
//!
//! Sizes are plain numbers or params. Whatever an expression can be is found by enumeration of all points at small
//! sizes: a subscript of a *growing* input is shifted to start at 0, and its largest value makes the extent, so that
//! elements at both ends are read; a subscript of a tensor whose extent is settled fits, or stands in `pad`, `clamp` or
//! a guard.

use super::affine::Affine;
use super::whole::{Condition, Values, Whole};
use crate::support::noise::Noise;

/// The program of a seed.
pub fn floors(seed: u64) -> String {
    let mut noise = Noise::new(seed ^ 0xf100_0f10);
    let params = params(&mut noise);
    let sizes = small_sizes(&params);
    Generator { noise, params, sizes, tensors: Vec::new(), reductions: 0 }.program()
}

/// An index with its range, `low..end`, or what all of those before have to satisfy.
#[derive(Clone, Debug)]
enum Layer {
    Index { name: &'static str, low: Whole, end: Whole },
    Where(Condition),
}

type Scope = Vec<Layer>;

#[derive(Clone, Debug)]
enum Dimension {
    Settled(Whole),
    /// What the extents have to reach, for each subscript so far.
    Growing(Vec<Affine>),
}

#[derive(Clone, Debug)]
struct Tensor {
    name: &'static str,
    dimensions: Vec<Dimension>,
    input: bool,
}

struct Generator {
    noise: Noise,
    /// With their least values.
    params: Vec<(&'static str, i64)>,
    sizes: Vec<Values>,
    tensors: Vec<Tensor>,
    /// How many reductions are still allowed in this definition.
    reductions: usize,
}

const INDICES: &[&str] = &["i", "j", "k", "l"];
const COMPARISONS: &[&str] = &["<", "<=", ">", ">=", "==", "==", "==", "!="];

/// None in half of the programs.
fn params(noise: &mut Noise) -> Vec<(&'static str, i64)> {
    let count = *noise.pick(&[0, 0, 0, 1, 1, 2]);
    ["N", "M"][..count].iter().map(|name| (*name, *noise.pick(&[0, 0, 1, 1, 2]))).collect()
}

/// The sizes at which points are enumerated.
fn small_sizes(params: &[(&'static str, i64)]) -> Vec<Values> {
    let mut all = vec![Values::new()];
    let most = if params.len() > 1 { 5 } else { 8 };
    for (name, least) in params {
        let with = |values: &Values, size: i64| {
            let mut values = values.clone();
            values.insert(name.to_string(), size);
            values
        };
        all = all.iter().flat_map(|values| (*least..=most).map(move |size| with(values, size))).collect();
    }
    all
}

impl Generator {
    fn program(mut self) -> String {
        for name in &["y", "w"][..*self.noise.pick(&[1, 1, 2])] {
            let rank = *self.noise.pick(&[1, 1, 1, 2]);
            let dimensions = (0..rank).map(|_| self.input_dimension()).collect();
            self.tensors.push(Tensor { name, dimensions, input: true });
        }
        let names = &["x", "f"][..*self.noise.pick(&[1, 1, 2])];
        let definitions: Vec<String> = names.iter().map(|name| self.definition(name)).collect();
        let mut text = String::new();
        if !self.params.is_empty() {
            let bounds: Vec<String> = self.params.iter().map(|(name, least)| format!("{name} >= {least}")).collect();
            text += &format!("param {}\n", bounds.join(", "));
        }
        let inputs: Vec<String> = self.tensors.iter().filter(|t| t.input).map(declaration).collect();
        text += &format!("input {}\n", inputs.join(", "));
        if self.noise.percent(20) {
            text += &format!("output {}\n", names.join(", "));
        }
        text + &definitions.join("\n") + "\n"
    }

    fn input_dimension(&mut self) -> Dimension {
        match self.noise.percent(25) {
            true => Dimension::Settled(self.extent()),
            false => Dimension::Growing(Vec::new()),
        }
    }

    /// Of an input or a definition.
    fn extent(&mut self) -> Whole {
        if self.params.is_empty() || self.noise.percent(20) {
            return Whole::number(*self.noise.pick(&[1, 1, 1, 2, 2, 3, 4, 5, 6, 7]));
        }
        let size = self.size();
        match self.noise.below(12) {
            0 => size.shift(1),
            1 => size.shift(-1),
            2 => size.shift(1).floor(2),
            3 => size.floor(*self.noise.pick(&[2, 3])).shift(1),
            4 => size.remainder(*self.noise.pick(&[2, 3])).shift(self.noise.between(0, 1)),
            5 => size.clone().floor(2).plus(1, size.floor(3)),
            _ => size,
        }
    }

    fn size(&mut self) -> Whole {
        Whole::name(self.noise.pick(&self.params).0)
    }

    fn definition(&mut self, name: &'static str) -> String {
        self.reductions = 2;
        let mut scope = Scope::new();
        for name in &INDICES[..*self.noise.pick(&[0, 1, 1, 1, 2, 2])] {
            // At times there is nothing to compute.
            let end = if self.noise.percent(2) { Whole::number(0) } else { self.extent() };
            scope.push(Layer::Index { name, low: Whole::number(0), end });
        }
        let depth = *self.noise.pick(&[1, 1, 2, 2, 3]);
        let body = self.value(depth, &scope);
        let (mut binders, mut dimensions) = (Vec::new(), Vec::new());
        for layer in &scope {
            if let Layer::Index { name, end, .. } = layer {
                binders.push(format!("{name} in 0..{end}"));
                dimensions.push(Dimension::Settled(end.clone()));
            }
        }
        self.tensors.push(Tensor { name, dimensions, input: false });
        match binders.is_empty() {
            true => format!("{name} = {body}"),
            false => format!("{name}[{}] = {body}", binders.join(", ")),
        }
    }

    fn value(&mut self, depth: usize, scope: &Scope) -> String {
        if depth == 0 {
            return self.access(scope);
        }
        match self.noise.below(20) {
            0..=2 => self.access(scope),
            3 => format!("{}({})", self.noise.pick(&["sin", "exp", "tanh"]), self.value(depth - 1, scope)),
            4 => format!("({})^2", self.value(depth - 1, scope)),
            5 | 6 => {
                let (a, b) = (self.value(depth - 1, scope), self.value(depth - 1, scope));
                format!("({a} {} {b})", self.noise.pick(&["+", "-", "*", "*"]))
            }
            7 => format!("({}) * {}", self.whole(2, scope), self.value(depth - 1, scope)),
            8..=13 => self.choice(depth - 1, scope),
            _ if self.reductions > 0 && names(scope).len() < INDICES.len() => self.reduction(depth - 1, scope),
            _ => self.access(scope),
        }
    }

    fn choice(&mut self, depth: usize, scope: &Scope) -> String {
        let condition = self.condition(2, scope);
        let then = self.value(depth, &under(scope, condition.clone()));
        let otherwise = match self.noise.percent(60) {
            true => "0".to_string(),
            false => self.value(depth.min(1), &under(scope, condition.clone().negated())),
        };
        format!("(if {condition} then {then} else {otherwise})")
    }

    fn reduction(&mut self, depth: usize, scope: &Scope) -> String {
        self.reductions -= 1;
        let op = *self.noise.pick(&["sum", "sum", "sum", "sum", "prod", "max", "min"]);
        let mut inner = scope.clone();
        let mut items = Vec::new();
        for _ in 0..*self.noise.pick(&[1, 1, 1, 2]) {
            let Some(name) = INDICES.iter().find(|name| !names(&inner).contains(name)) else { break };
            let (low, end) = self.range(&inner);
            items.push(format!("{name} in {low}..{end}"));
            inner.push(Layer::Index { name, low, end });
        }
        if self.noise.percent(40) {
            let condition = self.condition(1, &inner);
            items.push(condition.to_string());
            inner.push(Layer::Where(condition));
        }
        format!("({op}[{}] {})", items.join(", "), self.value(depth, &inner))
    }

    /// Often of one point or none.
    fn range(&mut self, scope: &Scope) -> (Whole, Whole) {
        match self.noise.below(10) {
            0 => {
                let point = self.whole(2, scope);
                (point.clone(), point.shift(self.noise.between(0, 2)))
            }
            1 => {
                let low = self.whole(1, scope);
                let other = self.whole(1, scope);
                let end = low.clone().shift(self.noise.between(1, 3));
                (low, Whole::Least(vec![end, other]))
            }
            2 => {
                let (low, other) = (self.whole(1, scope), self.whole(1, scope));
                let end = self.extent();
                (Whole::Most(vec![low, other]), end)
            }
            3 | 4 => (self.whole(1, scope), self.extent()),
            5 => (Whole::number(self.noise.between(-1, 1)), self.whole(2, scope)),
            6 => (self.whole(1, scope), self.whole(1, scope)),
            _ => (Whole::number(0), self.extent()),
        }
    }

    fn condition(&mut self, depth: usize, scope: &Scope) -> Condition {
        let names = names(scope);
        match self.noise.below(16) {
            0..=2 if depth > 0 => {
                let (a, b) = (self.condition(depth - 1, scope), self.condition(depth - 1, scope));
                if self.noise.percent(70) { a.both(b) } else { a.either(b) }
            }
            3 if depth > 0 => self.condition(depth - 1, scope).negated(),
            4..=6 if !names.is_empty() => {
                let index = Whole::name(self.one_of(&names));
                let op = self.one_of(COMPARISONS);
                Condition::Compare(index, op, self.whole(1, scope))
            }
            7 | 8 if !names.is_empty() => {
                let end = self.extent();
                Condition::Compare(Whole::name(self.one_of(&names)), ">=", end.shift(-1))
            }
            9 => {
                let divisor = self.noise.between(2, 3);
                let rest = Whole::number(self.noise.between(0, 1));
                Condition::Compare(self.whole(1, scope).remainder(divisor), "==", rest)
            }
            _ => {
                let (left, right) = (self.whole(2, scope), self.whole(2, scope));
                Condition::Compare(left, self.one_of(COMPARISONS), right)
            }
        }
    }

    /// An index expression, with floors and remainders up to a depth.
    fn whole(&mut self, depth: usize, scope: &Scope) -> Whole {
        if depth == 0 {
            return self.mixture(scope);
        }
        let divisor = *self.noise.pick(&[2, 2, 2, 3, 3, 4]);
        match self.noise.below(12) {
            0 | 1 => self.mixture(scope),
            2..=4 => self.whole(depth - 1, scope).floor(divisor),
            5 | 6 => self.whole(depth - 1, scope).remainder(divisor),
            7 => {
                let part = self.whole(depth - 1, scope);
                Whole::Sum(vec![(divisor, part.floor(divisor))])
            }
            8 => {
                let part = self.mixture(scope);
                let (other, factor) = (*self.noise.pick(&[2, 3, 4]), *self.noise.pick(&[1, 1, -1, 2]));
                part.clone().floor(divisor).plus(factor, part.floor(other))
            }
            _ => {
                let (a, b) = (self.whole(depth - 1, scope), self.whole(depth - 1, scope));
                a.plus(*self.noise.pick(&[1, 1, 1, -1, 2, 3]), b)
            }
        }
    }

    /// An affine expression in indices, at times also in sizes.
    fn mixture(&mut self, scope: &Scope) -> Whole {
        let names = names(scope);
        let constant = *self.noise.pick(&[0, 0, 0, 0, 1, 2, 3, -1, -2]);
        let mut sum = Affine::number(constant);
        for _ in 0..*self.noise.pick(&[1, 1, 1, 2]) {
            let factor = *self.noise.pick(&[1, 1, 1, 1, -1, -1, 2, 2, -2, 3, -3]);
            if !names.is_empty() {
                sum = sum.plus(factor, &Affine::name(self.one_of(&names)));
            }
        }
        if !self.params.is_empty() && self.noise.percent(15) {
            sum = sum.plus(*self.noise.pick(&[1, 1, -1, 2]), &Affine::name(self.noise.pick(&self.params).0));
        }
        Whole::Affine(sum)
    }

    fn one_of(&mut self, words: &[&'static str]) -> &'static str {
        words[self.noise.below(words.len())]
    }

    fn access(&mut self, scope: &Scope) -> String {
        let recent = self.noise.percent(70) && self.tensors.iter().any(|t| !t.input);
        let choices: Vec<usize> = (0..self.tensors.len()).filter(|&t| self.tensors[t].input != recent).collect();
        let number = *self.noise.pick(&choices);
        let tensor = self.tensors[number].clone();
        if tensor.dimensions.is_empty() {
            return tensor.name.to_string();
        }
        let (mut subscripts, mut guards, mut padded) = (Vec::new(), Vec::new(), false);
        for (place, dimension) in tensor.dimensions.iter().enumerate() {
            match dimension {
                Dimension::Growing(_) => {
                    let (subscript, extent) = self.growing(scope);
                    if let Dimension::Growing(extents) = &mut self.tensors[number].dimensions[place] {
                        extents.push(extent);
                    }
                    subscripts.push(subscript.to_string());
                }
                Dimension::Settled(extent) => {
                    let (text, fit) = self.settled(scope, extent);
                    padded |= fit == Fit::Pad;
                    if fit == Fit::Guard {
                        guards.push(format!("0 <= {text} < {extent}"));
                    }
                    subscripts.push(text);
                }
            }
        }
        let mut access = format!("{}[{}]", tensor.name, subscripts.join(", "));
        if padded {
            access = format!("pad({access}, {})", self.noise.pick(&["0", "0", "1.5"]));
        }
        match guards.is_empty() {
            true => access,
            false => format!("(if {} then {access} else 0)", guards.join(" and ")),
        }
    }

    /// A subscript from 0 on, and the extent that it needs.
    fn growing(&mut self, scope: &Scope) -> (Whole, Affine) {
        let subscript = self.whole(2, scope);
        let ends = self.ends(&subscript, scope);
        let lowest: Vec<(&Values, i64)> = ends.iter().map(|(sizes, low, _)| (*sizes, -low)).collect();
        let shift = self.cover(&lowest);
        let needed: Vec<(&Values, i64)> =
            ends.iter().map(|(sizes, _, high)| (*sizes, high + shift.at(sizes) + 1)).collect();
        let extent = self.cover(&needed);
        let slack = i64::from(self.noise.percent(20));
        let subscript = if shift == Affine::number(0) { subscript } else { subscript.plus(1, Whole::Affine(shift)) };
        (subscript, extent.shift(slack))
    }

    /// A subscript for a dimension of this extent.
    fn settled(&mut self, scope: &Scope, extent: &Whole) -> (String, Fit) {
        for _ in 0..4 {
            let subscript = self.whole(2, scope);
            let ends = self.ends(&subscript, scope);
            if ends.iter().all(|(sizes, low, high)| *low >= 0 && *high < extent.at(sizes)) {
                return (subscript.to_string(), Fit::Inside);
            }
        }
        let subscript = self.whole(2, scope);
        match self.noise.below(4) {
            0 => (format!("clamp({subscript})"), Fit::Inside),
            1 | 2 => (subscript.to_string(), Fit::Guard),
            _ => (subscript.to_string(), Fit::Pad),
        }
    }

    /// The smallest and the largest value at each of the sizes that leave any point.
    fn ends(&self, whole: &Whole, scope: &Scope) -> Vec<(&Values, i64, i64)> {
        let mut ends = Vec::new();
        for sizes in &self.sizes {
            let mut found: Option<(i64, i64)> = None;
            each_point(scope, &mut sizes.clone(), &mut |point| {
                let value = whole.at(point);
                found = Some(found.map_or((value, value), |(low, high)| (low.min(value), high.max(value))));
            });
            ends.extend(found.map(|(low, high)| (sizes, low, high)));
        }
        ends
    }

    /// The affine expression in the sizes that is nowhere below these numbers, and in total least above them.
    fn cover(&self, numbers: &[(&Values, i64)]) -> Affine {
        let mut slopes = vec![Affine::number(0)];
        for (name, _) in &self.params {
            let with = |affine: &Affine, slope: i64| affine.plus(slope, &Affine::name(name));
            slopes =
                slopes.iter().flat_map(|affine| [0, 1, 2, -1, 3, -2, -3].map(|slope| with(affine, slope))).collect();
        }
        let covers = slopes.into_iter().map(|slopes| {
            let gaps: Vec<i64> = numbers.iter().map(|(sizes, number)| number - slopes.at(sizes)).collect();
            let most = gaps.iter().copied().max().unwrap_or(0);
            (gaps.iter().map(|gap| most - gap).sum::<i64>(), slopes.shift(most))
        });
        covers.min_by_key(|(above, _)| *above).expect("a slope of 0").1
    }
}

/// What keeps a subscript inside.
#[derive(PartialEq)]
enum Fit {
    Inside,
    Guard,
    Pad,
}

fn under(scope: &Scope, condition: Condition) -> Scope {
    let mut scope = scope.clone();
    scope.push(Layer::Where(condition));
    scope
}

fn names(scope: &Scope) -> Vec<&'static str> {
    let name = |layer: &Layer| match layer {
        Layer::Index { name, .. } => Some(*name),
        Layer::Where(_) => None,
    };
    scope.iter().filter_map(name).collect()
}

/// Calls `each` at every point of the scope.
fn each_point(scope: &[Layer], values: &mut Values, each: &mut dyn FnMut(&Values)) {
    match scope.split_first() {
        None => each(values),
        Some((Layer::Where(condition), rest)) => {
            if condition.holds(values) {
                each_point(rest, values, each);
            }
        }
        Some((Layer::Index { name, low, end }, rest)) => {
            for value in low.at(values)..end.at(values) {
                values.insert(name.to_string(), value);
                each_point(rest, values, each);
            }
            values.remove(*name);
        }
    }
}

fn declaration(tensor: &Tensor) -> String {
    let extents: Vec<String> = tensor.dimensions.iter().map(extent_text).collect();
    format!("{}[{}]", tensor.name, extents.join(", "))
}

fn extent_text(dimension: &Dimension) -> String {
    let extents = match dimension {
        Dimension::Settled(extent) => return extent.to_string(),
        Dimension::Growing(extents) => extents,
    };
    let numbers = extents.iter().filter(|extent| extent.terms.is_empty()).map(|extent| extent.constant);
    let largest = numbers.max().map(|number| number.to_string());
    let mut parts: Vec<String> = extents.iter().filter(|e| !e.terms.is_empty()).map(Affine::to_string).collect();
    parts.sort();
    parts.dedup();
    parts.extend(largest);
    match parts.as_slice() {
        [] => "2".to_string(),
        [one] => one.clone(),
        several => format!("max({})", several.join(", ")),
    }
}
