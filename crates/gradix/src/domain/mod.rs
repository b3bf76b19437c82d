//! Questions about index sets: which points satisfy some constraints, what conditions around an expression say, whether
//! subscripts stay inside their tensors, and which sizes that asks for.

pub mod bounds;
pub mod coverage;
pub mod estimate;
pub mod extent;
pub mod guard;
pub mod order;
pub mod reach;
pub mod sizes;
pub mod system;
