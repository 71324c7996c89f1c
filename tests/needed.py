"""What a test needs and this machine does not have: a JDK, a program, a cluster's software."""

from __future__ import annotations

import os
from typing import NoReturn

import pytest

HAVE_ALL = "HPROFILER_HAVE_ALL"
"""Set in the environment, as CI has it: all that tests need has to be there."""


OF_THE_KERNEL = (
    "perf_event_paranoid",
    "hardware counters",
    "the kernel has more than halved",
    "control groups that limit memory",
    "control group can be made",
    "time namespaces cannot",
    "the disk here",
    "so many processors",
    "x86-64 only",
    "no cgroup v2",
)
"""Words of reasons to skip that hold with `HAVE_ALL` too: nobody can install another kernel or processor."""


def is_lacking(reason: str) -> bool:
    """Whether a test that was skipped for this should have been run: all that it needs has to be there."""
    return bool(os.environ.get(HAVE_ALL)) and not any(words in reason for words in OF_THE_KERNEL)


def lacking(reason: str) -> NoReturn:
    """Skips the test that cannot be run here; with `HAVE_ALL` tests/conftest.py makes that a failure."""
    pytest.skip(reason)
