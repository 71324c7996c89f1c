//! Recording: one process on a thread of its own, and the group of all processes of a session.

pub mod clock;
pub mod group;
pub mod member;
pub mod process;
pub mod profile_message;
pub mod span;
