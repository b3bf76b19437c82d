//! Exact integer linear algebra.
pub use dashu_int::IBig as Int;
