//! Which processes are meant: a scan of the host, selectors, containers, and claims that processes make of themselves.

pub mod attempt;
pub mod containers;
pub mod find;
pub mod listening;
pub mod rivals;
pub mod scan;
pub mod selector;
