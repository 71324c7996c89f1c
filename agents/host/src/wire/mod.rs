//! wire

pub mod outcome;
pub mod protocol;
pub mod sampling;
