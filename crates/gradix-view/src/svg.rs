//! What the pictures have in common: the frame, the font, the colours.

/// What the function is made of.
pub const BLUE: &str = "#1a4fba";
/// What the derivative adds; the domain of a definition.
pub const RED: &str = "#c8102e";

/// A picture of its own on a white page: no style sheet, no script, nothing to load, and nothing with an `id`, so that it can
/// stand beside others on one page.
pub fn document(width: f64, height: f64, font_size: u32, body: &str) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
         font-family=\"Helvetica, Arial, sans-serif\" font-size=\"{font_size}\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n{body}</svg>\n"
    )
}

/// Text that stands for itself between tags and in attributes.
pub fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
