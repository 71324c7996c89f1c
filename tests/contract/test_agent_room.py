"""What a recording may take of a host: disk, memory, the kernel's memory for perf; and what a kill leaves."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.burners.burner import Burner
from tests.contract.agent_driver import FREQUENCY, Agent, good
from tests.contract.asking import chosen, sampling
from tests.contract.conftest import found, namespace_tmp
from tests.contract.perf_engine import prepare as prepare_perf
from tests.contract.test_agent_namespaces import contained
from tests.lab import procs

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: namespaces, control groups"),
]

MIB = 1 << 20
LEASE = 200
"""Seconds: these sessions send no pings."""
PLACES = ("/tmp", "/var/tmp", "/dev/shm")
EVERY_ALLOCATION = {"events": ["alloc"], "alloc_interval": 4096, "duration": 120}


@pytest.fixture
def agent(start_agent):
    started = start_agent()
    started.hello(lease=LEASE)
    return started


@contextmanager
def in_tmpfs(size, **more):
    """A JVM that has no other folders to write to than memory, `size` of it in each."""
    mounts = [f"mount -t tmpfs -o mode=1777,size={size} tmpfs {place}" for place in PLACES]
    burner = Burner(wrap=contained(" && ".join([*mounts, "cd /proc"])), role="alloc", **more)
    try:
        yield burner
    finally:
        burner.kill()


def test_the_folder_with_room_is_taken(agent, library):
    """A small /tmp before a large /var/tmp."""
    sizes = {"/tmp": "48m", "/var/tmp": "2g"}
    mounts = [f"mount -t tmpfs -o mode=1777,size={size} tmpfs {place}" for place, size in sizes.items()]
    burner = Burner(wrap=contained(" && ".join(mounts)))
    try:
        ready, refused = agent.prepare(library, found(agent, burner), duration=1)
        assert ready == [burner.outer.pid], refused
        seen = Path(f"/proc/{burner.outer.pid}/root/var/tmp")
        assert [path for path in seen.iterdir() if path.name.startswith(".hprofiler-run-")]
        assert not [name for name in namespace_tmp(burner) if "-run-" in name]
        agent.start()
        result = agent.collect()
        assert good(result.outcomes[burner.outer.pid]) and result.left == []
    finally:
        burner.kill()


def test_a_recording_leaves_most_of_a_small_folder_free(agent, library):
    with in_tmpfs("48m") as burner:
        outcome, head = cut_short(agent, library, burner)
        assert "its part of the memory" in outcome["reason"], outcome
        assert namespace_tmp(burner) == []
        assert head["samples"]["taken"] > 10_000


def test_a_folder_without_room_is_refused(agent, library):
    with in_tmpfs("24m") as burner:
        ready, refused = agent.prepare(library, found(agent, burner), **EVERY_ALLOCATION)
        outcome = refused[burner.outer.pid]
        assert ready == [] and "MiB left" in outcome["reason"] and "room" in outcome["remedy"], outcome


def test_a_recording_in_memory_is_bounded_by_the_containers_memory(agent, library):
    """The file system would hold 4 GiB; the container may have 96 MiB of memory, and would be killed."""
    with in_tmpfs("4g", options=["-Xmx64m", "-XX:+AlwaysPreTouch"]) as burner, memory_group(96 * MIB, burner):
        outcome, _ = cut_short(agent, library, burner)
        assert "its part of the memory" in outcome["reason"], outcome
        assert burner.outer.alive()


def test_recordings_keep_to_one_part_of_the_room_together(agent, library):
    """Two JVMs of one container: the kernel would kill one where each took its part."""
    small = {"options": ["-Xmx64m", "-XX:+AlwaysPreTouch"]}
    one_of_two, limit = in_tmpfs("4g", **small), 96 * MIB
    with one_of_two as one, in_tmpfs("4g", **small) as other, memory_group(limit, one, other):
        ready, refused = agent.prepare(library, found(agent, one, other), **EVERY_ALLOCATION)
        assert len(ready) == 2, refused
        agent.start()
        outcomes = agent.collect(240).outcomes
        assert one.outer.alive() and other.outer.alive()
    told = [outcomes[burner.outer.pid]["reason"] for burner in (one, other)]
    assert any("its part of the memory" in reason for reason in told), told


def test_a_folder_that_fills_up_meanwhile_is_left_alone(agent, library):
    with in_tmpfs("200m") as burner:
        pid = burner.outer.pid
        ready, refused = agent.prepare(library, found(agent, burner), duration=120)
        assert ready == [pid], refused
        agent.start()
        root = Path(f"/proc/{pid}/root")
        (run,) = (run for place in PLACES for run in (root / place[1:]).glob(".hprofiler-run-*"))
        with (run.parent / "others").open("wb") as others:
            for _ in range(176):
                others.write(bytes(MIB))
        result = agent.collect()
        outcome = result.outcomes[pid]
        assert outcome["status"] == "degraded" and result.heads[pid]["seconds"] < 110, outcome
        assert f"the memory of /{run.relative_to(root)} is nearly full" in outcome["reason"], outcome
        assert "more room" in outcome["remedy"], outcome


def cut_short(agent, library, burner):
    """The outcome of a JVM whose every allocation is recorded, and the profile's head."""
    pid = burner.outer.pid
    ready, refused = agent.prepare(library, found(agent, burner), **EVERY_ALLOCATION)
    assert ready == [pid], refused
    agent.start()
    result = agent.collect(180)
    outcome, head = result.outcomes[pid], result.heads[pid]
    assert (outcome["status"], result.left) == ("degraded", []) and outcome["remedy"], outcome
    assert head["seconds"] < 110
    return outcome, head


