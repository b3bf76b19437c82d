//! Elements of random tensors: subscripts that stay inside, by their hulls or by what is written around them.

use super::{Dimension, Generator, Index, visible};
use crate::random::affine::Affine;
use std::collections::BTreeMap;

impl Generator {
    /// An affine combination of visible indices.
    pub(super) fn mixture(&mut self, scope: &[Index], most: usize) -> Affine {
        let indices = visible(scope);
        let mut sum = Affine::number(self.noise.between(-1, 2));
        if self.noise.percent(50) {
            sum.constant = 0;
        }
        for _ in 0..=self.noise.below(most) {
            if !indices.is_empty() {
                let index = &indices[self.noise.below(indices.len())];
                let factor = *self.noise.pick(&[1, 1, 1, 1, 1, -1, -1, 2, -2, 3]);
                sum = sum.plus(factor, &Affine::name(&index.name));
            }
        }
        sum
    }

    pub(super) fn access(&mut self, scope: &[Index]) -> String {
        let recent = self.noise.percent(35) && self.tensors.iter().any(|t| !t.input);
        let choices: Vec<usize> = (0..self.tensors.len()).filter(|&t| self.tensors[t].input != recent).collect();
        let number = *self.noise.pick(&choices);
        let tensor = self.tensors[number].clone();
        if tensor.dimensions.is_empty() {
            return tensor.name;
        }
        let same = self.noise.percent(15).then(|| self.mixture(scope, 2));
        let mut subscripts = Vec::new();
        let mut guards = Vec::new();
        let mut padded = false;
        for (place, dimension) in tensor.dimensions.iter().enumerate() {
            match dimension {
                Dimension::Growing(_) => {
                    let (text, largest) = self.growing(scope, same.clone());
                    subscripts.push(text);
                    if let Dimension::Growing(list) = &mut self.tensors[number].dimensions[place] {
                        list.push(largest);
                    }
                }
                Dimension::Settled(extent) => {
                    let (text, outside) = self.settled(scope, extent, same.clone());
                    padded |= outside == Some(false);
                    if outside == Some(true) {
                        guards.push(format!("0 <= {text} < {extent}"));
                    }
                    subscripts.push(text);
                }
            }
        }
        let access = format!("{}[{}]", tensor.name, subscripts.join(", "));
        let access = match padded {
            true => format!("pad({access}, {})", self.noise.pick(&["0", "0", "1.5", "-0.5"])),
            false => access,
        };
        match guards.is_empty() {
            true => access,
            false => format!("(if {} then {access} else {})", guards.join(" and "), self.noise.pick(&["0", "0.25"])),
        }
    }

    /// A subscript from 0 on, and its largest value.
    fn growing(&mut self, scope: &[Index], same: Option<Affine>) -> (String, Affine) {
        let (subscript, largest) = self.shifted_to_zero(scope, same.clone());
        let inferred = visible(scope).iter().any(|index| index.inferred && subscript.terms.contains_key(&index.name));
        if same.is_some() || inferred {
            return (subscript.to_string(), largest);
        }
        match self.noise.below(24) {
            0 => (format!("({subscript}) // {}", self.noise.between(2, 3)), largest),
            1 => {
                let modulus = self.noise.between(1, 4);
                (format!("({subscript}) % {modulus}"), Affine::number(modulus - 1))
            }
            2 => {
                let (other, _) = self.shifted_to_zero(scope, None);
                (format!("min({subscript}, {other})"), largest)
            }
            3 => {
                let (other, more) = self.shifted_to_zero(scope, None);
                (format!("max({subscript}, {other})"), largest.plus(1, &more).shift(1))
            }
            4 => {
                let modulus = self.noise.between(2, 3);
                let (other, more) = self.shifted_to_zero(scope, None);
                (format!("({subscript}) // {modulus} + {other}"), largest.plus(1, &more).shift(1))
            }
            5 => {
                let modulus = self.noise.between(2, 3);
                (format!("{modulus} * (({subscript}) // {modulus})"), largest)
            }
            6 => {
                let top = self.noise.between(1, 3);
                (format!("clamp({}, 0, {top})", self.mixture(scope, 2)), Affine::number(top))
            }
            7 => {
                let place = self.noise.between(0, 2);
                (place.to_string(), Affine::number(place))
            }
            _ => (subscript.to_string(), largest),
        }
    }

