"""Where the memory of JVMs and of other processes is, against what they are known to hold."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import msgspec
import pytest

from hprofiler.analysis.memory import analyse_memory
from hprofiler.model import Process
from hprofiler.model.memory import MeasuredProcess, Memory
from tests.burners.holder import Holder
from tests.contract.agent_driver import Event, ready
from tests.contract.conftest import OTHER_USER
from tests.contract.test_agent_limits import memory_group
from tests.lab import jdks, procs

MIB = 1 << 20
AMOUNT = 96
"""MiB of each kind."""
NEAR = 0.05
OTHERS = 12 * MIB
"""What may change beside: compiled code, small pieces of the C library."""
SIZES = ["-Xms640m", "-Xmx640m", "-Xmn320m"]
KINDS = {
    "heap": "heap",
    "direct": "anonymous",
    "malloc": "anonymous",
    "small": "malloc",
    "threads": "stacks",
    "mapped": "files",
}
"""The part that has what the program takes of a kind."""
COLLECTORS = [
    (17, "UseG1GC"),
    (17, "UseSerialGC"),
    (17, "UseParallelGC"),
    *(
        pytest.param(*one, marks=pytest.mark.nightly)
        for one in ((17, "UseZGC"), (17, "UseShenandoahGC"), (21, "UseZGC"), (25, "UseZGC"))
    ),
]


@pytest.fixture
def hold(tmp_path, keep_program):
    def hold(jdk=17, *options, prefix=()):
        return keep_program(Holder(tmp_path, jdk, [*SIZES, *options], prefix))

    return hold


@pytest.fixture
def mapped(tmp_path):
    """The file that a Holder maps."""
    return tmp_path / "mapped"


def measure(agent, *processes, heap=False) -> list[Event]:
    found = agent.request(processes, {})["processes"]
    chosen = [{key: one[key] for key in ("pid", "start_time")} for one in found]
    agent.send("memory", processes=chosen, heap=heap)
    measured = agent.expect("memory")["processes"]
    assert [one["pid"] for one in measured] == [one["pid"] for one in chosen]
    return measured


def resident(memory: Event) -> dict[str, int]:
    return {name: amount["resident"] for name, amount in memory["parts"].items()}


def known(agent, process) -> Event:
    (one,) = measure(agent, process)
    assert (one["status"], one["code"]) == ("ok", "measured"), one
    return one["memory"]


def kernels(pid: int) -> int:
    """What the kernel says is resident, by its own sum."""
    text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    return 1024 * int(text.split("Rss:")[1].split()[0])


def assert_in_its_part(agent, holder, kinds=KINDS) -> None:
    before = resident(known(agent, holder))
    for kind, part in kinds.items():
        holder.take(**{kind: AMOUNT})
        after = resident(known(agent, holder))
        grown = {name: after.get(name, 0) - before.get(name, 0) for name in after}
        wanted = AMOUNT * MIB
        assert abs(grown.pop(part) - wanted) < NEAR * wanted, (kind, part, before, after)
        if kind != "threads":  # each has a buffer in the heap
            assert sum(map(abs, grown.values())) < OTHERS, (kind, grown)
        before = after


@pytest.mark.parametrize("jdk", jdks.VERSIONS)
def test_each_kind_of_memory_is_in_its_part(agent, hold, mapped, jdk):
    holder = hold(jdk, "-XX:+UseSerialGC")
    assert_in_its_part(agent, holder)
    memory = known(agent, holder)
    assert abs(sum(resident(memory).values()) - kernels(holder.outer.pid)) < MIB
    files = {file["path"]: file["resident"] for file in memory["files"]}
    assert files[str(mapped)] == AMOUNT * MIB
    jvm = memory["jvm"]
    assert jvm["heap_found"] and jvm["flags"]["MaxHeapSize"] == 640 * MIB and jvm["flags"]["UseSerialGC"] == 1
    assert memory["threads"] > AMOUNT and memory["arenas"] > 1 and memory["seconds"] < 1


@pytest.mark.parametrize(("jdk", "collector"), COLLECTORS)
def test_the_heap_of_each_collector(agent, hold, jdk, collector):
    holder = hold(jdk, f"-XX:+{collector}")
    assert_in_its_part(agent, holder, {"heap": "heap", "direct": "anonymous"})


def test_a_heap_that_was_touched_at_the_start_is_all_there(agent, hold):
    memory = known(agent, hold(17, "-XX:+AlwaysPreTouch"))
    assert abs(resident(memory)["heap"] - 640 * MIB) < 0.01 * 640 * MIB
    assert memory["jvm"]["heap_used"] < 64 * MIB and memory["jvm"]["flags"]["AlwaysPreTouch"] == 1


@pytest.mark.parametrize("jdk", jdks.VERSIONS)
def test_metaspace_and_what_the_jvm_tracks(agent, hold, jdk):
    holder = hold(jdk, "-XX:+UseSerialGC", "-XX:NativeMemoryTracking=summary")
    before = known(agent, holder)
    # Before JDK 16 each loader of a class had pages that it did not use, or not yet: they are in the rest.
    holder.take(classes=4000 if jdk > 15 else 1000, direct=AMOUNT)
    after = known(agent, holder)
    grown = {name: value - resident(before).get(name, 0) for name, value in resident(after).items()}
    metaspace = grown["metaspace"]
    assert after["jvm"]["metaspace_committed"] >= resident(after)["metaspace"] and metaspace > 5 * MIB
    # Where it is nobody sees: had the JVM touched more or less of it, this would show it.
    assert abs(grown["anonymous"] - AMOUNT * MIB) < NEAR * AMOUNT * MIB + NEAR * metaspace, grown
    tracked = after["jvm"]["native"]
    category = "Other" if jdk >= 11 else "Internal"
    assert abs(tracked[category] - AMOUNT * MIB) < NEAR * AMOUNT * MIB and "Java Heap" in tracked


@pytest.mark.parametrize("jdk", jdks.VERSIONS)
def test_objects_by_class(agent, hold, jdk):
    holder = hold(jdk, "-XX:+UseSerialGC")
    holder.take(heap=AMOUNT)
    (one,) = measure(agent, holder, heap=True)
    histogram = one["memory"]["jvm"]["histogram"]
    largest = histogram["classes"][0]
    assert largest["name"] == "[B" and abs(largest["bytes"] - AMOUNT * MIB) < NEAR * AMOUNT * MIB, one
    assert histogram["bytes"] >= largest["bytes"] and histogram["objects"] >= largest["objects"] >= AMOUNT
    assert 0 < histogram["seconds"] < procs.PATIENCE


def test_a_jvm_that_takes_no_commands(agent, hold):
    holder = hold(17, "-XX:+UseSerialGC", "-XX:+DisableAttachMechanism")
    holder.take(direct=AMOUNT)
    (one,) = measure(agent, holder, heap=True)
    assert (one["status"], one["code"]) == ("degraded", "attach-disabled")
    memory = one["memory"]
    assert not memory["jvm"]["heap_found"] and "heap" not in memory["parts"] and memory["jvm"]["heap_used"]
    assert resident(memory)["anonymous"] > AMOUNT * MIB


def test_a_process_that_is_no_jvm(agent):
    program = "import sys\nkept = bytearray(1 << 26)\nprint('ready', flush=True)\nsys.stdin.read()"
    with ready([sys.executable, "-c", program]) as process:
        (found,) = agent.find(native=True, kind="pids", pids=[process.pid])["processes"]
        memory = known(agent, found)
    assert memory["jvm"] is None and abs(resident(memory)["anonymous"] - 64 * MIB) < 8 * MIB
    assert resident(memory)["libraries"] > MIB


def test_a_limit_and_what_is_in_the_group(agent, hold):
    if os.geteuid():
        pytest.skip("needs root: control groups")
    with memory_group(900 * MIB) as members:
        holder = hold(17, "-XX:+UseSerialGC", prefix=["sh", "-c", f'echo $$ > {members} && exec "$@"', "sh"])
        holder.take(direct=AMOUNT, mapped=16)
        memory = known(agent, holder)
        group = memory["group"]
        assert group["id"].endswith(members.parent.name) and group["limit"] == 900 * MIB
        of_files = ("files", "libraries", "jars")
        own = sum(value for part, value in resident(memory).items() if part not in of_files)
        assert abs(group["anonymous"] - own) < 16 * MIB and group["oom_kills"] == 0
        assert group["used"] > group["anonymous"]
        holder.kill()


def test_it_is_said_before_that_a_jvm_will_be_killed(agent, hold):
    """What is outside of its heap leaves too little for -Xmx. Then the heap fills."""
    if os.geteuid():
        pytest.skip("needs root: control groups")
    with memory_group(400 * MIB) as members:
        inside = ["sh", "-c", f'echo $$ > {members} && exec "$@"', "sh"]
        other = hold(17, "-XX:+UseSerialGC", "-Xms16m", "-Xmx16m", "-Xmn4m", prefix=inside)
        holder = hold(17, "-XX:+UseSerialGC", "-Xms16m", "-Xmx320m", "-Xmn32m", prefix=inside)
        fits = said(agent, holder, other)
        holder.take(direct=200)
        assert "heap-does-not-fit" not in fits and "heap-does-not-fit" in said(agent, holder, other)
        with pytest.raises((RuntimeError, BrokenPipeError)):
            holder.take(heap=280)
        assert holder.process.wait(procs.PATIENCE) == -signal.SIGKILL
        assert known(agent, other)["group"]["oom_kills"] == 1 and "oom-kills" in said(agent, other)
        other.kill()


def said(agent, *processes) -> set[str]:
    """The codes of what stands out."""
    measured = []
    for one in measure(agent, *processes):
        process = Process("n1", one["pid"], 1, 0, "root", "Holder")
        measured.append(MeasuredProcess(process, ((1.0, msgspec.convert(one["memory"], Memory)),)))
    return {finding.code for finding in analyse_memory(measured).findings}


def test_what_the_user_may_not_read(new_agent, hold):
    if os.geteuid():
        pytest.skip("needs root: another user")
    holder = hold(17, "-XX:+UseSerialGC")
    (one,) = measure(new_agent(user=OTHER_USER), holder)
    assert (one["status"], one["code"], one["memory"]) == ("failed", "not-permitted", None)


def test_a_process_that_has_ended(agent):
    (one,) = measure(agent, {"pid": os.getpid(), "start_time": 1})
    assert (one["status"], one["code"], one["memory"]) == ("failed", "process-ended", None)
