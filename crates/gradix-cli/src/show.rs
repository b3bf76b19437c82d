//! Arrays as text: small ones whole, in the layout of NumPy, large ones as a summary.
//!
//! ```text
//! f = 3.5
//! y[3] = [ 0.5  -1.25  3.  ]
//! k[2, 2] =
//! [[1. 2.]
//!  [3. 4.]]
//! x[300, 400]: min -1, max 1, mean 0.002
//! ```

use gradix_run::Array;

/// The most elements that are shown one by one.
const SMALL: usize = 200;
/// The width that rows are wrapped at.
const WIDTH: usize = 100;

/// A named array, ended by a newline.
pub fn show(name: &str, array: &Array) -> String {
    if array.shape.is_empty() {
        return format!("{name} = {}\n", single(array.data[0]));
    }
    let extents: Vec<String> = array.shape.iter().map(usize::to_string).collect();
    let title = format!("{name}[{}]", extents.join(", "));
    if array.data.len() > SMALL {
        return format!("{title}: {}\n", summary(&array.data));
    }
    let body = nested(&cells(&array.data), &array.shape, 0);
    if body.contains('\n') { format!("{title} =\n{body}\n") } else { format!("{title} = {body}\n") }
}

fn summary(data: &[f64]) -> String {
    let numbers = || data.iter().copied().filter(|value| !value.is_nan());
    let count = numbers().count();
    let missing = data.len() - count;
    if count == 0 {
        return format!("{missing} nan");
    }
    let (min, max) = (numbers().fold(f64::INFINITY, f64::min), numbers().fold(f64::NEG_INFINITY, f64::max));
    let mean = numbers().sum::<f64>() / count as f64;
    let text = format!("min {}, max {}, mean {}", single(min), single(max), single(mean));
    if missing == 0 { text } else { format!("{text}, {missing} nan") }
}

/// A number on its own, to eight digits after the point as in an array.
pub fn single(value: f64) -> String {
    let (whole, rest) = parts(value, needs_exponent(&[value]));
    let rest = rest.replace(".e", "e");
    whole + rest.strip_suffix('.').unwrap_or(&rest)
}

/// The numbers in a common notation and width, points aligned.
fn cells(data: &[f64]) -> Vec<String> {
    let scientific = needs_exponent(data);
    let parts: Vec<(String, String)> = data.iter().map(|&value| parts(value, scientific)).collect();
    let after = parts.iter().map(|(_, rest)| rest.len()).max().unwrap_or(0);
    // What has no point (inf, nan) may reach over the digits behind it.
    let whole =
        parts.iter().map(|(whole, rest)| if rest.is_empty() { whole.len().saturating_sub(after) } else { whole.len() });
    let before = whole.max().unwrap_or(0);
    let cell = |(whole, rest): &(String, String)| match rest.is_empty() {
        true => format!("{whole:>0$}", before + after),
        false => format!("{whole:>before$}{rest:<after$}"),
    };
    parts.iter().map(cell).collect()
}

/// NumPy's rule for when fixed notation would lose digits or run long.
fn needs_exponent(data: &[f64]) -> bool {
    let sizes = || data.iter().filter(|value| value.is_finite() && **value != 0.0).map(|value| value.abs());
    let (largest, smallest) = (sizes().fold(0.0, f64::max), sizes().fold(f64::INFINITY, f64::min));
    largest >= 1e8 || smallest < 1e-4 || smallest.is_finite() && largest / smallest > 1e3
}

/// What stands before the point, and the rest.
fn parts(value: f64, scientific: bool) -> (String, String) {
    if !value.is_finite() {
        return (value.to_string().to_lowercase(), String::new());
    }
    let text = if scientific { format!("{value:.8e}") } else { format!("{value:.8}") };
    let (mantissa, exponent) = text.split_once('e').map_or((text.as_str(), None), |(m, e)| (m, Some(e)));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let exponent =
        exponent.and_then(|digits| digits.parse::<i32>().ok()).map_or(String::new(), |e| format!("e{e:+03}"));
    (whole.into(), format!(".{}{exponent}", fraction.trim_end_matches('0')))
}

fn nested(cells: &[String], shape: &[usize], depth: usize) -> String {
    match shape {
        [_] => format!("[{}]", wrapped(cells, depth + 1)),
        [rows, inner @ ..] => {
            let length = inner.iter().product::<usize>();
            let row = |row: usize| nested(&cells[row * length..(row + 1) * length], inner, depth + 1);
            let between = format!("{}{}", "\n".repeat(inner.len()), " ".repeat(depth + 1));
            format!("[{}]", (0..*rows).map(row).collect::<Vec<_>>().join(&between))
        }
        [] => cells.concat(),
    }
}

/// Cells separated by spaces, wrapped at the width.
fn wrapped(cells: &[String], indent: usize) -> String {
    let width = cells.first().map_or(0, |cell| cell.chars().count()) + 1;
    let per_line = ((WIDTH - indent.min(WIDTH / 2)) / width).max(1);
    let lines: Vec<String> = cells.chunks(per_line).map(|line| line.join(" ")).collect();
    lines.join(&format!("\n{}", " ".repeat(indent)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(shape: &[usize], data: &[f64], expected: &str) {
        assert_eq!(show("y", &Array::new(shape.to_vec(), data.to_vec())), expected);
    }

    #[test]
    fn scalars_are_plain_numbers() {
        check(&[], &[3.5], "y = 3.5\n");
        check(&[], &[-2.0], "y = -2\n");
        check(&[], &[0.1 + 0.2], "y = 0.3\n");
        check(&[], &[1e-7], "y = 1e-07\n");
        check(&[], &[f64::NAN], "y = nan\n");
    }

    #[test]
    fn points_are_aligned() {
        check(&[3], &[0.5, -1.25, 30.0], "y[3] = [ 0.5  -1.25 30.  ]\n");
        check(&[2], &[1.0, f64::NEG_INFINITY], "y[2] = [  1. -inf]\n");
        check(&[2], &[1.0, -2.5e-9], "y[2] = [ 1.e+00  -2.5e-09]\n");
    }

    #[test]
    fn dimensions_are_nested() {
        check(&[2, 2], &[1.0, 2.0, 3.0, 4.0], "y[2, 2] =\n[[1. 2.]\n [3. 4.]]\n");
        let cube = "y[2, 1, 2] =\n[[[1. 2.]]\n\n [[3. 4.]]]\n";
        check(&[2, 1, 2], &[1.0, 2.0, 3.0, 4.0], cube);
    }

    #[test]
    fn empty_arrays_are_shown() {
        check(&[0], &[], "y[0] = []\n");
        check(&[0, 3], &[], "y[0, 3] = []\n");
        check(&[2, 0], &[], "y[2, 0] =\n[[]\n []]\n");
    }

    #[test]
    fn large_arrays_are_summarised() {
        let mut data: Vec<f64> = (0..=200).map(f64::from).collect();
        check(&[201], &data, "y[201]: min 0, max 200, mean 100\n");
        data[100] = f64::NAN;
        check(&[201], &data, "y[201]: min 0, max 200, mean 100, 1 nan\n");
        check(&[201], &[f64::NAN; 201], "y[201]: 201 nan\n");
    }

    #[test]
    fn long_rows_are_wrapped() {
        let shown = show("y", &Array::new(vec![60], vec![0.125; 60]));
        assert!(shown.lines().count() > 2 && shown.lines().all(|line| line.chars().count() <= WIDTH), "{shown}");
    }
}
