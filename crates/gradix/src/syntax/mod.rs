//! Text to [`Ast`] and back.

pub mod ast;

pub use ast::Ast;
