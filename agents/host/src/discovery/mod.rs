//! discovery

pub mod containers;
pub mod find;
pub mod listening;
pub mod own_group;
pub mod rivals;
pub mod selector;
