//! How wide a text is, without knowing the font that will show it.

/// Texts are set in this size.
pub const FONT_SIZE: f64 = 12.0;
/// The most characters of a label that are shown.
const MOST: usize = 44;

/// A label of bearable length.
pub fn shortened(label: &str) -> String {
    match label.char_indices().nth(MOST) {
        Some(_) => label.chars().take(MOST - 1).chain(['…']).collect(),
        None => label.into(),
    }
}

/// At least the width of a text in Helvetica, Arial, Liberation Sans or DejaVu Sans.
pub fn width(text: &str) -> f64 {
    text.chars().map(|c| FONT_SIZE * advance(c)).sum()
}

/// The advance of DejaVu Sans, the widest of them, rounded up.
fn advance(c: char) -> f64 {
    match c {
        ' ' | '.' | ',' | 'i' | 'j' | 'l' | 'I' | '\'' => 0.33,
        '(' | ')' | '[' | ']' | 'f' | 't' | 'r' | ':' | ';' | '/' | '|' | '!' => 0.43,
        'm' | 'w' | 'M' | 'W' | '%' | '@' | '…' => 1.02,
        '+' | '<' | '>' | '=' | '^' | '~' | '#' | '&' => 0.85,
        'A'..='Z' => 0.8,
        '\u{21}'..='\u{7e}' => 0.65,
        '\u{300}'..='\u{36f}' => 0.0,
        '\u{80}'..='\u{2e7f}' => 0.9,
        _ => 1.1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_labels_are_shortened() {
        assert_eq!(shortened("sum[k in 0..K]"), "sum[k in 0..K]");
        let long = shortened(&"漢".repeat(100));
        assert!(long.chars().count() == MOST && long.ends_with('…'), "{long}");
    }

    #[test]
    fn widths_are_at_least_those_of_dejavu_sans() {
        let measured =
            [("sum[k in 0..K]", 83.7), ("exp", 22.1), ("MWmw@%", 67.3), ("if not (a <= b) and i + 2*j >= 0", 190.5)];
        for (text, measured) in measured {
            assert!((measured..1.2 * measured).contains(&width(text)), "{text}");
        }
    }
}
