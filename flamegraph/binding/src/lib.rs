//! The Python binding of flamegraph.
