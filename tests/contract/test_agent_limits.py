"""What the agent takes of a host, and that the job goes first."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from collections.abc import Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from tests.burners.counting import Truth
from tests.contract.agent_driver import Agent, Event, good
from tests.contract.asking import audited, chosen, sampling
from tests.contract.conftest import as_burnt, found
from tests.contract.kept import own_folders
from tests.contract.perf_engine import FRAME_POINTERS, perfmap
from tests.lab import procs
from tests.lab.procs import wait_for

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: control groups, namespaces"),
]

MIB = 1 << 20
LEASE = 300
"""Seconds: these sessions send no pings."""
IDLE = "idle"
EVERY_ALLOCATION = {"events": ["alloc"], "alloc_interval": 4096}
HELD = 0.5
"""Seconds after which a JVM that does not answer is not waited for by the next."""


@pytest.fixture
def agent(start_agent):
    started = start_agent()
    started.send("hello", protocol=2, lease_seconds=LEASE, exclude=None, audit=True)
    started.greeting = started.expect("hello")
    return started


def prepare(
    agent: Agent, library: str, processes: Sequence[Event], wanted: dict[str, Any], **limits: Any
) -> None:
    """Get all of them ready."""
    blobs = {"async-profiler": library, "perfmap": agent.put(perfmap())}
    agent.send("prepare", sampling=wanted, blobs=blobs, processes=chosen(processes), **limits)
    event, _ = agent.next()
    assert event["type"] == "ready" and len(event["processes"]) == len(processes), (event, agent.stderr())


def disk_class(pid: int) -> str:
    said = subprocess.run(["ionice", "-p", str(pid)], capture_output=True, text=True, check=True)
    return said.stdout.strip()


def memory_score(pid: int) -> int:
    return int(Path(f"/proc/{pid}/oom_score_adj").read_text())


def limit(pid: int, name: str) -> str:
    """A soft limit of a process, as the kernel tells it."""
    told = re.search(rf"^{name} +(\S+)", Path(f"/proc/{pid}/limits").read_text(), re.MULTILINE)
    assert told
    return told[1]


@pytest.mark.parametrize("engine", ["async-profiler", "perf"])
def test_the_job_goes_first(agent, library, burn, engine):
    burner = burn(options=[FRAME_POINTERS], load=0.2)
    jvm, own = burner.outer.pid, agent.process.pid
    prepare(agent, library, found(agent, burner), sampling(engine=engine, duration=60))
    agent.start()
    programs = procs.family(own)[1:]
    assert bool(programs) == (engine == "perf")
    for pid in (own, *programs):
        assert disk_class(pid) == IDLE
        assert memory_score(pid) == 1000
    assert disk_class(jvm) != IDLE and memory_score(jvm) == memory_score(os.getpid())
    assert limit(own, "Max data size").isdecimal()
    assert {limit(pid, "Max data size") for pid in (jvm, *programs)} == {limit(os.getpid(), "Max data size")}
    agent.send("stop")
    assert good(agent.collect().outcomes[jvm])


def recordings(pid: int) -> set[str]:
    """The recordings that a process has open."""
    links = set()
    for link in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):
            links.add(os.readlink(link))
    return {link for link in links if link.endswith(".jfr")}


def test_what_waits_to_be_folded_outlives_its_jvm_and_the_files_of_that(agent, library, burn):
    """The agent rests before it folds, for what it was asked while it recorded."""
    burners = [burn(), burn()]
    pids, own = [burner.outer.pid for burner in burners], agent.process.pid
    wanted = sampling(engine="async-profiler", duration=300)
    prepare(agent, library, found(agent, *burners), wanted, agent_cpu=0.1)
    agent.start()
    before = procs.cpu_seconds(own)
    while procs.cpu_seconds(own) - before < 1:
        agent.send("list")
        agent.expect("processes")
    agent.send("stop")
    # It folds one at a time.
    wait_for("both are held", lambda: not any(map(recordings, pids)) and len(recordings(own)) == 2)
    for burner in burners:
        burner.kill()
    for folder in own_folders(agent):
        shutil.rmtree(folder)
    result = agent.collect()
    assert all(good(result.outcomes[pid]) and as_burnt(result.profiles[pid]) for pid in pids)


@contextmanager
def deep():
    """A JVM of which there is much to fold."""
    jvm = Truth("deep", heap="64m")
    try:
        yield jvm
    finally:
        jvm.kill()


def record_much(agent: Agent, *jvms: Truth, rounds: int = 25_000) -> None:
    """From `start` to `stop`, when each of them has had so many stacks no two of which are alike."""
    agent.start()
    before = [jvm.counters()["deep.1.rounds"] for jvm in jvms]

    def grown() -> list[int]:
        return [jvm.counters()["deep.1.rounds"] - first for jvm, first in zip(jvms, before, strict=False)]

    wait_for("many stacks", lambda: min(grown()) > rounds)
    agent.send("stop")


def test_a_part_of_a_processor_is_not_exceeded(agent, library):
    """Before it begins with the second process the agent rests for what it did of the first."""
    cores, at_once, slack = 0.1, 0.2, 0.5
    wanted = sampling(engine="async-profiler", duration=120, **EVERY_ALLOCATION)
    with deep() as one, deep() as other:
        prepare(agent, library, found(agent, one, other), wanted, agent_cpu=cores)
        record_much(agent, one, other)
        before, begin = procs.cpu_seconds(agent.process.pid), time.monotonic()
        outcomes: dict[int, Event] = {}
        times = [begin]
        used = 0.0
        while len(outcomes) < 2:
            event, _ = agent.next(120)
            if event["type"] == "outcome":
                times.append(time.monotonic())
                used = used or procs.cpu_seconds(agent.process.pid) - before
                outcomes[event["pid"]] = event
    assert all(map(good, outcomes.values()))
    rest = (used - at_once) / cores - (times[1] - begin) - slack
    assert times[2] - times[1] >= rest, f"{used:.2f} s of a processor, ended at {times}"


def test_what_takes_too_much_memory_is_given_up_alone(agent, library, burn):
    wanted = sampling(engine="async-profiler", duration=120, **EVERY_ALLOCATION)
    with deep() as large:
        small = burn(load=0.1)
        prepare(agent, library, found(agent, large, small), wanted, agent_memory=16 * MIB)
        record_much(agent, large)
        result = agent.collect(120)
        failed, fine = result.outcomes[large.outer.pid], result.outcomes[small.outer.pid]
        assert (failed["status"], failed["stage"]) == ("failed", "fetch")
        assert "memory" in failed["reason"] and "16 MiB" in failed["reason"] and failed["remedy"]
        assert good(fine)
        assert result.left == [] and not own_folders(agent)
        rounds = large.counters()["deep.1.rounds"]
        wait_for("it goes on", lambda: large.counters()["deep.1.rounds"] > rounds)


@contextmanager
def memory_group(most: int):
    """A control group with so much memory."""
    for mount, file in (("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")):
        group = Path(mount) / f"hprofiler-limits-{os.getpid()}"
        try:
            group.mkdir()
        except OSError:
            continue
        try:
            if (group / file).exists():
                (group / file).write_text(str(most))
                yield group
                return
        finally:
            group.rmdir()
    pytest.skip("no control group can be made that limits memory")


def limits_told(agent: Agent, **limits: Any) -> str:
    agent.send("check", sampling=sampling(), processes=[], **limits)
    findings = agent.expect("checked")["findings"]
    return next(one["text"] for one in findings if one["about"] == "agent")


@contextmanager
def inside(group: Path, private: Path):
    """A greeted agent in a control group."""
    enter = f'echo $$ > {group}/cgroup.procs && exec "$0" --any-library'
    agent = Agent(["/bin/sh", "-c", enter, str(private)])
    try:
        agent.hello(lease=LEASE)
        yield agent
    finally:
        agent.end()


def test_a_small_control_group_leaves_little(private):
    with memory_group(512 * MIB) as group, inside(group, private) as agent:
        told = re.search(r"(\d+) MiB of memory", limits_told(agent))
        assert told and 64 <= int(told[1]) <= 128


def test_a_control_group_is_not_outgrown(private, library_file):
    """The kernel would end the agent there, and nobody would clean."""
    wanted = sampling(engine="async-profiler", duration=120, **EVERY_ALLOCATION)
    with memory_group(160 * MIB) as group, inside(group, private) as agent, deep() as jvm:
        prepare(agent, agent.put(library_file.read_bytes()), found(agent, jvm), wanted)
        record_much(agent, jvm, rounds=80_000)
        result = agent.collect(120)
        outcome = result.outcomes[jvm.outer.pid]
        assert outcome["status"] == "failed" and "64 MiB" in outcome["reason"], outcome
        assert result.left == [] and agent.bye() == 0


def test_the_limits_are_told(agent):
    told = "the agent takes 0.5 processors on average and 32 MiB of memory at most"
    assert limits_told(agent, agent_cpu=0.5, agent_memory=32 * MIB) == told
    assert "takes 1 processor on average" in limits_told(agent)


@pytest.mark.parametrize("limits", [{"agent_cpu": 0}, {"agent_cpu": 1e9}, {"agent_memory": 1}])
def test_what_would_be_no_limit_is_refused(agent, limits):
    agent.send("prepare", sampling=sampling(), blobs={}, processes=[], **limits)
    assert "are not between" in agent.expect("error")["reason"]


def attached(entries: Sequence[Event], kinds: tuple[str, ...]) -> dict[int, tuple[float, float]]:
    """When each process was first and last attached to."""
    spans: dict[int, tuple[float, float]] = {}
    for entry in entries:
        if entry["what"] in kinds and entry["pid"] is not None:
            first, _ = spans.get(entry["pid"], (entry["time"], 0.0))
            spans[entry["pid"]] = first, min(entry["time"], first + 0.9 * HELD)
    return spans


def most_at_once(spans: Sequence[tuple[float, float]]) -> int:
    return max(sum(begin <= moment <= end for begin, end in spans) for moment, _ in spans)


def test_not_all_jvms_are_attached_to_at_once(agent, library, burn):
    most = max(2, min(8, agent.greeting["host"]["cpus"] // 4))
    burners = [burn(load=0.05) for _ in range(most + 2)]
    prepare(agent, library, found(agent, *burners), sampling(engine="async-profiler", duration=0.5))
    spans = attached(audited(agent), ("folder", "attach", "signal"))  # a turn begins with the folder
    assert spans.keys() == {burner.outer.pid for burner in burners}
    assert most_at_once(list(spans.values())) <= most
    agent.start()
    assert all(map(good, agent.collect().outcomes.values()))


def test_clocks_of_another_time_namespace(private, library_file, burn):
    """Times since the boot are others there than the JVM's own."""
    burner = burn()
    enter = ["unshare", "--time", "--fork", "--boottime", "86400", "--monotonic", "86400"]
    if subprocess.run([*enter, "true"], check=False, capture_output=True).returncode:
        pytest.skip("time namespaces cannot be made here")
    agent = Agent([*enter, str(private), "--any-library"])
    try:
        agent.hello(lease=LEASE)
        library = agent.put(library_file.read_bytes())
        ready, refused = agent.prepare(library, found(agent, burner), duration=2)
        assert ready, refused
        agent.start()
        head = agent.collect().heads[burner.outer.pid]
        assert 1.9 <= head["seconds"] < 30 and len(head["timeline"]) <= head["seconds"] + 1
    finally:
        agent.end()
