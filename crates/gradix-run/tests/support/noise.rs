//! Pseudo-random numbers (SplitMix64): a sequence for the generator, and data that depends on a name and a
//! place alone, so that a smaller program sees the same numbers.

/// A sequence of pseudo-random numbers.
pub struct Noise(u64);

impl Noise {
    pub fn new(seed: u64) -> Self {
        Noise(mix(seed ^ 0x5851_f42d_4c95_7f2d))
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// A number in `0..count`.
    pub fn below(&mut self, count: usize) -> usize {
        (self.next() % count as u64) as usize
    }

    /// A number in `low..=high`.
    pub fn between(&mut self, low: i64, high: i64) -> i64 {
        low + self.below((high - low + 1) as usize) as i64
    }

    pub fn percent(&mut self, chance: usize) -> bool {
        self.below(100) < chance
    }

    pub fn pick<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        &choices[self.below(choices.len())]
    }
}

/// A number for this name and place.
pub fn at(seed: u64, name: &str, place: usize) -> u64 {
    name.bytes().fold(mix(seed ^ mix(place as u64)), |state, byte| mix(state ^ byte as u64))
}

/// A value in -1.5..1.5 for this name and place; with `special`, often 0 or a number that others share.
pub fn value(seed: u64, special: bool, name: &str, place: usize) -> f64 {
    let bits = at(seed, name, place);
    match (special, bits % 4) {
        (true, 0) => 0.0,
        (true, 1) => 0.5,
        _ => (bits >> 11) as f64 / (1u64 << 53) as f64 * 3.0 - 1.5,
    }
}

fn mix(mut state: u64) -> u64 {
    state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    state = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    state = (state ^ (state >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    state ^ (state >> 31)
}
