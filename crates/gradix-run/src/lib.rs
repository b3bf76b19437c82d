//! Running gradix programs.

pub mod array;
pub mod buffers;
pub mod check;
mod code;
pub mod confirm;
mod cores;
pub mod element;
pub mod executable;
pub mod files;
pub mod function;
pub mod gradient;
pub mod interp;
pub mod layout;
pub mod machine;
pub mod memory;
pub mod native;
pub mod note;
pub mod random;
pub mod recent;
mod reliance;
pub mod strided;
pub mod threads;
pub mod view;
pub mod vm;

pub use array::Array;
pub use check::check;
pub use confirm::confirm;
pub use element::Element;
pub use executable::{Backend, Executable};
pub use files::Dtype;
pub use function::Function;
pub use interp::{Outcome, interp};
pub use note::Note;
pub use recent::Recent;
pub use view::View;
