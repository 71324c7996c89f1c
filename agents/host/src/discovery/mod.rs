//! discovery

pub mod containers;
pub mod fair_share;
pub mod find;
pub mod listening;
pub mod own_group;
pub mod rivals;
pub mod selector;
