"""An application scheduled again from its tasks: what it would gain without waits or stragglers."""
