//! Where the temporaries of a nest lie: one block of memory, in which those that are not needed at the same time share
//! their place.
//!
//! ```text
//! offset ▲   ┌───────────┐           a is used by kernels 0 and 1, b by 1 and 2,
//!        │   │     b     │           c by 2: c takes the place of a
//!        ├───┴───┬───────┤
//!        │   a   │   c   │
//!        └───────┴───────┴──▶ kernel
//! ```

use gradix::nest::Lifetime;

use crate::buffers::padded;

/// An offset for each request of some bytes during a lifetime, and the bytes in all; `None` past all memory. Requests
/// whose lifetimes overlap do not.
pub fn place(requests: &[(usize, Lifetime)]) -> Option<(Vec<usize>, usize)> {
    let mut offsets = vec![0; requests.len()];
    let mut order: Vec<usize> = (0..requests.len()).collect();
    order.sort_by_key(|&request| std::cmp::Reverse(requests[request].0));
    let (mut placed, mut total): (Vec<usize>, usize) = (Vec::new(), 0);
    for request in order {
        let (bytes, (first, last)) = (padded(requests[request].0)?, requests[request].1);
        let alive = |other: &&usize| requests[**other].1.0 <= last && first <= requests[**other].1.1;
        let mut taken: Vec<(usize, usize)> =
            placed.iter().filter(alive).map(|&other| (offsets[other], offsets[other] + requests[other].0)).collect();
        taken.sort();
        let mut offset = 0usize;
        for (start, end) in taken {
            if offset.checked_add(bytes)? <= start {
                break;
            }
            offset = offset.max(padded(end)?);
        }
        offsets[request] = offset;
        total = total.max(offset.checked_add(bytes)?);
        placed.push(request);
    }
    Some((offsets, total))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_that_live_at_the_same_time_do_not_overlap() {
        // Every combination of four lifetimes over four kernels.
        let lifetimes: Vec<Lifetime> = (0..4).flat_map(|first| (first..4).map(move |last| (first, last))).collect();
        let all = lifetimes.len();
        for choice in 0..all.pow(4) {
            let requests: Vec<(usize, Lifetime)> = [1000, 64, 300, 1]
                .iter()
                .enumerate()
                .map(|(position, bytes)| (*bytes, lifetimes[choice / all.pow(position as u32) % all]))
                .collect();
            let (offsets, total) = place(&requests).unwrap();
            for (a, &(bytes, (first, last))) in requests.iter().enumerate() {
                assert!(offsets[a] % 64 == 0 && offsets[a] + bytes <= total);
                for (b, &(other_bytes, (other_first, other_last))) in requests.iter().enumerate().skip(a + 1) {
                    let apart = offsets[a] + bytes <= offsets[b] || offsets[b] + other_bytes <= offsets[a];
                    assert!(apart || last < other_first || other_last < first, "{requests:?} {offsets:?}");
                }
            }
        }
    }

    #[test]
    fn a_place_is_used_again() {
        assert_eq!(place(&[(100, (0, 1)), (100, (1, 2)), (100, (2, 3))]), Some((vec![0, 128, 0], 256)));
        assert_eq!(place(&[(64, (0, 0)), (64, (1, 1)), (128, (2, 2))]), Some((vec![0, 0, 0], 128)));
        assert_eq!(place(&[]), Some((vec![], 0)));
    }

    #[test]
    fn what_is_past_all_memory_is_refused() {
        assert_eq!(place(&[(usize::MAX, (0, 0))]), None);
        assert_eq!(place(&[(usize::MAX / 2, (0, 0)), (usize::MAX / 2, (0, 0)), (usize::MAX / 2, (0, 0))]), None);
    }
}
