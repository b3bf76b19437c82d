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
//! let text = print(&derived.program).map_err(|error| vec![error])?;
//! assert_eq!(text, "input x[N, N], df[N]\ndx[i, j in 0..N] = if i == j then 3 * df[i] * x[i, i]^2 else 0\n");
//! # Ok::<(), Vec<Diagnostic>>(())
//! ```

pub mod compile;
pub mod derive;
pub mod diagnostic;
pub mod divide;
pub mod domain;
pub mod economise;
pub mod emit;
pub mod explain;
pub mod lift;
pub mod lower;
pub mod nest;
pub mod program;
pub mod resolve;
pub mod scalar;
pub mod scan;
pub mod schedule;
pub mod simplify;
pub mod syntax;
pub mod target;
pub mod timings;
pub mod transform;
pub mod waves;

pub use compile::{Compiled, compile};
pub use derive::derive;
pub use diagnostic::{Diagnostic, Result};
pub use economise::economise;
pub use economise::is_little;
pub use gradix_int::Int;
pub use lower::lower;
pub use program::Program;
pub use program::print::print;
pub use resolve::{Resolved, resolve};
pub use scan::scan;
pub use simplify::simplify;
pub use target::Target;
pub use transform::{Assumed, Layout, assume, batch, restrict, store};
