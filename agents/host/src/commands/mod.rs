//! commands

pub mod clean;
pub mod doctor;
