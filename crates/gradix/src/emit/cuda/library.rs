//! The CUDA C++ that files carry with them: whole numbers, and the functions of the language.
//!
//! Elementary functions are CUDA's own, at full accuracy. What CUDA has not stands in `functions.cu`.

use crate::program::{BinaryOp, UnaryOp};
use std::collections::BTreeSet;

/// The text that defines whole numbers and what is called.
pub fn text(called: &BTreeSet<String>) -> String {
    // Powers with a half in the exponent are made of two roots, which are no functions of the language.
    let unary = UnaryOp::ALL.iter().map(|op| op.name()).chain(["root", "root3"]).map(|name| (name, 1));
    let binary = BinaryOp::FUNCTIONS.iter().map(|(name, _)| (*name, 2));
    let own: Vec<&str> = OWN.split("\n\n").collect();
    let mut text = WHOLE.to_string();
    for (name, operands) in unary.chain(binary).filter(|(name, _)| called.contains(&format!("gx_{name}"))) {
        let head = format!(" gx_{name}(");
        match own.iter().find(|snippet| snippet.contains(&head)) {
            Some(snippet) => text += &format!("\n{}\n", snippet.trim()),
            None if operands == 1 => text += &format!("\nGX_FUNCTION gx_t gx_{name}(gx_t x) {{ return {name}(x); }}\n"),
            None => text += &format!("\nGX_FUNCTION gx_t gx_{name}(gx_t x, gx_t y) {{ return {name}(x, y); }}\n"),
        }
    }
    text
}

const WHOLE: &str = include_str!("whole.cu");
const OWN: &str = include_str!("functions.cu");
