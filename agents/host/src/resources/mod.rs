//! What the agent itself may use of a host: processors, memory, disk, and the order in which recordings are folded.

pub mod children;
pub mod disk;
pub mod folding;
pub mod limits;
pub mod pace;
