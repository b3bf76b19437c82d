//! Hashing for tables of expressions: quick, and the same in every run.
//!
//! Keys are what a program says, so that nobody gains by making them collide; a program that did would only compile
//! slowly.

use std::hash::{BuildHasherDefault, Hasher};

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
