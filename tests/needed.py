"""What a test needs and this machine does not have: a JDK, a program, a cluster's software."""

from __future__ import annotations

import os
from typing import NoReturn

import pytest

HAVE_ALL = "HPROFILER_HAVE_ALL"
"""Set in the environment, as CI has it: all that tests need has to be there."""


def lacking(reason: str) -> NoReturn:
    """Ends the test that cannot be run here: it is skipped with the reason, or fails with `HAVE_ALL`."""
    if os.environ.get(HAVE_ALL):
        pytest.fail(f"{reason}, and {HAVE_ALL} is set", pytrace=False)
    pytest.skip(reason)
