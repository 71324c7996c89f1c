//! Which processes match: a scan of the host, selectors, containers, and the claims of processes.

pub mod containers;
pub mod find;
pub mod follow;
pub mod listening;
pub mod rivals;
pub mod role;
pub mod scan;
pub mod selector;
