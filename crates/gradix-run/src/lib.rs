//! Running gradix programs: results and derivatives of tensors that are defined in index notation.
//!
//! ```
//! # fn main() -> Result<(), gradix_run::Error> {
//! let f = gradix_run::compile("input x[N]; y[i] = x[2*i]^3")?;
//! let x = [1.0, 2.0, 3.0];
//! let g = f.call().array("x", &x).array("dy", &[1.0, 1.0]).value_and_grad()?;
//! assert_eq!((&g["y"].data, &g["dx"].data), (&vec![1.0, 27.0], &vec![3.0, 0.0, 27.0]));
//! # Ok(())
//! # }
//! ```
//!
//! [`compile`] is the front door ([`compiled`] tells more: arrays of any strides, `ndarray`, f32, errors). Below it are
//! [`Executable`], which runs a program at given sizes on one backend, the reference interpreter [`interp`](interp()), and
//! [`check`](check()), which compares derivatives with numeric differentiation.
//!
//! Features:
//! - `ndarray` (default): arrays of that crate as arguments and results.
//! - `macros`: `program!("input x[N]; …")`, in place of [`compile`], finds mistakes when the crate is compiled.

pub mod array;
pub mod buffers;
pub mod check;
mod code;
pub mod compiled;
pub mod confirm;
mod cores;
pub mod cuda;
pub mod element;
pub mod executable;
pub mod files;
pub mod function;
pub mod gradient;
pub mod host;
pub mod interp;
pub mod interrupt;
pub mod layout;
pub mod machine;
pub mod memory;
pub mod native;
pub mod note;
pub mod random;
pub mod recent;
mod reliance;
pub mod stages;
pub mod strided;
pub mod threads;
pub mod view;
pub mod vm;

pub use array::Array;
pub use check::check;
pub use compiled::{Call, Compiled, Error, compile};
pub use confirm::confirm;
pub use element::Element;
pub use executable::{Backend, Executable};
pub use files::Dtype;
pub use function::Function;
#[cfg(feature = "macros")]
pub use gradix_macros::program;
pub use host::host;
pub use interp::{Outcome, interp};
pub use note::Note;
pub use recent::Recent;
pub use view::View;

/// The examples in the documents.
#[cfg(doctest)]
mod documents {
    #[doc = include_str!("../../../README.md")]
    struct Readme;
    #[doc = include_str!("../../../docs/backends.md")]
    struct Backends;
    #[doc = include_str!("../../../docs/rust.md")]
    struct Rust;
}
