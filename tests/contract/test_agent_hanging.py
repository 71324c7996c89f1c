"""A process whose memory nobody can read, so that `ps` hangs: the others are found all the same."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contract.conftest import OTHER_USER

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: a file system of its own"),
    pytest.mark.skipif(not Path("/dev/fuse").exists(), reason="this kernel has no FUSE"),
]

HANGS = "it hangs: it could not be read in time (ps would hang as well)"
SOURCE = Path(__file__).with_name("hanging.c")


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


def test_the_others_are_found_and_that_it_hangs_is_reported(agent, burn, hanging):
    burner = burn()
    for _ in range(3):
        assert agent.found(burner)[0]["main_class"] == "Burner"
    agent.send("list")
    listing = agent.expect("processes")
    listed = [process["pid"] for process in listing["processes"]]
    assert burner.outer.pid in listed and hanging not in listed
    assert hanging in [process["pid"] for process in listing["ignored"]]
    ignored = agent.find(kind="text", text="no command line has this")["ignored"]
    (left_out,) = [one for one in ignored if one["pid"] == hanging]
    assert left_out["doubtful"] and left_out["reason"] == f"{HANGS}: it may match"


def test_one_whose_user_the_agent_cannot_become_is_passed_over(new_agent, hanging):
    agent = new_agent(user=OTHER_USER)
    ignored = agent.find(kind="text", text="no command line has this")["ignored"]
    assert hanging not in [one["pid"] for one in ignored]
    agent.send("clean", dry=True)
    assert not [one for one in agent.expect("leftovers")["failed"] if str(hanging) in one["what"]]


def test_a_cleanup_reports_it(agent, hanging):
    agent.send("clean", dry=True)
    assert {"what": f"process {hanging}", "reason": HANGS} in agent.expect("leftovers")["failed"]
