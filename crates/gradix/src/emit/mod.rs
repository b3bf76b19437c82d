//! Source code from a [`Nest`](crate::nest::Nest).
//!
//! An emitter turns a nest into a tree, and the tree is printed. What emitters of the C family share stands here: the
//! `tree` and its `print`, the `draft` in which code is written and what it has to `declare`, `names` and index expressions, and `values`: a graph of
//! expressions as statements. [`mod@c`] is the emitter for processors, [`mod@cuda`] that for GPUs.

pub mod c;
pub mod cuda;
mod declare;
mod draft;
mod integers;
mod names;
mod print;
mod tree;
mod values;
mod work;

pub use crate::nest::Real;
pub use c::c;
pub use cuda::cuda;
