"""A process whose memory nobody can read, so that `ps` hangs: the others are found all the same."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.burners.burner import Burner
from tests.contract.agent_driver import Agent
from tests.contract.cleaning import HASH, list_event
from tests.contract.conftest import OTHER_USER, found

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: a file system of its own"),
    pytest.mark.skipif(not Path("/dev/fuse").exists(), reason="this kernel has no FUSE"),
]

HANGS = "it hangs: it could not be read in time (ps would hang as well)"
SOURCE = Path(__file__).with_name("hanging.c")

Burn = Callable[..., Burner]


@pytest.fixture(scope="module")
def java(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program, called as JVMs are."""
    program = tmp_path_factory.mktemp("hanging") / "java"
    subprocess.run(["cc", "-O1", "-pthread", "-o", str(program), str(SOURCE)], check=True)
    return program


@pytest.fixture
def hanging(java: Path, tmp_path: Path) -> Iterator[int]:
    """Its pid."""
    folder = tmp_path / "hanging"
    folder.mkdir()
    command = ["unshare", "--mount", "--propagation", "private", str(java), str(folder)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    server = process.stdout.readline().strip()
    try:
        assert server, "the kernel waits without holding the memory"
        yield process.pid
    finally:
        if server:
            os.kill(int(server), signal.SIGKILL)
        process.wait()
        process.stdout.close()


def reasons(agent: Agent, pid: int, **selector: object) -> list[str]:
    """Why a process is left out."""
    return [one["reason"] for one in agent.find(**selector)["ignored"] if one["pid"] == pid]


def test_the_others_are_found(agent: Agent, burn: Burn, hanging: int) -> None:
    burner = burn()
    for _ in range(3):
        (one,) = found(agent, burner)
        assert one["main_class"] == "Burner"
    agent.send("list")
    listing = agent.expect("processes")
    listed = [process["pid"] for process in listing["processes"]]
    assert burner.outer.pid in listed and hanging not in listed
    assert hanging in [process["pid"] for process in listing["ignored"]]
    assert agent.bye() == 0


def test_that_it_hangs_is_told(agent: Agent, hanging: int) -> None:
    left_out = agent.find(kind="text", text="no command line has this")["ignored"]
    assert [one["doubtful"] for one in left_out if one["pid"] == hanging] == [True]
    (reason,) = reasons(agent, hanging, kind="text", text="no command line has this")
    assert reason == f"{HANGS}: it may match"
    assert reasons(agent, hanging, kind="pids", pids=[hanging]) == [HANGS]
    assert reasons(agent, hanging, kind="pids", pids=[os.getpid()]) == []


def test_whose_user_the_agent_cannot_become_is_passed_over(
    start_agent: Callable[..., Agent], hanging: int
) -> None:
    agent = start_agent(user=OTHER_USER)
    agent.hello()
    assert reasons(agent, hanging, kind="text", text="no command line has this") == []


def test_what_is_in_the_others_is_cleaned(agent: Agent, hanging: int) -> None:
    """And what may be in that one stays."""
    library = Path("/tmp") / f".hprofiler-ap-{HASH}-0"
    library.mkdir(mode=0o700)
    try:
        told = list_event(agent)
        (entry,) = [one for one in told["entries"] if one["path"] == str(library)]
        assert entry["state"] == "used" and "could not be checked may use" in entry["reason"], entry
    finally:
        library.rmdir()
    assert {"what": f"process {hanging}", "reason": HANGS} in told["failed"]


def test_what_another_user_may_not_read_keeps_him_from_cleaning_nothing(
    start_agent: Callable[..., Agent], hanging: int
) -> None:
    agent = start_agent(user=OTHER_USER)
    agent.hello()
    assert not [one for one in list_event(agent)["failed"] if str(hanging) in one["what"]]
