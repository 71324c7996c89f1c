//! One program for all tests but those that need a process of their own, so that it is linked once.

mod compact;
mod damage;
mod deep;
mod differences;
mod formats;
mod golden;
mod hostile;
mod jfr;
mod jfr_maker;
mod jit_map;
mod long_text;
mod modules;
mod operations;
mod operations_filter;
mod operations_properties;
mod perf_data;
mod perf_live;
mod perf_maker;
mod pprof_maker;
mod pprof_threads;
mod profile;
mod round_trips;
mod speedscope;
mod support;
mod svg;
mod times;
