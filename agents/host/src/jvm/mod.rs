//! HotSpot from outside: attaching, performance data, command lines, loaded libraries.

pub mod attach;
pub mod command_line;
pub mod hsperf;
pub mod loaded;
pub mod pauses;
pub mod preflight;
pub mod young;
