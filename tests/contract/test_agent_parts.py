"""Long recordings are sent in parts, while the profiler goes on."""

from __future__ import annotations

import itertools
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from hprofiler import Profile
from tests.burners.burner import Program
from tests.burners.counting import FORKING, Counting
from tests.contract.agent_driver import Agent, Recorded, good
from tests.lab import jdks
from tests.lab.procs import cpu_seconds
from tests.timed_profile import BUCKET

PART = 5.0
"""Seconds, the shortest: async-profiler finishes a chunk every five seconds."""
LONG = 600


def begin_in_parts(agent: Agent, program: Program, parts: int, **members: object) -> Recorded:
    """Record until so many parts have come; what came so far."""
    agent.begin(program, duration=LONG, part=PART, **members)
    pid = program.outer.pid
    so_far = agent.collect(until=["profile"])
    while len([head for head, _ in so_far.parts[pid] if head["event"] == "cpu"]) < parts:
        so_far = agent.collect(until=["profile"])
    return so_far.of(pid)


def recording_of(pid: int) -> Path:
    (file,) = Path(f"/proc/{pid}/root/tmp").glob(f".hprofiler-run-*/*-{pid}-*.jfr")
    return file


def whole(done: Recorded) -> Profile:
    return Profile.of_parts([profile for _, profile in done.pieces()], rows=1 << 20)


def test_parts_add_up_to_the_recording(agent: Agent, burn) -> None:
    burner = burn()
    before = cpu_seconds(burner.outer.pid)
    begin_in_parts(agent, burner, 2, events=["cpu", "alloc"])
    file = recording_of(burner.outer.pid).stat()
    assert file.st_blocks * 512 < file.st_size, "what was sent takes no room on the disk"
    burner.burn(1e9)
    done = agent.stop().of(burner)
    assert_they_add_up(done, cpu_seconds(burner.outer.pid) - before)
    # One begins where the one before ended, so that nothing is missing and nothing counts twice.
    times = [(one.times.start, one.times.end) for _, one in done.pieces() if one.times and one.times.samples]
    for (_, end), (start, _) in itertools.pairwise(times):
        assert -2 * BUCKET <= start - end < 1_000_000
    assert sum(head["seconds"] for head, _ in done.pieces()) == pytest.approx(
        (times[-1][1] - times[0][0]) / 1e6, abs=1.0
    )
    assert done.is_good() and {head["event"] for head, _ in done.result.parts[done.pid]} == {"cpu", "alloc"}


def test_parts_of_python_add_up_with_what_it_forks(agent: Agent, keep_program) -> None:
    forking = keep_program(Counting([sys.executable, str(FORKING)]))
    begin_in_parts(agent, forking, 1, engine="pyspy", frequency=99)
    forking.ask("forked")
    used = forking.counters()["hot"] / 1e9
    agent.collect(until=["profile"])
    done = agent.stop().of(forking)
    assert good(done.outcome)
    assert_they_add_up(done, used)
    (times,) = (one.times for _, one in done.pieces() if one.times and one.times.samples)
    assert (times.end - times.start) / 1e6 < 2 * PART, "times are those of their part"


def assert_they_add_up(done: Recorded, used: float) -> None:
    """To so many CPU seconds."""
    pieces = done.pieces()
    assert len(pieces) >= 3 and [head["more"] for head, _ in pieces] == [True] * (len(pieces) - 1) + [False]
    sampled = sum(head["cpu_seconds"] for head, _ in pieces)
    assert sampled == pytest.approx(used, rel=0.1)
    profile = whole(done)
    assert profile.total("cpu") / 1e9 == pytest.approx(sampled, rel=0.01)
    assert profile.total("samples") == sum(head["samples"]["taken"] for head, _ in pieces)


def test_pauses_and_metrics_come_meanwhile(agent: Agent, burn) -> None:
    """Pauses since the last part; metrics since theirs, and at the end all of them."""
    burner = burn(role="alloc")
    agent.begin(burner, duration=LONG, part=PART, metrics=True)
    agent.collect(until=["metrics"])
    result = agent.stop()
    whole, (part,) = result.metrics, result.metrics_so_far
    assert part["time"] == whole["time"][: len(part["time"])] and len(part["time"]) > 20
    pauses = [*result.pauses_so_far[burner.outer.pid], result.pauses[burner.outer.pid]]
    ends = [end for one in pauses for end in one["end"]]
    assert len(pauses) > 3 and ends == sorted(ends)
    collectors = [
        [*itertools.accumulate(series["values"])]
        for series in whole["series"]
        if series["of"] == "jvm" and re.fullmatch(r"gc_.*_us", series["name"])
    ]
    collections = sum(read[-1] - read[0] for read in collectors)
    assert sum(sum(one["duration"]) for one in pauses) == pytest.approx(collections, rel=0.1)


def test_a_jvm_that_is_killed_loses_its_last_chunk_at_most(agent: Agent, burn) -> None:
    burner = burn()
    begin_in_parts(agent, burner, 2)
    os.kill(burner.outer.pid, signal.SIGKILL)
    done = agent.collect().of(burner)
    outcome = done.outcome
    assert (outcome["status"], outcome["code"], outcome["ended"]) == ("degraded", "cut-short", "process")
    times = whole(done).times
    assert times is not None
    covered = (times.end - times.start) / 1e6
    assert outcome["seconds"] - covered < 7, "a chunk is five seconds long"


def test_a_profiler_that_somebody_stopped_is_not_complete(agent: Agent, burn) -> None:
    """Though the parts have all that was recorded, and nothing is left at the end."""
    burner = burn(jdk=17)
    begin_in_parts(agent, burner, 1)
    pid = burner.outer.pid
    maps = Path(f"/proc/{pid}/maps").read_text()
    (library,) = set(re.findall(r"\S+/libasyncProfiler\.so$", maps, re.MULTILINE))
    jcmd = jdks.home(17) / "bin" / "jcmd"
    subprocess.run([jcmd, str(pid), "JVMTI.agent_load", library, "stop"], check=True, capture_output=True)
    agent.collect(until=["profile"])
    outcome = agent.stop().of(burner).outcome
    assert outcome["status"] == "degraded", outcome
    (note,) = (note for note in outcome["notes"] if note["code"] == "profiler-ended")
    assert re.search(r"in second (\d+)", note["reason"])[1] != "0", note
