//! Random inputs that depend on nothing but a seed, a name and a position.
//!
//! The number at position `p` (row-major) of the array `name` is the output `p + 1` of the generator SplitMix64
//! (Steele, Lea, Flood: *Fast splittable pseudorandom number generators*, 2014) started at a state that mixes the seed
//! with the name. So an array stays the same when another one is added, given or left out, and when its shape grows in
//! the first dimension.

use crate::array::Array;

/// An array of uniform numbers in the open interval (-1, 1); `None` if it does not fit into memory.
///
/// ```
/// use gradix_run::random;
/// let (short, long) = (random::array(7, "x", vec![2]).unwrap(), random::array(7, "x", vec![4]).unwrap());
/// assert_eq!(short.data, long.data[..2]);
/// assert_ne!(short, random::array(7, "y", vec![2]).unwrap());
/// ```
pub fn array(seed: u64, name: &str, shape: Vec<usize>) -> Option<Array> {
    let start = start(seed, name);
    let mut array = Array::zeros(shape)?;
    array.data.iter_mut().enumerate().for_each(|(position, value)| *value = uniform(number(start, position as u64)));
    Some(array)
}

/// The increment of SplitMix64: 2⁶⁴ over the golden ratio, made odd.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// The state that a name starts from: its bytes, absorbed one after the other.
fn start(seed: u64, name: &str) -> u64 {
    name.bytes().fold(mix(seed.wrapping_add(STEP)), |state, byte| mix(state.wrapping_add(STEP) ^ u64::from(byte)))
}

fn number(start: u64, position: u64) -> u64 {
    mix(start.wrapping_add(STEP.wrapping_mul(position.wrapping_add(1))))
}

/// The output function of SplitMix64.
fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The upper 52 bits as the midpoint of one of 2⁵² equal parts of (-1, 1); exact, and never 0 or ±1.
fn uniform(bits: u64) -> f64 {
    let part = 2 * (bits >> 12) + 1;
    part as f64 / (1u64 << 52) as f64 - 1.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generator_is_splitmix64() {
        // The first outputs from the state 1234567 of the reference implementation (prng.di.unimi.it/splitmix64.c).
        let expected = [6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431];
        assert_eq!([0, 1, 2, 3].map(|position| number(1234567, position)), expected);
    }

    #[test]
    fn numbers_fill_the_open_interval() {
        assert_eq!((uniform(0), uniform(u64::MAX)), (f64::EPSILON - 1.0, 1.0 - f64::EPSILON));
        let data = array(3, "x", vec![100, 100]).unwrap().data;
        let moment = |power: i32| data.iter().map(|v| v.powi(power)).sum::<f64>() / data.len() as f64;
        assert!(data.iter().all(|v| v.abs() < 1.0 && *v != 0.0));
        assert!(moment(1).abs() < 0.02 && (moment(2) - 1.0 / 3.0).abs() < 0.02, "{} {}", moment(1), moment(2));
    }

    #[test]
    fn seeds_and_names_give_different_numbers() {
        let first = |seed, name| array(seed, name, vec![]).unwrap().data[0];
        let all = [first(0, "x"), first(1, "x"), first(0, "y"), first(0, "xx"), first(0, "")];
        assert!((0..5).all(|a| (0..a).all(|b| all[a] != all[b])), "{all:?}");
    }

    #[test]
    fn arrays_past_all_memory_are_refused() {
        assert_eq!(array(0, "x", vec![usize::MAX, 2]), None);
    }
}
