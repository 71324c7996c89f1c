"""What the perf engine's contract tests share: recordings by perf, and what came of them."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from hprofiler._flamegraph import Profile
from tests.burners.burner import Program
from tests.contract.agent_driver import FREQUENCY, Agent, Event, Result
from tests.lab import procs

ROOT = Path(__file__).resolve().parents[2]
FRAME_POINTERS = "-XX:+PreserveFramePointer"
Stacks = list[tuple[list[str], int]]


def perfmap() -> bytes:
    """The library that names compiled code, as the package has it for this machine."""
    shipped = ROOT / "hprofiler" / "_data" / "perfmap" / platform.machine() / "libhprofilerPerfmap.so"
    path = Path(os.environ.get("HPROFILER_PERFMAP") or shipped)
    if not path.is_file():
        pytest.fail(
            f"the library that names compiled code is missing (run make build): {path}", pytrace=False
        )
    return path.read_bytes()


@dataclass(frozen=True)
class Recorded:
    """What one recording told of one process."""

    pid: int
    result: Result

    @property
    def outcome(self) -> Event:
        return self.result.outcomes[self.pid]

    def head(self, event: str = "cpu") -> Event:
        return self.result.events[self.pid][event][0]

    def profile(self, event: str = "cpu") -> Profile:
        return Profile.from_bytes(self.result.events[self.pid][event][1])

    def stacks(self, event: str = "cpu", value: int = 0) -> Stacks:
        """Stacks, outermost frame first, and the sums of one of the event's values."""
        lines = self.profile(event).to_folded(value, True).decode().splitlines()
        pairs = (line.rpartition(" ") for line in lines)
        return [(stack.split(";"), int(count)) for stack, _, count in pairs]

    def share(self, frame: str, event: str = "cpu", among: Sequence[str] = ()) -> float:
        """The share of samples with a frame that holds `frame`, of those that hold any of `among`."""
        stacks = self.stacks(event)
        inside = [pair for pair in stacks if not among or any(_holds(pair[0], one) for one in among)]
        total = sum(count for _, count in inside)
        assert total, f"no samples of {among or 'anything'} in {self.outcome}: {stacks[:20]}"
        return sum(count for stack, count in inside if _holds(stack, frame)) / total


def burnt(done: Recorded) -> dict[str, float]:
    """The share of each of a burner's three works."""
    works = ("Burner.hot", "Burner.warm", "Burner.cool")
    return {work.partition(".")[2]: done.share(work, among=works) for work in works}


def _holds(stack: Sequence[str], part: str) -> bool:
    return any(part in frame for frame in stack)


def processes(agent: Agent, *programs: Program) -> list[Event]:
    """What the agent finds of these programs, JVMs or not."""
    pids = [program.outer.pid for program in programs]
    found = agent.find(native=True, kind="pids", pids=pids)["processes"]
    assert len(found) == len(pids), found
    return list(found)


def prepare(
    agent: Agent, found: Sequence[Event], events: Sequence[str] = ("cpu",), duration: float = 1, **more: Any
) -> tuple[list[int], dict[int, Event]]:
    """The pids that are ready for perf, and the outcomes of the others; `more` of the sampling."""
    intervals = dict.fromkeys(("alloc_interval", "lock_threshold", "wall_interval"))
    wanted = {"engine": "perf", "events": list(events), "frequency": FREQUENCY, "duration": duration}
    chosen = [{key: one[key] for key in ("pid", "start_time", "label", "labels")} for one in found]
    blobs = {"perfmap": agent.put(perfmap())}
    sampling = {**wanted, **intervals, "keep_raw": False, **more}
    agent.send("prepare", sampling=sampling, blobs=blobs, processes=chosen)
    outcomes: dict[int, Event] = {}
    while True:
        told, _ = agent.next()
        if told["type"] == "ready":
            return [one["pid"] for one in told["processes"]], outcomes
        assert told["type"] == "outcome", (told, agent.stderr())
        outcomes[told["pid"]] = told


def record(agent: Agent, program: Program, events: Sequence[str] = ("cpu",), **more: Any) -> Recorded:
    """Record one program by perf to the end."""
    ready, refused = prepare(agent, processes(agent, program), events, **more)
    assert ready == [program.outer.pid], refused
    agent.start()
    return Recorded(program.outer.pid, agent.collect())


def refused(agent: Agent, program: Program, events: Sequence[str], **more: Any) -> Event:
    """The outcome of a program that perf cannot be made ready for."""
    ready, outcomes = prepare(agent, processes(agent, program), events, **more)
    assert ready == [], ready
    agent.send("stop")
    agent.collect()
    return outcomes[program.outer.pid]


def perf_of(agent: Agent) -> procs.Identity | None:
    """The perf that an agent has running."""
    perfs = (pid for pid in procs.children(agent.process.pid) if procs.name(pid).startswith("perf"))
    return next(map(procs.Identity.of, perfs), None)


def perf_at_work(agent: Agent) -> procs.Identity:
    """The perf that records for an agent; the kernel may leave it out while another child ends."""
    return procs.wait_for("perf", lambda: perf_of(agent))
