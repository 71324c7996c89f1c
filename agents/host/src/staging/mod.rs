//! staging

pub mod beside;
pub mod shipped;
pub mod store;
