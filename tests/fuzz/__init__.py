"""Fuzzing of all readers of untrusted bytes: `python -m tests.fuzz SECONDS [TARGET…]` is `make test-fuzz`."""
