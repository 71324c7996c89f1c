//! recording

pub mod clock;
pub mod group;
pub mod preflight;
pub mod process;
pub mod profile_message;
