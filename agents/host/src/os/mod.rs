//! The operating system: `/proc`, files, users and identity, threads with a time limit, the agent's lease.

pub mod audit;
pub mod fence;
pub mod files;
pub mod free_space;
pub mod host;
pub mod identity;
pub mod lease;
pub mod peer;
pub mod perf_event;
pub mod proc;
pub mod system_calls;
pub mod threads;
pub mod turns;
pub mod worker_pool;
