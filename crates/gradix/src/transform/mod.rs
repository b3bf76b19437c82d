//! Other programs for other circumstances: a part of the results, a batch of arguments, arguments as they are stored, sizes
//! that are known, what `stop` holds as arguments of its own, subscripts that go around once. `Program → Program`.

pub mod assume;
pub mod batch;
pub mod hold;
pub mod restrict;
pub mod store;
pub mod uncoil;

pub use assume::{Assumed, assume};
pub use batch::batch;
pub use hold::{Held, hold};
pub use restrict::restrict;
pub use store::{Layout, store};
pub use uncoil::uncoil;
