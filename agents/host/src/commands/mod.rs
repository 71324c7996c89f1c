//! commands

pub mod canary;
pub mod clean;
pub mod doctor;
