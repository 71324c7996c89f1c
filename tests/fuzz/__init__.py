"""Fuzzing of whatever reads foreign bytes: `python -m tests.fuzz SECONDS [TARGET…]` is `make test-fuzz`."""
