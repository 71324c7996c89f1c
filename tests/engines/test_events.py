"""Every event of async-profiler beside the program's own counters, several of them in one recording."""

from __future__ import annotations

from collections import Counter

import pytest

from hprofiler import Profile
from hprofiler._flamegraph import WorkTable
from tests.burners.counting import Truth
from tests.contract.agent_driver import good
from tests.engines.conftest import Zoo
from tests.engines.measured import SIGMAS, Run, Runner, Stacks, near, points, scatter

WAITS = {
    "[sleep]": ("Waiting.sleeping", "sleep"),
    "[park]": ("Waiting.parking", "park"),
    "[wait]": ("Waiting.waiting", "wait"),
    "[lock]": ("Waiting.blocked", "monitor"),
    "[network]": ("Waiting.reading", "read"),
}


@pytest.fixture(scope="module")
def busy(zoo: Zoo) -> Truth:
    return zoo.jvm("cpu=0.5", "alloc=60", "lock=3", jdk=17)


@pytest.fixture(scope="module")
def memory(zoo: Zoo) -> Truth:
    return zoo.jvm("memory=40", "live=20", jdk=25)


@pytest.fixture(scope="module", params=[8, 11, 21, 25])
def jdk(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.fixture(scope="module")
def waiting(zoo: Zoo, jdk: int) -> Truth:
    return zoo.jvm("waits=3", jdk=jdk)


@pytest.fixture(scope="module")
def together(record: Runner, busy: Truth) -> Run:
    """Four events of one attach."""
    options = ["-e", "cpu,alloc,lock,wall", "--alloc-interval", "32k", "--keep-raw"]
    return record([busy], *options, seconds=4)


@pytest.fixture(scope="module")
def of_memory(record: Runner, memory: Truth) -> Run:
    return record([memory], "-e", "live,nativemem", "--alloc-interval", "32k", seconds=4)


@pytest.fixture(scope="module")
def off_cpu(record: Runner, waiting: Truth, busy: Truth) -> Run:
    return record([waiting, busy], "-i", "--threads", seconds=3)


def test_all_events_come_from_one_recording(together: Run, busy: Truth) -> None:
    assert together.code == 0, together
    assert set(together.recordings(busy)) == {"cpu", "alloc", "lock", "wall"}
    assert good(together.outcome(busy))


def test_cpu_and_allocated_bytes(together: Run, busy: Truth) -> None:
    assert together.cpu_seconds_agree(busy)
    allocated = together.stacks(busy, "alloc", "alloc_space").total
    counted = together.grown(busy, "alloc")["alloc.everywhere.bytes"]
    assert near(allocated, counted, 0.10), (allocated, counted)


@pytest.mark.parametrize(("kind", "method"), [("monitor", "enterMonitor"), ("lock", "enterLock")])
def test_lock_waits(together: Run, busy: Truth, kind: str, method: str) -> None:
    counted = together.grown(busy, "lock")
    delay = together.stacks(busy, "lock", "delay").of(f"Locks.{method}")
    assert near(delay, counted[f"lock.{kind}.ns"], 0.15)
    if kind == "monitor":
        assert near(delay, counted["lock.blocked.ns"], 0.15)  # the JVM's own count
    contentions = together.stacks(busy, "lock", "contentions").of(f"Locks.{method}")
    assert near(contentions, counted[f"lock.{kind}.times"], 0.15)


def test_wall_clock_time(together: Run, busy: Truth) -> None:
    """Each thread has as many seconds as the recording."""
    seconds = together.recording(busy, "wall")["seconds"]
    wall = together.stacks(busy, "wall", "wall")
    for group, threads in (("[truth-cpu-", 1), ("[truth-monitor-", 3), ("[truth-lock-", 3)):
        assert near(wall.of(group), threads * seconds * 1e9, together.wall_slack(busy)), group


def test_the_raw_recording_is_kept(together: Run, busy: Truth) -> None:
    """And is what the profiles were made from: contentions below the threshold stand for those left out."""
    raw = Profile.open(together.path(busy, "recording.jfr"), estimate=True)
    folded = together.profile(busy, "lock", threads=False)
    assert raw.total("contentions") == folded.total("contentions")
    assert raw.total("delay") == folded.total("delay")


def test_native_memory(of_memory: Run, memory: Truth) -> None:
    counted = of_memory.grown(memory, "nativemem")
    space = of_memory.stacks(memory, "nativemem", "native_space")
    blocks = of_memory.stacks(memory, "nativemem", "native_allocs")
    assert near(space.of("NativeMemory."), sum(counted[f"memory.{site}.bytes"] for site in _BLOCKS), 0.10)
    for site in _BLOCKS:
        assert near(space.of(f"NativeMemory.{site}"), counted[f"memory.{site}.bytes"], 0.25), site
        assert near(blocks.of(f"NativeMemory.{site}"), counted[f"memory.{site}.blocks"], 0.25), site


_BLOCKS = ("small", "medium", "large")


def test_live_bytes(of_memory: Run, memory: Truth) -> None:
    """What was allocated during the recording and is still held at its end; garbage is not."""
    counted = of_memory.grown(memory, "live")
    space = of_memory.stacks(memory, "live", "inuse_space")
    interval = of_memory.recording(memory, "live")["interval"]
    within = 0.05 + SIGMAS * scatter(counted["live.kept.bytes"], 20_016, interval)
    kept = space.of("Live.keep")
    assert near(kept, counted["live.kept.bytes"], within), (kept, counted, within)
    assert space.of("Live.drop") < 0.2 * counted["live.dropped.bytes"]


def test_more_live_objects_than_are_kept_are_cut(record: Runner, zoo: Zoo) -> None:
    keeping = zoo.jvm("live=200", jdk=25)
    # The program collects garbage every 250 ms, which frees a part of the table. A recording that ends
    # before it is full again has fewer samples, though objects were dropped. So one of five must do.
    for _ in range(5):
        cut = record([keeping], "-e", "live", "--alloc-interval", "4k", seconds=1)
        outcome = cut.outcome(keeping)
        if cut.code:
            break
    assert (cut.code, outcome["status"], outcome["code"]) == (3, "degraded", "live-cut"), cut
    assert outcome["parameters"] == {"event": "live", "bytes": 1 << 20}
    assert outcome["remedy"] == "record with --alloc-interval 1m"


def test_allocations_have_the_category_of_the_code(record: Runner, zoo: Zoo) -> None:
    """Not of the classes: nodes of a pattern are of classes that only matching has methods of."""
    patterns = zoo.jvm("patterns", jdk=17)
    run = record([patterns], "-e", "alloc", "--alloc-interval", "32k", seconds=2)
    profile = run.profile(patterns, "alloc").select("alloc_space")
    stacks = Stacks(profile, "alloc_space")
    truth = {"regex-compile": stacks.of("Patterns.compiling"), "regex-match": stacks.of("regex/Matcher.")}
    assert min(truth.values()) > 0.02 * stacks.total, truth
    # Folded text has the kinds of frames, and no event.
    for one, kernel in ((profile, False), (Profile.from_bytes(profile.to_folded(), "folded"), True)):
        sums = Counter[str]()
        for category, _, _, value in WorkTable([]).sums(one, kernel=kernel):
            sums[category] += value
        assert all(near(sums[category], value, 0.01) for category, value in truth.items()), (truth, sums)


@pytest.mark.parametrize("kind", sorted(WAITS))
def test_waits_are_distinguished(off_cpu: Run, waiting: Truth, kind: str) -> None:
    method, counter = WAITS[kind]
    waited = off_cpu.stacks(waiting, "offcpu", "offcpu")
    counted = off_cpu.grown(waiting, "offcpu")[f"waits.{counter}.ns"]
    assert near(waited.of(kind, method), counted, off_cpu.wall_slack(waiting, "offcpu"))
    assert waited.of(method) == waited.of(kind, method)


def test_more_waits(off_cpu: Run, waiting: Truth) -> None:
    seconds, within = off_cpu.recording(waiting, "offcpu")["seconds"], off_cpu.wall_slack(waiting, "offcpu")
    waited = off_cpu.stacks(waiting, "offcpu", "offcpu")
    for kind, method in (
        ("[park]", "Waiting.locked"),
        ("[wait]", "Waiting.awaiting"),
        ("[network]", "Waiting.accepting"),
        ("[network]", "Waiting.selecting"),
        ("[sleep]", "Waiting.holding"),
    ):
        assert near(waited.of(kind, method), seconds * 1e9, within), method
    assert near(waited.of("[truth-pool-", "[idle pool thread]"), 3 * seconds * 1e9, within)


@pytest.mark.nightly  # on a busy machine the program counts its waits for a processor, too
def test_waits_for_a_disk(off_cpu: Run, waiting: Truth) -> None:
    """Where the disk is slow enough to be waited for."""
    counted = off_cpu.grown(waiting, "offcpu")["waits.disk.ns"]
    if counted < 3e8:
        pytest.skip(f"the disk here was waited for {counted / 1e6:.0f} ms only")
    waited = off_cpu.stacks(waiting, "offcpu", "offcpu")
    assert near(waited.of("[disk]", "Waiting.syncing"), counted, 0.35)


def test_nothing_that_runs_is_off_cpu(off_cpu: Run, busy: Truth) -> None:
    counted = off_cpu.grown(busy, "offcpu")
    recording = off_cpu.recording(busy, "offcpu")
    nanos = recording["seconds"] * 1e9
    waited = off_cpu.stacks(busy, "offcpu", "offcpu").of("[truth-cpu-")
    used = sum(counted[f"cpu.{name}.ns"] for name in ("java", "native", "kernel"))
    # On a busy machine it also waits for a processor, which is neither. async-profiler finds a thread asleep
    # a tenth more often than it is; if running counted as waiting, it would be twice as often.
    assert 0 < waited < nanos * (1 + points(nanos / recording["interval"], 0.5, slack=0.1)) - used


def test_pictures_are_split_by_thread_groups(off_cpu: Run) -> None:
    folded = (off_cpu.folder / "cluster/offcpu.folded").read_text()
    assert all(line.startswith("[") for line in folded.splitlines())
    assert "[truth-pool-N]" in folded
    svg = (off_cpu.folder / "cluster/offcpu.svg").read_text()
    assert "[truth-pool-N]" in svg
