//! wire

pub mod leftovers;
pub mod outcome;
pub mod protocol;
pub mod sampling;
