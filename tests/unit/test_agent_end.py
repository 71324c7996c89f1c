"""What is said of an agent that has ended, by what is known of it: no network is blamed that was fine."""

from __future__ import annotations

import signal

import pytest

from hprofiler.agent.talk import how_it_ended
from hprofiler.transport.base import SOME_SIGNAL


@pytest.mark.parametrize(
    ("status", "told", "help_is_offered"),
    [
        (None, "the connection was lost", False),
        (1, "the agent ended with status 1", False),
        (SOME_SIGNAL, "the agent was killed by a signal while the connection was up", True),
        (-signal.SIGKILL, "the agent ended with status -9 (SIGKILL)", True),
        (128 + signal.SIGKILL, "the agent ended with status 137 (SIGKILL)", True),
        (128 + signal.SIGTERM, "the agent ended with status 143 (SIGTERM)", False),
        (255, "the agent ended with status 255", False),
        (-999, "the agent ended with status -999", False),
    ],
)
def test_how_it_ended(status: int | None, told: str, help_is_offered: bool) -> None:
    how, remedy = how_it_ended(status)
    assert how == told and ("dmesg" in remedy) is help_is_offered
