"""Use cases: what a command does, without its options and its output."""
