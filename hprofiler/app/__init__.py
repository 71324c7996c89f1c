"""Use cases: what a command does, apart from its options and its output."""