    /// An affine subscript shifted to start at 0, and its largest value.
    fn shifted_to_zero(&mut self, scope: &[Index], same: Option<Affine>) -> (Affine, Affine) {
        let mut mixture = same.unwrap_or_else(|| self.mixture(scope, 3));
        let bare = visible(scope).iter().any(|index| index.inferred && mixture == Affine::name(&index.name));
        if bare {
            mixture = mixture.plus(-2, &mixture);
        }
        let (low, high) = hull(&mixture, scope);
        let gap = if self.noise.percent(15) { 1 } else { 0 };
        (mixture.plus(-1, &low).shift(gap), high.plus(-1, &low).shift(gap))
    }

    /// A subscript for a dimension of this extent; the flag tells that it needs a guard (true) or `pad` (false).
    fn settled(&mut self, scope: &[Index], extent: &Affine, same: Option<Affine>) -> (String, Option<bool>) {
        let agreeing = visible(scope).into_iter().filter(|i| !i.inferred || i.high.shift(1) == *extent);
        let agreeing: Vec<Index> =
            agreeing.filter(|index| self.fits(&Affine::name(&index.name), scope, extent)).collect();
        if !agreeing.is_empty() && self.noise.percent(50) {
            return (self.noise.pick(&agreeing).name.clone(), None);
        }
        for _ in 0..4 {
            let mut mixture = same.clone().unwrap_or_else(|| self.mixture(scope, 2));
            if self.noise.percent(30) {
                mixture = extent.shift(-1).plus(-1, &mixture);
            }
            let bare = visible(scope).iter().any(|i| i.inferred && mixture == Affine::name(&i.name));
            if !bare && self.fits(&mixture, scope, extent) {
                return (mixture.to_string(), None);
            }
        }
        let mut mixture = self.mixture(scope, 2);
        if visible(scope).iter().any(|i| i.inferred && mixture == Affine::name(&i.name)) {
            mixture = mixture.shift(1);
        }
        let around = extent.plus(1, extent);
        let near = self.fits(&mixture.plus(1, extent), scope, &around.plus(1, extent));
        let mirrored = self.fits(&mixture.plus(1, extent).shift(-1), scope, &around.plus(1, extent).shift(-2));
        match self.noise.below(5) {
            0 if near => (format!("wrap({mixture})"), None),
            1 if mirrored => (format!("reflect({mixture})"), None),
            0 | 2 => (mixture.to_string(), Some(true)),
            3 => (mixture.to_string(), Some(false)),
            _ => (format!("clamp({mixture})"), None),
        }
    }

    /// Whether a subscript stays inside for all small sizes.
    pub(super) fn fits(&self, subscript: &Affine, scope: &[Index], extent: &Affine) -> bool {
        let (low, high) = hull(subscript, scope);
        self.all_sizes().iter().all(|sizes| {
            let empty = scope.iter().any(|index| index.low.at(sizes) > index.high.at(sizes));
            empty || low.at(sizes) >= 0 && high.at(sizes) < extent.at(sizes)
        })
    }

    pub(super) fn all_sizes(&self) -> Vec<BTreeMap<String, i64>> {
        let mut all = vec![BTreeMap::new()];
        for (name, least) in &self.params {
            let with = |sizes: &BTreeMap<String, i64>, size: i64| {
                let mut sizes = sizes.clone();
                sizes.insert(name.clone(), size);
                sizes
            };
            all = all.iter().flat_map(|sizes| (*least..6).map(move |size| with(sizes, size))).collect();
        }
        all
    }
}

/// The smallest and largest values of an expression in visible indices and sizes.
pub(super) fn hull(expr: &Affine, scope: &[Index]) -> (Affine, Affine) {
    let indices = visible(scope);
    let (mut low, mut high) = (Affine::number(expr.constant), Affine::number(expr.constant));
    for (name, &factor) in &expr.terms {
        let (least, most) = match indices.iter().find(|index| index.name == *name) {
            Some(index) if factor > 0 => (index.low.clone(), index.high.clone()),
            Some(index) => (index.high.clone(), index.low.clone()),
            None => (Affine::name(name), Affine::name(name)),
        };
        low = low.plus(factor, &least);
        high = high.plus(factor, &most);
    }
    (low, high)
}
