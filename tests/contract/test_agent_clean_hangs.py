"""An agent that is killed while the JVM has not yet answered the command that starts the profiler."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from tests.burners.burner import Burner
from tests.contract.agent_driver import Agent
from tests.contract.cleaning import clean, listed, of_pid
from tests.contract.conftest import Burn, StartAgent, found, is_profiled
from tests.contract.held import still
from tests.lab.procs import wait_for

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: threads of other processes"),
]

READ = ("0", "63")  # the number of read(2) on x86-64, and on arm64


def start_and_kill(killed: Agent) -> None:
    """The command waits in the JVM, which stands still; nobody waits for its answer any more."""
    killed.send("start")
    wait_for("the start to be sent", lambda: awaits_an_answer(killed))
    killed.process.kill()
    killed.wait()


def ready(agent: Agent, library: bytes, burner: Burner, duration: float = 60) -> Agent:
    agent.hello()
    got, refused = agent.prepare(agent.put(library), found(agent, burner), duration=duration)
    assert got, refused
    return agent


def test_a_profiler_that_starts_only_when_its_agent_is_gone(
    start_agent: StartAgent, agent: Agent, library_file: Path, burn: Burn
) -> None:
    burner = burn()
    killed = ready(start_agent(), library_file.read_bytes(), burner)
    with still(burner.outer.pid, "Attach Listener"):
        start_and_kill(killed)
    wait_for("it to start", lambda: is_profiled(burner.outer.pid))
    profiler = of_pid(listed(agent), burner.outer.pid)["profiler"]
    assert profiler["state"] == "left", profiler
    assert clean(agent)["stopped"] == [burner.outer.pid]
    assert not is_profiled(burner.outer.pid)
    assert not clean(agent)["failed"]


def test_one_that_nobody_cleans_up_ends_by_its_own_limit(
    start_agent: StartAgent, library_file: Path, burn: Burn
) -> None:
    burner = burn()
    killed = ready(start_agent(), library_file.read_bytes(), burner, duration=1)
    with still(burner.outer.pid, "Attach Listener"):
        start_and_kill(killed)
    wait_for("it to start", lambda: is_profiled(burner.outer.pid))
    wait_for("it to end", lambda: not is_profiled(burner.outer.pid))
    cleaner = start_agent()
    cleaner.hello()
    assert not clean(cleaner)["failed"]


def test_the_library_of_one_that_cannot_be_asked_stays(
    start_agent: StartAgent, agent: Agent, library_file: Path, burn: Burn
) -> None:
    """Without its file a profiler on musl could not be told to stop any more."""
    burner = burn()
    killed = ready(start_agent(), library_file.read_bytes(), burner)
    killed.send("start")
    wait_for("it to start", lambda: is_profiled(burner.outer.pid))
    killed.process.kill()
    killed.wait()
    with still(burner.outer.pid, "Attach Listener"):
        entries = listed(agent)
        library = of_library(entries)
        assert library["state"] == "used", library
        assert "a JVM has its library" in library["reason"]
        cleaned = clean(agent)
        assert Path(library["path"]).is_dir(), cleaned
    entries = listed(agent)
    profiler, library = of_pid(entries, burner.outer.pid)["profiler"], of_library(entries)
    assert (profiler["state"], library["state"]) == ("left", "left"), (profiler, library)
    assert not clean(agent)["failed"]
    assert not is_profiled(burner.outer.pid)
    assert not Path(library["path"]).exists()


def of_library(entries: list[dict[str, Any]]) -> dict[str, Any]:
    folders = [entry for entry in entries if entry["kind"] == "folder"]
    (library,) = [entry for entry in folders if "/.hprofiler-ap-" in entry["path"]]
    return library


def test_one_whose_folder_was_removed_meanwhile_does_not_start(
    start_agent: StartAgent, agent: Agent, library_file: Path, burn: Burn
) -> None:
    burner = burn()
    killed = ready(start_agent(), library_file.read_bytes(), burner)
    with still(burner.outer.pid, "Attach Listener"):
        start_and_kill(killed)
        entries = listed(agent)
        hangs = of_pid(entries, burner.outer.pid)["profiler"]
        assert hangs["state"] == "unknown" and "did not answer" in hangs["reason"], hangs
        clean(agent)
    # Asked after the start, and so answered after it.
    assert not is_profiled(burner.outer.pid)
    assert not clean(agent)["failed"]


def awaits_an_answer(agent: Agent) -> bool:
    """Whether a thread of the agent reads from a socket: that of the JVM, for it has no other."""
    process = Path(f"/proc/{agent.process.pid}")
    return any(reads_a_socket(process, task) for task in (process / "task").iterdir())


def reads_a_socket(process: Path, task: Path) -> bool:
    try:
        number, fd, *_ = [*(task / "syscall").read_text().split(), ""]
        return number in READ and os.readlink(process / "fd" / str(int(fd, 16))).startswith("socket:")
    except OSError:  # it has ended, or closed that, by now
        return False
