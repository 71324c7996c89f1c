"""What holds for all tests."""

from __future__ import annotations

from hypothesis import settings

# The same examples each time, however long one takes on a busy machine: what fails here fails everywhere.
settings.register_profile("the same everywhere", deadline=None, derandomize=True)
settings.load_profile("the same everywhere")
