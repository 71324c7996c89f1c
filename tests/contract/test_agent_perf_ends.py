"""A perf that has capabilities of its own, which the kernel does not end with the agent that ran it."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contract.agent_driver import Agent
from tests.contract.conftest import OTHER_USER, as_user, waits_until_gone
from tests.contract.perf_engine import perf_at_work, prepare
from tests.contract.test_agent_perf_refuses import with_another
from tests.lab import procs
from tests.lab.procs import wait_for
from tests.needed import lacking

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: capabilities of programs"),
]


@pytest.fixture
def capable(private: Path, tmp_path: Path) -> Iterator[Agent]:
    """An agent of an ordinary user, on a host whose perf may do more than that user."""
    perf, setcap = shutil.which("perf"), shutil.which("setcap")
    if not perf or not setcap:
        lacking("perf and setcap (libcap2-bin)")
    copy = shutil.copy(Path(perf).resolve(), tmp_path / "perf")
    subprocess.run([setcap, "cap_perfmon,cap_sys_ptrace+ep", str(copy)], check=True)
    for path in (private.parent, private):
        os.chown(path, OTHER_USER, OTHER_USER)
    agent = Agent([*map(str, with_another(copy)), *as_user(OTHER_USER), str(private), "--any-library"])
    agent.hello()
    yield agent
    agent.end()


def test_it_ends_with_its_agent(capable: Agent) -> None:
    """Of a process that does nothing, so that it has nothing to write and sees no end of its output."""
    idle = subprocess.Popen([*as_user(OTHER_USER), "sleep", "600"])
    try:
        wait_for("the program", lambda: procs.name(idle.pid) == "sleep")
        (process,) = capable.find(native=True, kind="pids", pids=[idle.pid])["processes"]
        ready, refused = prepare(capable, [process], duration=60)
        assert ready, refused
        capable.start()
        perf = perf_at_work(capable)
        family = [one for pid in procs.family(perf.pid) if (one := procs.Identity.of(pid))]
        capable.process.kill()
        capable.wait()
        for one in (perf, *family):
            waits_until_gone(one)
    finally:
        idle.kill()
        idle.wait()
