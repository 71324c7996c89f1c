"""What it costs an agent to look for processes that appear, on a host with many others."""

from __future__ import annotations

import os
import platform
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager

from tests.bench.table import Row
from tests.contract.agent_driver import Agent
from tests.contract.conftest import built_agent
from tests.lab import procs

OTHERS = (500, 5000)
"""Processes of the host beside those that run anyway."""
SECONDS = 30.0
SETTLED = 8.0
"""Seconds after which the agent reads none of them any more."""


def rows() -> list[Row]:
    return [row for others in OTHERS for row in _with(others)]


def _with(others: int) -> Iterator[Row]:
    with _idle(others):
        agent = Agent([built_agent(platform.machine()), "--any-library"])
        agent.hello()
        before = procs.cpu_seconds(agent.process.pid)
        found = agent.find(kind="text", text="no process has this")
        find = procs.cpu_seconds(agent.process.pid) - before
        agent.prepare(engine="auto", duration=600, blobs={})
        agent.follow("no process has this")
        agent.start()
        time.sleep(SETTLED)
        before = procs.cpu_seconds(agent.process.pid)
        time.sleep(SECONDS)
        share = 100 * (procs.cpu_seconds(agent.process.pid) - before) / SECONDS
        agent.bye()
        agent.end()
    what = f"a host with {found['searched']} processes"
    yield Row(
        f"CPU time to look again and again, on {what}", f"{share:.1f} % of one core", "under 5 %", share < 5
    )
    yield Row(f"CPU time of one `find`, on {what}", f"{1000 * find:.0f} ms", "", None)


@contextmanager
def _idle(count: int) -> Iterator[None]:
    """So many processes that do nothing."""
    pids = []
    try:
        for _ in range(count):
            pid = os.fork()
            if not pid:
                signal.pause()
                os._exit(0)
            pids.append(pid)
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        for pid in pids:
            os.waitpid(pid, 0)
