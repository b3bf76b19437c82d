//! The types of numbers.

/// The type of the elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Real {
    /// `double`
    F64,
    /// `float`
    F32,
}

impl Real {
    /// The bytes of a number.
    pub const fn bytes(self) -> i64 {
        match self {
            Real::F64 => 8,
            Real::F32 => 4,
        }
    }
}
