"""A perf that waits long for processors which others have: to begin, and to end."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.burners.burner import Burner
from tests.contract.agent_driver import Agent
from tests.contract.conftest import Burn
from tests.contract.perf_engine import FRAME_POINTERS, Recorded, perf_at_work, prepare, processes
from tests.contract.test_agent_perf_refuses import program, with_another
from tests.lab import procs
from tests.needed import lacking

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: perf of other processes"),
]

LATE = 6.0
"""Seconds that perf is held."""
# Runs the perf beside it, and tells LATE seconds later that its events count.
LATE_PERF = f"""#!{sys.executable} -I
import os, signal, struct, subprocess, sys, time

perf = subprocess.Popen([{{perf!r}}, *sys.argv[1:]], stdout=subprocess.PIPE)
signal.signal(signal.SIGINT, lambda *_: perf.send_signal(signal.SIGINT))
output = sys.stdout.buffer
if "-p" in sys.argv:
    output.write(perf.stdout.read(16))
    while head := perf.stdout.read(8):
        kind, _, size = struct.unpack("=IHH", head)
        if kind == 82:
            output.flush()
            time.sleep({LATE})
        output.write(head + perf.stdout.read(size - 8))
        output.flush()
output.write(perf.stdout.read())
output.flush()
sys.exit(perf.wait())
"""


NO_PERF = """#!/bin/sh
case "$*" in *" -p "*) exec sleep 600;; *) exec {perf} "$@";; esac
"""

# What holds its output cannot be ended with its group, and ends by itself.
OPEN_STREAM = """#!/bin/sh
case "$*" in *" -p "*) setsid sleep 40 </dev/null 2>/dev/null & ;; esac
exec {perf} "$@"
"""


@pytest.fixture
def beside(private: Path, tmp_path: Path) -> Iterator[Callable[[str], Agent]]:
    """An agent on a host that has another perf: a script, which runs the real one."""
    real = shutil.copy(Path(shutil.which("perf") or lacking("perf")).resolve(), tmp_path / "real")
    with contextlib.ExitStack() as ended:

        def start(script: str) -> Agent:
            perf = program(tmp_path / "perf", script.format(perf=str(real)))
            agent = Agent([*map(str, with_another(perf)), str(private)])
            ended.callback(agent.end)
            agent.hello()
            return agent

        yield start


def test_who_begins_late_is_waited_for(beside: Callable[[str], Agent], burn: Burn) -> None:
    """What it has not begun to count would be missing from the time that is recorded."""
    agent, burner = beside(LATE_PERF), burn(options=[FRAME_POINTERS])
    ready, refused = prepare(agent, processes(agent, burner))
    assert ready, refused
    began = time.monotonic()
    agent.start()
    assert time.monotonic() - began > LATE
    done = Recorded(burner.outer.pid, agent.collect())
    assert done.share("Burner.") > 0.9


def test_who_does_not_begin_is_given_up_and_ended(beside: Callable[[str], Agent], burn: Burn) -> None:
    agent, burner = beside(NO_PERF), burn(options=[FRAME_POINTERS])
    ready, refused = prepare(agent, processes(agent, burner))
    assert ready, refused
    agent.send("start")
    outcome = agent.expect("outcome")
    assert "perf did not start within" in outcome["reason"] and "processors" in outcome["remedy"], outcome
    procs.wait_for("perf's end", lambda: not procs.children(agent.process.pid))
    assert agent.expect("recording")["processes"] == 0


def interrupted(agent: Agent, burner: Burner, seconds: float, held: float) -> Recorded:
    """A recording of so many seconds by a perf that stands still for a while once it is to end."""
    ready, refused = prepare(agent, processes(agent, burner), duration=60)
    assert ready, refused
    agent.start()
    time.sleep(seconds)  # recorded
    perf = perf_at_work(agent)
    perf.suspend()
    release = threading.Timer(held, perf.kill, (signal.SIGCONT,))
    release.start()
    try:
        agent.send("stop")
        return Recorded(burner.outer.pid, agent.collect())
    finally:
        release.cancel()


def test_who_ends_late_has_lost_nothing_and_tells_nothing_of_what_came_later(
    agent: Agent, burn: Burn
) -> None:
    done = interrupted(agent, burn(options=[FRAME_POINTERS]), 2, LATE)
    samples = done.head()["samples"]
    assert 0.8 * samples["expected"] < samples["taken"] < 1.2 * samples["expected"], samples
    assert done.outcome["status"] == "ok" and done.share("Burner.") > 0.9, done.outcome["reason"]


def test_of_one_that_does_not_end_there_is_what_it_has_written(agent: Agent, burn: Burn) -> None:
    """It writes once a buffer is half full: the last seconds may be in the kernel yet."""
    done = interrupted(agent, burn(options=[FRAME_POINTERS]), 8, 600)
    samples = done.head()["samples"]
    assert 0.2 * samples["expected"] < samples["taken"] < samples["expected"], samples
    assert "perf did not end and was killed" in done.outcome["reason"], done.outcome
    assert done.outcome["status"] == "degraded" and done.share("Burner.") > 0.9, done.outcome
    assert not procs.children(agent.process.pid)


def test_a_stream_that_somebody_keeps_open_is_not_waited_for(
    beside: Callable[[str], Agent], burn: Burn
) -> None:
    agent, burner = beside(OPEN_STREAM), burn(options=[FRAME_POINTERS])
    ready, refused = prepare(agent, processes(agent, burner), duration=2)
    assert ready, refused
    agent.start()
    done = Recorded(burner.outer.pid, agent.collect())
    samples = done.head()["samples"]
    assert samples["taken"] > 0.8 * samples["expected"], samples
    assert done.share("Burner.") > 0.9
