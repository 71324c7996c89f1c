//! The files that the agent keeps on a host: those beside a JVM during a recording, and the cache between recordings.

pub mod folders;
pub mod shipped;
pub mod store;
