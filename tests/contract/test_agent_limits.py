"""What the agent and its recordings take of a host, and that the job goes first."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.burners.counting import Truth
from tests.contract.agent_driver import good
from tests.contract.conftest import namespace_tmp
from tests.contract.test_agent_perf import FRAME_POINTERS
from tests.lab import procs
from tests.lab.procs import wait_for

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: control groups, namespaces"),
]

MIB = 1 << 20
PLACES = ("/tmp", "/var/tmp", "/dev/shm")
EVERY_ALLOCATION = {"events": ["alloc"], "alloc_interval": 4096, "duration": 120}


@pytest.fixture
def agent(new_agent):
    return new_agent(lease=300)  # it gets no pings


def disk_class(pid):
    said = subprocess.run(["ionice", "-p", str(pid)], capture_output=True, text=True, check=True)
    return said.stdout.strip()


def memory_score(pid):
    return int(Path(f"/proc/{pid}/oom_score_adj").read_text())


def limit(pid, name):
    """A soft limit of a process, as the kernel tells it."""
    return re.search(rf"^{name} +(\S+)", Path(f"/proc/{pid}/limits").read_text(), re.MULTILINE)[1]


@pytest.mark.parametrize("engine", ["async-profiler", "perf"])
def test_the_job_goes_first(agent, burn, engine):
    burner = burn(options=[FRAME_POINTERS], load=0.2)
    jvm, own = burner.outer.pid, agent.process.pid
    agent.begin(burner, engine=engine, duration=60)
    programs = procs.family(own)[1:]
    assert bool(programs) == (engine == "perf")
    for pid in (own, *programs):
        assert (disk_class(pid), memory_score(pid)) == ("idle", 1000)
    assert disk_class(jvm) != "idle" and memory_score(jvm) == memory_score(os.getpid())
    assert limit(own, "Max data size").isdecimal()
    assert {limit(pid, "Max data size") for pid in (jvm, *programs)} == {limit(os.getpid(), "Max data size")}
    assert good(agent.stop().of(burner).outcome)


def recordings(pid):
    """The recordings that a process has open."""
    links = set()
    for link in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):
            links.add(os.readlink(link))
    return {link for link in links if link.endswith(".jfr")}


def test_a_recording_that_waits_to_be_folded_outlives_its_jvm_and_its_file(agent, burn):
    """The agent has used more CPU time than it may, so it rests before it folds; and folds one at a time."""
    burners, own, cores = [burn(), burn()], agent.process.pid, 0.1
    agent.begin(*burners, duration=300, agent_cpu=cores)
    before, began = procs.cpu_seconds(own), time.monotonic()
    while procs.cpu_seconds(own) - before - cores * (time.monotonic() - began) < 0.6:
        agent.list()
    agent.send("stop")
    pids = [burner.outer.pid for burner in burners]
    wait_for("both are held", lambda: not any(map(recordings, pids)) and len(recordings(own)) == 2)
    for burner in burners:
        burner.kill()
    for folder in agent.folders():
        shutil.rmtree(folder)
    result = agent.collect()
    assert all(result.of(burner).is_good() for burner in burners)


def record_much(agent, jvm, rounds):
    """From `start` to `stop`, when it has had so many stacks no two of which are alike."""
    agent.start()
    before = jvm.counters()["deep.1.rounds"]
    wait_for("many stacks", lambda: jvm.counters()["deep.1.rounds"] - before > rounds)
    agent.send("stop")


def new_group():
    """A control group, and the file with its memory's limit."""
    for mount, file in (("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")):
        group = Path(mount) / f"hprofiler-limits-{os.getpid()}"
        with suppress(OSError):
            group.mkdir()
            if (group / file).exists():
                return group, group / file
            group.rmdir()
    pytest.skip("no control group can be made that limits memory")


@contextmanager
def memory_group(most):
    """A control group with so much memory; the way into it."""
    group, file = new_group()
    file.write_text(str(most))
    members = group / "cgroup.procs"
    yield members
    wait_for("the end of its processes", lambda: not members.read_text())
    group.rmdir()


