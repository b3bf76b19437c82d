//! The order in which a walk through a definition meets its indices.

use crate::program::{Affine, Atom, Definition};
use gradix_int::Int;

/// The numbers that indices get as they are met; outputs and others are counted apart.
pub struct Numbering {
    rank: usize,
    /// The number of each index.
    pub places: Vec<usize>,
    /// From where each output counts.
    pub offsets: Vec<Affine>,
    /// Each index in canonical ones.
    pub map: Vec<Affine>,
    outputs: usize,
    others: usize,
}

impl Numbering {
    /// Nothing is met yet.
    pub fn new(definition: &Definition) -> Self {
        let count = definition.indices.len();
        let (places, offsets) = (vec![usize::MAX; count], vec![Affine::default(); count]);
        let map = vec![Affine::default(); count];
        Numbering { rank: definition.rank, places, offsets, map, outputs: 0, others: 0 }
    }

    /// Numbers the indices of an expression.
    pub fn meet(&mut self, affine: &Affine) {
        let mut plain: Vec<(bool, Int, usize)> = Vec::new();
        let mut sizes = Affine::constant(affine.offset().clone());
        for (atom, coefficient) in affine.terms() {
            match atom {
                Atom::Index(i) => plain.push(((*i as usize) < self.rank, coefficient.clone(), *i as usize)),
                Atom::Param(_) => sizes = sizes.add_scaled(coefficient, &Affine::atom(atom.clone())),
                Atom::Floor(inner, _) => self.meet(inner),
            }
        }
        plain.sort();
        for (is_output, coefficient, index) in plain {
            if self.places[index] != usize::MAX {
                continue;
            }
            if is_output && coefficient == Int::ONE {
                self.offsets[index] = std::mem::take(&mut sizes);
            }
            self.number(index);
        }
    }

    fn number(&mut self, index: usize) {
        let next = if index < self.rank { &mut self.outputs } else { &mut self.others };
        self.places[index] = *next;
        *next += 1;
    }

    /// Numbers what the body does not mention.
    pub fn finish(&mut self, definition: &Definition) {
        for index in (self.rank..definition.indices.len()).chain(0..self.rank) {
            if self.places[index] == usize::MAX {
                self.number(index);
            }
        }
        for (index, place) in self.places.iter().enumerate() {
            let place = if index < self.rank { *place } else { self.rank + place };
            self.map[index] = Affine::index(place) - self.offsets[index].clone();
        }
    }
}
