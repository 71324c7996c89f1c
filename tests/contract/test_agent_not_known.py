"""A JVM that does not match is told where it may be meant all the same, and only there."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.burners.burner import Burner
from tests.contract.agent_driver import Agent
from tests.contract.conftest import OTHER_USER

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: processes of other users"),
]

Burn = Callable[..., Burner]


def reasons(agent: Agent, pid: int, native: bool = False) -> list[str]:
    """Why a process is left out by a selector that it does not match."""
    ignored = agent.find(native, kind="text", text="no command line has this")["ignored"]
    return [one["reason"] for one in ignored if one["pid"] == pid]


@pytest.fixture
def left_unread(burn: Burn, tmp_path: Path) -> Burner:
    """A JVM whose file of arguments is gone."""
    file = tmp_path / "arguments"
    file.write_text("-Dnothing=here")
    burner = burn(options=[f"@{file}"])
    file.unlink()
    return burner


def test_a_jvm_of_which_all_is_known_is_passed_over(agent: Agent, burn: Burn) -> None:
    assert reasons(agent, burn().outer.pid) == []


def test_what_an_unread_file_hides_may_be_meant(agent: Agent, left_unread: Burner) -> None:
    (reason,) = reasons(agent, left_unread.outer.pid)
    assert reason == "a file with its arguments could not be read: it may match"


def test_jvms_whose_user_the_agent_cannot_become_are_passed_over(
    start_agent: Callable[..., Agent], burn: Burn, left_unread: Burner
) -> None:
    agent = start_agent(user=OTHER_USER)
    agent.hello()
    assert [reasons(agent, jvm.outer.pid) for jvm in (burn(), left_unread)] == [[], []]


@pytest.mark.parametrize("words", [["x"] * 20_001, ["x" * 120_000] * 9], ids=["many", "much"])
def test_a_command_line_that_is_not_read_to_its_end_may_be_meant(agent: Agent, words: Sequence[str]) -> None:
    long = subprocess.Popen(["sh", "-c", "read end", *words], stdin=subprocess.PIPE)
    try:
        (reason,) = reasons(agent, long.pid, native=True)
        assert reason == "its command line is too long: it may match"
    finally:
        long.communicate()
