"""A library that is gone, or would be, while its profiler records: no second copy is loaded beside it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.burners.burner import Burner
from tests.contract.agent_driver import Agent
from tests.contract.cleaning import clean, listed, of_pid
from tests.contract.conftest import OTHER_USER, Burn, StartAgent, found, is_profiled

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: JVMs and files of other users"),
]


@pytest.fixture
def at_once(private: Path) -> Iterator[Agent]:
    """An agent that may leave nothing."""
    copy = private.with_name("once")
    shutil.copy(private, copy)
    agent = Agent([str(copy), "--once", str(copy)])
    agent.hello()
    yield agent
    agent.end()


def record(agent: Agent, library: str, burner: Burner) -> None:
    ready, refused = agent.prepare(library, found(agent, burner), duration=60)
    assert ready, refused
    agent.start()


def test_what_cannot_be_stopped_keeps_its_library(
    at_once: Agent, agent: Agent, library_file: Path, burn: Burn, tmp_path: Path
) -> None:
    """On musl, which finds no library again that is gone. All of musl here is a library of its name."""
    mapped = Path("/proc/self/maps").read_text().split()
    some = next(path for path in mapped if path.endswith(".so.6") and "/libm" in path)
    shutil.copy(some, tmp_path / "ld-musl-x86_64.so.1")
    burner = burn(env={"LD_PRELOAD": str(tmp_path / "ld-musl-x86_64.so.1")})
    library = at_once.put(library_file.read_bytes())
    staged = f"/tmp/.hprofiler-ap-{library[:16]}-{os.geteuid()}"
    record(at_once, library, burner)
    burner.outer.suspend()
    at_once.send("stop")
    left = at_once.collect().left
    assert left == [f"{staged}: the profiler could not be stopped"]
    assert at_once.bye() == 0
    burner.outer.kill(18)
    profiler = of_pid(listed(agent), burner.outer.pid)["profiler"]
    assert profiler["state"] == "left", profiler
    cleaned = clean(agent)
    assert burner.outer.pid in cleaned["stopped"] and staged in cleaned["removed"], cleaned


def test_no_other_copy_is_loaded_beside_one_that_records(
    start_agent: StartAgent, agent: Agent, library: str, library_file: Path, burn: Burn
) -> None:
    """From another folder, for its own is gone and is not to be had: to the JVM it is another library."""
    burner, killed = burn(user=OTHER_USER), start_agent()
    killed.hello()
    record(killed, killed.put(library_file.read_bytes()), burner)
    killed.process.kill()
    killed.wait()
    staged = Path(f"/tmp/.hprofiler-ap-{library[:16]}-{OTHER_USER}")
    shutil.rmtree(staged)
    staged.mkdir(mode=0o700)
    ready, refused = agent.prepare(library, found(agent, burner), duration=1)
    staged.rmdir()
    assert not ready and "another hprofiler session" in refused[burner.outer.pid]["reason"], refused
    assert is_profiled(burner.outer.pid)
    cleaner = start_agent()
    cleaner.hello()
    assert burner.outer.pid in clean(cleaner, kept=True)["stopped"]
