"""What a recording of hours costs: the gaps between its parts, and what is sent in an hour."""

from __future__ import annotations

import itertools
import platform
import statistics
import time
from collections.abc import Iterator

from hprofiler import Profile
from tests.bench.table import Row
from tests.burners.burner import Burner
from tests.contract.agent_driver import Agent
from tests.contract.conftest import built_agent
from tests.lab import procs

SECONDS = 120.0
PART = 10.0
FREQUENCY = 99
LOAD = 0.5
HOUR = 3600.0


def rows() -> Iterator[Row]:
    burner = Burner(role="alloc", load=LOAD)
    agent = Agent([built_agent(platform.machine()), "--any-library"])
    try:
        agent.hello()
        members = {"engine": "async-profiler", "frequency": FREQUENCY, "metrics": True}
        agent.begin(burner, duration=2 * SECONDS, part=PART, **members)
        received, cpu = agent.received, procs.cpu_seconds(agent.process.pid)
        time.sleep(SECONDS)
        cpu = procs.cpu_seconds(agent.process.pid) - cpu
        result = agent.stop()
        agent.bye()
    finally:
        agent.end()
        burner.kill()
    pieces = [Profile.from_bytes(payload).times for _, payload in result.parts[burner.outer.pid]]
    times = [one for one in pieces if one and one.samples]
    gaps = [max(0.0, (after.start - before.end) / 1e3) for before, after in itertools.pairwise(times)]
    usual, most = statistics.median(gaps), max(gaps)
    what = f"between the parts of a JVM with {LOAD:.0%} of a core at {FREQUENCY} Hz"
    yield Row(
        f"time without a sample {what}", f"{usual:.0f} ms, at most {most:.0f} ms", "under 1 s", most < 1000
    )
    size = (agent.received - received) / SECONDS * HOUR / 1e6
    yield Row("sent in an hour, with pauses and metrics", f"{size:.1f} MB", "under 20 MB", size < 20)
    share = 100 * cpu / SECONDS
    yield Row("CPU time of the agent", f"{share:.1f} % of one core", "", None)
