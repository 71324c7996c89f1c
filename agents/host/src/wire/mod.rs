//! The protocol's data (`agents/PROTOCOL.md`): requests, answers, and the outcome of each process. This room imports
//! nothing of the agent's own.

pub mod events;
pub mod leftovers;
pub mod memory;
pub mod outcome;
pub mod requests;
pub mod sampling;
