//! session

pub mod backlog;
pub mod inbox;
pub mod output;
pub mod resume;
pub mod run;
