//! jvm

pub mod attach;
pub mod attach_queue;
pub mod hsperf;
pub mod loaded;
pub mod symbols;
