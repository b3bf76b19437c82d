//! Exact symbolic derivatives of tensors defined in index notation.
//!
//! ```text
//! text ─syntax→ Ast ─resolve→ Program ─derive→ Program ─print→ text
//!                               │
//!                               └─compile→ Compiled { economised, arranged, schedule, nest } ─emit→ C
//! ```
//!
//! Every arrow is a function from values to values:
//!
//! ```
//! use gradix::derive::Options;
//! use gradix::{Diagnostic, derive, print, resolve, syntax};
//!
//! let ast = syntax::parse("input x[N, N]\nf[i] = x[i, i]^3")?;
//! let program = resolve(&ast, &[])?.program;
//! let derived = derive(&program, &Options::default())?;
//! let text = print::print(&derived.program).map_err(|error| vec![error])?;
//! assert_eq!(text, "input x[N, N], df[N]\ndx[i, j in 0..N] = if i == j then 3 * df[i] * x[i, i]^2 else 0\n");
//! # Ok::<(), Vec<Diagnostic>>(())
//! ```

pub mod batch;
pub mod bounds;
pub mod build;
pub mod compile;
pub mod derive;
pub mod diagnostic;
pub mod economise;
pub mod emit;
pub mod estimate;
pub mod explain;
pub mod extent;
pub mod factor;
pub mod graph;
pub mod guard;
pub mod lower;
pub mod narrow;
pub mod nest;
pub mod nested;
pub mod print;
pub mod program;
pub mod resolve;
pub mod restrict;
pub mod scalar;
pub mod schedule;
pub mod settle;
pub mod simplify;
pub mod sizes;
pub mod store;
pub mod syntax;
pub mod system;
pub mod target;
pub mod tidy;

pub use batch::batch;
pub use compile::{Compiled, compile, is_little};
pub use derive::derive;
pub use diagnostic::{Diagnostic, Result};
pub use economise::economise;
pub use gradix_int::Int;
pub use lower::{Assumed, assume, lower};
pub use program::Program;
pub use resolve::{Resolved, resolve};
pub use restrict::restrict;
pub use simplify::simplify;
pub use store::{Layout, store};
pub use target::Target;
