//! What the agent itself may use of a host: processors, memory, and the order in which recordings are folded.

pub mod folding;
pub mod limits;
