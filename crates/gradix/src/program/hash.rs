//! Hashing for tables of expressions: quick, and the same in every run.
//!
//! Keys are what a program says, so that nobody gains by making them collide; a program that did would only compile
//! slowly.

use std::hash::{BuildHasher, BuildHasherDefault, Hash, Hasher};
use std::sync::Arc;

/// A map with this hashing.
pub type QuickMap<K, V> = std::collections::HashMap<K, V, BuildHasherDefault<Quick>>;
/// A set with this hashing.
pub type QuickSet<K> = std::collections::HashSet<K, BuildHasherDefault<Quick>>;

/// Multiplies and rotates, word by word, as the tables of the Rust compiler do.
#[derive(Clone, Copy, Debug, Default)]
pub struct Quick(u64);

impl Quick {
    fn add(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95);
    }
}

impl Hasher for Quick {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.add(u64::from_le_bytes(word));
        }
    }

    fn write_u8(&mut self, number: u8) {
        self.add(number.into());
    }

    fn write_u32(&mut self, number: u32) {
        self.add(number.into());
    }

    fn write_u64(&mut self, number: u64) {
        self.add(number);
    }

    fn write_usize(&mut self, number: usize) {
        self.add(number as u64);
    }

    fn finish(&self) -> u64 {
        // The low bits choose the place in a table, and products are best in their high bits.
        self.0.rotate_left(26)
    }
}

/// Values of which no two are equal, numbered in the order in which they came. Copies share them until one adds a value.
#[derive(Clone, Debug)]
pub struct Interned<T> {
    values: Arc<Vec<T>>,
    /// The number of a value by its hash, or by the first number after it that is not taken.
    numbers: Arc<QuickMap<u64, u32>>,
}

impl<T> Default for Interned<T> {
    fn default() -> Self {
        Interned { values: Arc::default(), numbers: Arc::default() }
    }
}

impl<T: Clone + Hash + Eq> Interned<T> {
    /// The number of a value, new or known.
    pub fn add(&mut self, value: T) -> u32 {
        let mut key = self.numbers.hasher().hash_one(&value);
        while let Some(&number) = self.numbers.get(&key) {
            if self.values[number as usize] == value {
                return number;
            }
            key = key.wrapping_add(1);
        }
        let number = self.values.len() as u32;
        Arc::make_mut(&mut self.numbers).insert(key, number);
        Arc::make_mut(&mut self.values).push(value);
        number
    }

    /// All values, by their numbers.
    pub fn values(&self) -> &[T] {
        &self.values
    }
}

/// A set of numbers below a limit.
pub struct NumberSet(Vec<u64>);

impl NumberSet {
    /// The empty set of numbers up to `largest`.
    pub fn up_to(largest: u32) -> Self {
        NumberSet(vec![0; largest as usize / 64 + 1])
    }

    /// Adds a number; false if it was there.
    pub fn insert(&mut self, number: u32) -> bool {
        let (word, bit) = (&mut self.0[number as usize / 64], 1 << (number % 64));
        let is_new = *word & bit == 0;
        *word |= bit;
        is_new
    }
}