@contextmanager
def memory_group(limit, *burners):
    """Put JVMs into a control group with so many bytes of memory."""
    group, file = new_group()
    try:
        (group / file).write_text(str(limit))
        for burner in burners:
            (group / "cgroup.procs").write_text(str(burner.outer.pid))
        yield
    finally:
        for burner in burners:
            burner.kill()
        procs.wait_for("the end of its processes", lambda: not (group / "cgroup.procs").read_text(), 30)
        group.rmdir()


def new_group():
    """A control group, and the file with its memory's limit."""
    root = Path("/sys/fs/cgroup")
    if "memory" in text_of(root / "cgroup.subtree_control").split():
        group, file = root / "hprofiler-contract-room", "memory.max"
    elif (root / "memory" / "memory.limit_in_bytes").exists():
        group, file = root / "memory" / "hprofiler-contract-room", "memory.limit_in_bytes"
    else:
        pytest.skip("no control groups that limit memory are mounted")
    group.mkdir()
    return group, file


def text_of(path):
    return path.read_text() if path.exists() else ""


def test_of_a_killed_jvm_no_more_than_the_last_seconds_are_lost(agent, library, burn):
    """Its recording is far smaller than a part of 8 MiB."""
    burner = burn()
    ready, refused = agent.prepare(library, found(agent, burner), duration=120)
    assert ready == [burner.outer.pid], refused
    agent.start()
    before = burner.counters()
    time.sleep(14)  # what is tested is that time is recorded
    nanos = (burner.counters() - before).nanos
    burner.outer.kill(signal.SIGKILL)
    result = agent.collect()
    outcome, head = result.outcomes[burner.outer.pid], result.heads[burner.outer.pid]
    assert outcome["status"] == "degraded" and "ended after" in outcome["reason"]
    # Parts of 5 s, begun and ended within a second: of 14 s at most 7 are lost.
    assert head["samples"]["taken"] > 0.4 * nanos / 1e9 * FREQUENCY, (head, nanos)
    assert result.left == []


def test_the_kernel_keeps_no_more_memory_for_perf_than_a_host_can_spare(private, tmp_path):
    """A host of 1 GiB by its own word, at many samples a second: not all have room, and they are told so."""
    (tmp_path / "meminfo").write_text("MemTotal: 1048576 kB\n")
    frequency = min(10_000, highest_rate() // 2)
    most = most_at_once(frequency)
    pretend = ["unshare", "-m", "sh", "-c", 'mount --bind "$1" /proc/meminfo && exec "$2"', "sh"]
    agent = Agent([*pretend, str(tmp_path / "meminfo"), str(private)])
    sleepers = [subprocess.Popen(["sleep", "600"]) for _ in range(most + 2)]
    try:
        agent.hello(lease=LEASE)
        answer = agent.find(native=True, kind="pids", pids=[sleeper.pid for sleeper in sleepers])
        wanted = sampling(engine="perf", frequency=frequency, duration=0.5)
        agent.send("check", sampling=wanted, blobs={}, processes=chosen(answer["processes"]))
        foreseen = [one["status"] for one in agent.expect("checked")["processes"]]
        ready, refused = prepare_perf(agent, answer["processes"], frequency=frequency, duration=0.5)
        if highest_rate() < frequency:
            pytest.skip("meanwhile the kernel has more than halved its highest rate")
        assert (len(ready), len(refused)) == (most, 2), refused
        assert foreseen.count("failed") == 2, foreseen
        for outcome in refused.values():
            assert f"room for {most} processes" in outcome["reason"], outcome
            assert "narrower selector" in outcome["remedy"]
        agent.start()
        outcomes = agent.collect(120).outcomes
        assert {pid: outcomes[pid]["status"] for pid in ready} == dict.fromkeys(ready, "ok")
    finally:
        for sleeper in sleepers:
            sleeper.kill()
            sleeper.wait()
        agent.end()


def highest_rate():
    """Samples a second; the kernel lowers it by itself where they take it long."""
    return int(Path("/proc/sys/kernel/perf_event_max_sample_rate").read_text())


def most_at_once(frequency):
    """How many processes of one thread there is room for in the least that is allowed, 64 MiB.

    A processor's buffer is one page and a power of two: for half a second, at 1,100 bytes a sample.
    """
    page = os.sysconf("SC_PAGE_SIZE")
    pages = -(-frequency * 550 // page)
    buffer = (min(2048, max(16, 1 << (pages - 1).bit_length())) + 1) * page
    most = 64 * MIB // (os.sysconf("SC_NPROCESSORS_ONLN") * (buffer + 2048))
    if not most:
        pytest.skip("this host has so many processors that there is no room for one")
    return most
