//! The slope of a function along one direction, with an estimate of its error.

use gradix::diagnostic::Diagnostic;

/// A numeric derivative.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slope {
    pub(super) value: f64,
    /// The estimated error; infinite or not a number where there is no derivative.
    pub(super) error: f64,
}

/// The first steps to try; later ones come closer to a kink before they meet it.
const STEPS: [f64; 4] = [1.0 / 64.0, 1.0 / 1024.0, 1.0 / 16384.0, 1.0 / 262144.0];
/// How often a step is halved.
const HALVINGS: usize = 6;

/// The slope of `L` at step 0, given `change(step) = L(step) - L(0)`.
pub(super) fn slope(
    change: &mut dyn FnMut(f64) -> Result<f64, Diagnostic>,
    magnitude: f64,
) -> Result<Slope, Diagnostic> {
    let mut best = Slope { value: f64::NAN, error: f64::INFINITY };
    for first in STEPS {
        let slope = extrapolated(change, first, magnitude)?;
        if slope.error < best.error {
            best = slope;
        }
        if best.error <= enough(best.value, magnitude) {
            break;
        }
    }
    Ok(best)
}

/// An error that needs no improvement.
fn enough(value: f64, magnitude: f64) -> f64 {
    1e-9 * value.abs().max(1e-3 * magnitude)
}

/// Neville's scheme for `D(h)` with `h = first, first/2, …`, a polynomial in `h²`; the entry with the least error.
fn extrapolated(
    change: &mut dyn FnMut(f64) -> Result<f64, Diagnostic>,
    first: f64,
    magnitude: f64,
) -> Result<Slope, Diagnostic> {
    let mut best = Slope { value: f64::NAN, error: f64::INFINITY };
    let (mut previous, mut previous_jump): (Vec<f64>, f64) = (Vec::new(), f64::NAN);
    for halving in 0..HALVINGS {
        let step = first / (1u64 << halving) as f64;
        let (ahead, behind) = (change(step)? / step, -change(-step)? / step);
        let jump = ahead - behind;
        let kink = (2.0 * jump - previous_jump).abs();
        let mut row = vec![(ahead + behind) / 2.0];
        for (order, older) in previous.iter().enumerate() {
            let factor = (1u64 << (2 * (order + 1))) as f64;
            let newer = row[order];
            row.push(newer + (newer - older) / (factor - 1.0));
            let spread = (row[order + 1] - newer).abs().max((row[order + 1] - older).abs());
            if spread + kink < best.error {
                best = Slope { value: row[order + 1], error: spread + kink };
            }
        }
        if best.error <= enough(best.value, magnitude) {
            break;
        }
        (previous, previous_jump) = (row, jump);
    }
    Ok(best)
}

#[cfg(test)]
mod tests {
    use super::super::MARGIN;
    use super::*;

    fn measured(function: impl Fn(f64) -> f64, at: f64) -> Slope {
        slope(&mut |step| Ok(function(at + step) - function(at)), function(at).abs()).unwrap()
    }

    #[test]
    fn smooth_slopes_are_accurate_and_their_error_is_estimated() {
        for (function, derivative) in [
            (f64::sin as fn(f64) -> f64, f64::cos as fn(f64) -> f64),
            (|x| (5.0 * x).exp(), |x| 5.0 * (5.0 * x).exp()),
            (|x| 1.0 / (x + 1.1), |x| -1.0 / (x + 1.1).powi(2)),
            (|x| x * x - 3.0, |x| 2.0 * x),
            (|_| 4.0, |_| 0.0),
        ] {
            for at in [-0.9, -0.3, 0.0, 0.2, 0.75] {
                let (slope, exact) = (measured(function, at), derivative(at));
                let off = (slope.value - exact).abs();
                assert!(off <= 1e-8 * exact.abs().max(1.0) && off <= MARGIN * slope.error + 1e-12, "{slope:?} {exact}");
                assert!(slope.error <= 1e-7 * exact.abs().max(1.0), "{slope:?}");
            }
        }
    }

    #[test]
    fn a_kink_further_away_than_the_smallest_steps_is_avoided() {
        let slope = measured(|x| (x - 0.5).abs(), 0.5 + 1e-4);
        assert!((slope.value - 1.0).abs() < 1e-9 && slope.error < 1e-9, "{slope:?}");
    }

    #[test]
    fn there_is_no_slope_at_a_kink_a_jump_or_outside_the_domain() {
        assert!(measured(|x| (x - 0.5).abs(), 0.5).error > 0.1);
        assert!(measured(|x| 3.0 * x + (x - 0.5).max(0.0), 0.5).error > 0.1);
        assert!(measured(|x| (4.0 * x).floor(), 0.5).error > 0.1);
        assert!(measured(f64::sqrt, 0.0).error > 0.1);
        assert_eq!(measured(f64::ln, -0.5).error, f64::INFINITY);
    }
}