def test_the_agents_control_group_is_not_outgrown(new_agent, burn, keep_program):
    """The kernel would end the agent there, and nobody would clean. What takes too much is given up alone."""
    with memory_group(160 * MIB) as members:
        jvm = keep_program(Truth("deep", heap="64m"))  # there is much to fold
        small = burn(load=0.1)
        agent = new_agent(by=["sh", "-c", f'echo $$ > {members} && exec "$@"', "sh"], lease=300)
        agent.prepare(jvm, small, **EVERY_ALLOCATION)
        record_much(agent, jvm, 80_000)
        result = agent.collect(120)
        outcome = result.of(jvm).outcome
        assert (outcome["status"], outcome["stage"]) == ("failed", "fetch"), outcome
        assert "64 MiB" in outcome["reason"] and outcome["remedy"], outcome
        assert good(result.of(small).outcome)
        assert result.left == [] and agent.bye() == 0


# What recordings take of the folders in which they are written


def in_memory(burn_contained, size, **more):
    """A JVM that has no other folders to write to than memory, `size` of it in each."""
    mounts = [f"mount -t tmpfs -o mode=1777,size={size} tmpfs {place}" for place in PLACES]
    return burn_contained(" && ".join([*mounts, "cd /proc"]), role="alloc", **more)


def test_the_folder_with_room_is_taken(agent, burn_contained):
    """A small /tmp before a large /var/tmp."""
    sizes = {"/tmp": "48m", "/var/tmp": "2g"}
    mounts = [f"mount -t tmpfs -o mode=1777,size={size} tmpfs {place}" for place, size in sizes.items()]
    burner = burn_contained(" && ".join(mounts))
    agent.begin(burner)
    seen = Path(f"/proc/{burner.outer.pid}/root/var/tmp")
    assert [path for path in seen.iterdir() if path.name.startswith(".hprofiler-run-")]
    assert not [name for name in namespace_tmp(burner) if "-run-" in name]
    assert good(agent.collect().of(burner).outcome)


def test_a_folder_without_room_is_refused(agent, burn_contained):
    outcome = agent.refuse(in_memory(burn_contained, "24m"), **EVERY_ALLOCATION)
    assert "MiB left" in outcome["reason"] and "room" in outcome["remedy"], outcome


def is_cut_short(done):
    """A recording in memory that was ended before its time."""
    assert done.outcome["status"] == "degraded" and done.outcome["remedy"], done.outcome
    assert "its part of the memory" in done.outcome["reason"], done.outcome
    return done.head("alloc")["seconds"] < 110


def test_a_recording_leaves_most_of_a_small_folder_free(agent, burn_contained):
    burner = in_memory(burn_contained, "48m")
    done = agent.record(burner, **EVERY_ALLOCATION)
    assert is_cut_short(done) and done.head("alloc")["samples"]["taken"] > 10_000
    assert namespace_tmp(burner) == []


def test_recordings_in_memory_are_bounded_by_the_containers_memory(agent, burn_contained):
    """The file systems would hold 4 GiB; two JVMs may have 96 MiB of memory, and one would be killed."""
    with memory_group(96 * MIB) as members:
        small = ["-Xmx64m", "-XX:+AlwaysPreTouch"]
        burners = [in_memory(burn_contained, "4g", options=small) for _ in range(2)]
        for burner in burners:
            members.write_text(str(burner.outer.pid))
        agent.begin(*burners, **EVERY_ALLOCATION)
        result = agent.collect(240)
        assert all(burner.outer.alive() for burner in burners)
        for burner in burners:
            burner.kill()
    assert any(is_cut_short(result.of(burner)) for burner in burners)


def test_a_folder_that_fills_up_meanwhile_is_left_alone(agent, burn_contained):
    burner = in_memory(burn_contained, "200m")
    agent.begin(burner, duration=120)
    root = Path(f"/proc/{burner.outer.pid}/root")
    (run,) = (run for place in PLACES for run in (root / place[1:]).glob(".hprofiler-run-*"))
    with (run.parent / "others").open("wb") as others:
        for _ in range(176):
            others.write(bytes(MIB))
    done = agent.collect().of(burner)
    assert done.outcome["status"] == "degraded" and done.head()["seconds"] < 110, done.outcome
    assert f"the memory of /{run.relative_to(root)} is nearly full" in done.outcome["reason"], done.outcome
    assert "more room" in done.outcome["remedy"], done.outcome
