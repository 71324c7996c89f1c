//! resources

pub mod folding;
pub mod limits;
