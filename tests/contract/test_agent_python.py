"""CPython processes recorded by py-spy: known shares, times, waits, and what is refused."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterable

import pytest

from tests.burners import build
from tests.burners.counting import (
    FORKING,
    SIGNALLED,
    SPARK_WORKER,
    Counting,
    Counts,
    Python,
    grown,
)
from tests.contract.agent_driver import Agent, Recorded, good, near, running
from tests.contract.conftest import OTHER_USER
from tests.lab import procs
from tests.lab.pythons import interpreter

WORKS = {"hot": "hot (shares.py)", "warm": "burn (shares.py)", "cool": "cool (shares.py)"}
FREQUENCY = 99
WORK = 1.5e9
"""Nanoseconds of CPU time to record: about 150 samples."""
THREAD = "[python-worker-N]"
OTHERS = ("3.8", "3.9", "3.10", "3.12", "3.13", "3.14")
"""Releases beside this one."""


@pytest.fixture
def program(keep_program) -> Callable[..., Python]:
    return lambda *arguments, **options: keep_program(Python(*arguments, **options))


def record(
    agent: Agent, program: Counting, works: Iterable[str] = WORKS, **members: object
) -> tuple[Recorded, Counts]:
    """A recording of some work, and what the program did from before it until after it.

    The profile must have the CPU time, which is at least what was used between its begin and its end. At most
    it is what the process used, some of it for its answers.
    """
    before, cpu_before = program.counters(), procs.cpu_seconds(program.outer.pid)
    agent.begin(program, **{"engine": "pyspy", "frequency": FREQUENCY, "duration": 300, **members})
    begun = program.counters()

    def burnt(since: Counts) -> Counts:
        return grown(program.counters(), since)

    procs.wait_for("work", lambda: cpu_of(burnt(begun), works) > WORK, timeout=2 * procs.PATIENCE)
    least = cpu_of(burnt(begun), works)
    done = agent.stop().of(program)
    most = 1e9 * (procs.cpu_seconds(program.outer.pid) - cpu_before)
    nanoseconds = done.profile().total(1)
    assert 0.9 * least < nanoseconds < 1.1 * most, (least, nanoseconds, most)
    return done, burnt(before)


def cpu_of(burnt: Counts, works: Iterable[str] = WORKS) -> int:
    return sum(burnt[work] for work in works)


def assert_shares(done: Recorded, burnt: Counts) -> None:
    taken, total = done.head()["samples"]["taken"], cpu_of(burnt)
    for work, name in WORKS.items():
        share = done.share(name, among=tuple(WORKS.values()))
        assert near(share, burnt[work] / total, taken), (work, share, burnt, done.stacks())


def test_shares_are_those_that_were_burnt(agent, program):
    burner = program(load=0.8)
    assert agent.found(burner)[0]["jvm"] is None
    done, burnt = record(agent, burner, engine="auto")
    assert good(done.outcome) and done.head()["samples"]["taken"] > 100, done.outcome
    assert (done.head()["engine"], done.head()["source"]) == ("pyspy", "py-spy")
    assert_shares(done, burnt)
    _, warm = max((count, stack) for stack, count in done.stacks() if stack[-1].endswith(WORKS["warm"]))
    assert warm[0] == THREAD and [frame for frame in warm if "deeper" in frame] == ["deeper (shares.py)"] * 4
    assert done.share("[MainThread]") < 0.3, "it mostly waits for a line"
    times = done.profile().times
    assert times and (times.end - times.start) / 1e6 == pytest.approx(done.head()["seconds"], abs=1)


def assert_native(done: Recorded, burnt: Counts) -> None:
    """Native functions are named below the Python function that called them, in its share."""
    assert good(done.outcome), done.outcome
    assert_shares(done, burnt)
    below = [
        (stack[stack.index(WORKS["cool"]) + 1 :], n) for stack, n in done.stacks() if WORKS["cool"] in stack
    ]
    total, bare = sum(n for _, n in below), sum(n for names, n in below if not names)
    # NumPy's, zlib's, and what reads the clock.
    known = ("ufunc", "crc32", "clock_gettime")
    named = sum(n for names, n in below if any(word in name for word in known for name in names))
    assert total > 40 and named > 0.9 * (total - bare) and named > 0.5 * total, below
    # On a busy machine stops take long, and would take more than the fifth of the time that they may.
    notes = {note["code"]: note["parameters"] for note in done.outcome["notes"]}
    lacking = notes.get("no-native-frames", {"share": 0.0})["share"]
    assert near(bare / total, lacking, total, slack=0.1), (bare, total, notes)
    twice = [stack for stack, _ in done.stacks() if any(frame.startswith("py::") for frame in stack)]
    assert not twice, "py-spy names them already"
    stops = notes["stopped-for-samples"]
    assert stops["times"] > 100 and stops["seconds"] < 0.25 * done.head()["seconds"] + 0.5, stops


OFTEN_NATIVE = ("hot=20", "cool=60")
"""About a hundred samples of native code."""


def test_native_frames_are_below_python_functions(agent, program):
    wall = {"events": ["cpu", "wall"], "wall_interval": 50_000_000}
    burner = program(load=0.5, shares=OFTEN_NATIVE)
    done, burnt = record(agent, burner, python_native=True, **wall)
    assert_native(done, burnt)
    waits = [(stack[-1], n) for stack, n in done.stacks("wall") if stack[:2] == ["[MainThread]", "[waiting]"]]
    without_native = sum(n for last, n in waits if last.endswith("(shares.py)"))
    assert without_native > 0.95 * sum(n for _, n in waits) > 0, "a few began to wait while they were stopped"
    assert done.share("[waiting]", "wall", among=["wait_for_input"]) > 0.7, done.stacks("wall")


WITH_STOPS = {
    "engine": "pyspy",
    "frequency": FREQUENCY,
    "duration": 300,
    "events": ["cpu", "wall"],
    "python_native": True,
}


def test_no_signal_is_lost_while_a_process_is_stopped_for_its_native_frames(agent, keep_program):
    signalled, sent = keep_program(Counting([sys.executable, str(SIGNALLED)])), 0
    before = signalled.counters()
    agent.begin(signalled, **WITH_STOPS)
    while grown(signalled.counters(), before)["native"] < WORK:
        for _ in range(200):
            os.kill(signalled.pid, signal.SIGRTMIN)
        sent += 200
    signalled.outer.suspend()
    done = agent.stop().of(signalled)
    after = procs.status(signalled.pid)
    assert (after["State"][0], after["TracerPid"]) == ("T", ["0"]), "it is stopped, as it was asked to"
    signalled.outer.kill(signal.SIGCONT)
    procs.wait_for("all signals", lambda: grown(signalled.counters(), before)["got"] >= sent)
    assert grown(signalled.counters(), before)["got"] == sent
    assert done.share("crc32_z") > 0.05, done.stacks()  # it was stopped; signals interrupt the rest


def test_a_killed_agent_leaves_no_process_stopped(agent, keep_program):
    signalled = keep_program(Counting([sys.executable, str(SIGNALLED)]))
    agent.begin(signalled, **WITH_STOPS)
    start = signalled.counters()["native"]
    procs.wait_for("work", lambda: signalled.counters()["native"] > start + 3e8)
    agent.process.kill()
    killed = signalled.counters()["native"]
    procs.wait_for("more work", lambda: signalled.counters()["native"] > killed + 1e8)
    assert procs.status(signalled.pid)["TracerPid"] == ["0"]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: a pid namespace")
@pytest.mark.parametrize(
    "release", ["", *(pytest.param(one, marks=pytest.mark.nightly) for one in ("3.8", "3.9", "3.10", "3.14"))]
)
def test_threads_of_a_container_are_told_apart(agent, program, release):
    """There they have other numbers, and the main thread, PID 1, waits: it must not count as running."""
    enter = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
    python = interpreter(release) if release else sys.executable
    burner = program(python, load=0.8, wrap=lambda words: [*enter, *words])
    done, burnt = record(agent, burner)
    assert burner.pid != burner.outer.pid and good(done.outcome)
    assert_shares(done, burnt)
    assert done.share(THREAD) > 0.7, done.stacks()


def test_threads_that_wait_are_in_wall_clock_samples(agent, program):
    done, spent = record(agent, program(load=0.3), events=["wall", "cpu"])
    assert good(done.outcome)
    assert done.share("[MainThread]", "wall") == pytest.approx(0.5, abs=0.02), "two threads, all the time"
    waiting = done.share("wait_for_input", "wall", among=[THREAD])
    assert waiting == pytest.approx(spent["waited"] / spent["turned"], abs=0.03)
    each = sum(count for stack, count in done.stacks("wall", 1) if stack[0] == THREAD)
    assert each / 1e9 == pytest.approx(done.head("wall")["seconds"], rel=0.1)
    assert done.share("[MainThread]") < 0.4
    assert done.share("[waiting]", "wall", among=["[MainThread]"]) > 0.95
    assert done.share("[waiting]", "wall", among=["wait_for_input"]) > 0.95
    with_gil = {work: done.share("[holds the GIL]", "wall", among=[name]) for work, name in WORKS.items()}
    assert with_gil["hot"] > 0.8 and with_gil["warm"] > 0.7 and with_gil["cool"] < 0.95, with_gil


def test_processes_that_it_forks_are_recorded_with_it(agent, keep_program):
    forking = keep_program(Counting([sys.executable, str(FORKING)]))
    agent.begin(forking, engine="pyspy", frequency=FREQUENCY, duration=300)
    forking.ask("forked")
    used = forking.counters()["hot"]
    done = agent.stop().of(forking)
    assert good(done.outcome) and done.share("hot (forking.py)") > 0.9, (done.outcome, done.stacks())
    assert done.head()["cpu_seconds"] == pytest.approx(used / 1e9, rel=0.2)
    nanoseconds = sum(count for _, count in done.stacks(value=1))
    assert nanoseconds / 1e9 == pytest.approx(done.head()["cpu_seconds"], rel=0.01)


# Once, beside other tests, the process counted from its birth; alone it never did.
@pytest.mark.nightly
def test_a_forked_process_counts_from_the_begin_of_the_recording(agent, keep_program):
    forking = keep_program(Counting([sys.executable, str(FORKING)]))
    child = int(forking.ask("forked pid=").partition("=")[2])
    procs.wait_for("half of its work", lambda: procs.cpu_seconds(child) > 0.7)
    before = procs.cpu_seconds(child)
    agent.begin(forking, engine="pyspy", frequency=FREQUENCY, duration=300)
    after = procs.cpu_seconds(child)
    used = forking.counters()["hot"] / 1e9
    done = agent.stop().of(forking)
    assert used - after - 0.2 < done.head()["cpu_seconds"] < used - before + 0.1


@pytest.mark.parametrize("release", ["", *(pytest.param(one, marks=pytest.mark.nightly) for one in OTHERS)])
def test_samples_of_a_spark_worker_have_its_task(agent, keep_program, release):
    python = interpreter(release) if release else sys.executable
    worker = keep_program(Counting(["env", f"PYTHONPATH={SPARK_WORKER}", python, "-m", "pyspark.worker"]))
    done = record(agent, worker, ("even", "odd"))[0]
    profile = done.profile()
    assert good(done.outcome) and profile.times, done.outcome
    tasks = [(int(name.removeprefix("task ")), certain) for name, certain in profile.times.slices]
    assert min(tasks)[0] < 1 << 30 < max(tasks)[0]
    right, wrong = {True: 0, False: 0}, {True: 0, False: 0}
    for number, (task, certain) in enumerate(tasks, 1):
        for path in profile.in_slice(number).paths():
            counts = right if ("even", "odd")[task % 2] in path.frames[-1] else wrong
            counts[certain] += path.values[0]
    assert sum(right.values()) > 0.95 * done.head()["samples"]["taken"] > 100, (right, wrong)
    assert right[True] > right[False] and wrong[True] <= 0.01 * right[True], (right, wrong)
    assert wrong[False] < 0.4 * right[False], "a task began while the stack was read"


def test_a_process_that_ends_keeps_its_samples(agent, program):
    burner = program(load=0.9)
    agent.begin(burner, engine="pyspy", frequency=FREQUENCY, duration=120)
    start = burner.counters()["hot"]
    procs.wait_for("half a second of work", lambda: burner.counters()["hot"] > start + 5e8)
    burner.kill()
    done = agent.collect().of(burner)
    assert done.outcome["ended"] == "process" and done.share("hot (shares.py)") > 0.4, done.outcome


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: a process of another user")
def test_a_user_without_rights_is_told_what_to_do(new_agent, program):
    outcome = new_agent(user=OTHER_USER).refuse(program(), engine="pyspy")
    assert outcome["code"] == "not-permitted" and "--become sudo" in outcome["remedy"], outcome


def test_what_is_no_python_is_refused(agent):
    with running("sleep", "600") as process:
        (found,) = agent.find(native=True, kind="pids", pids=[process.pid])["processes"]
        assert agent.refuse(found, engine="pyspy")["code"] == "not-python"


def test_higher_frequencies_are_lowered(agent, program):
    done, _ = record(agent, program(load=0.9), frequency=997)
    assert done.outcome["code"] == "frequency-lowered", done.outcome
    assert done.head()["interval"] == 10_000_000
    assert done.head()["samples"]["expected"] == pytest.approx(done.head()["cpu_seconds"] * 100, abs=1)


def test_children_of_a_jvm_come_along(agent, program):
    java = ["env", f"CLASSPATH={build.classes()}", "java", "-Xmx32m", "Parent"]
    worker, other = program(wrap=lambda words: [*java, *words]), program()
    parent = worker.process.pid
    rule = {"kind": "rule", "any": [{"program": ["python*"]}], "process_label": "python"}

    def found(*pids: int) -> list[tuple[int, str, dict[str, str]]]:
        agent.send("find", selector={"kind": "pids", "pids": pids}, children=[rule])
        return [(one["pid"], one["label"], one["labels"]) for one in agent.expect("found")["processes"]]

    assert sorted(found(parent)) == sorted(
        [(parent, "Parent", {}), (worker.outer.pid, "python", {"parent": str(parent)})]
    )
    assert not found(other.outer.pid), "it is not a JVM, and no child of one"


@pytest.mark.nightly
@pytest.mark.parametrize("release", OTHERS)
def test_shares_on_other_releases(agent, program, release):
    done, burnt = record(agent, program(interpreter(release), load=0.8))
    assert good(done.outcome), done.outcome
    assert_shares(done, burnt)


@pytest.mark.nightly
@pytest.mark.parametrize("release", ["3.8", "3.9", "3.10", "3.11", "3.12", "3.13", "3.14"])
def test_native_frames_on_other_releases(agent, program, release):
    assert_native(
        *record(agent, program(interpreter(release), load=0.8, shares=OFTEN_NATIVE), python_native=True)
    )


@pytest.mark.nightly
@pytest.mark.parametrize("release", ["3.12", "3.13", "3.14"])
def test_native_frames_of_a_python_that_supports_perf(agent, program, release, monkeypatch):
    """There each Python function is called by code of its own. It is no frame, and does not end the walk."""
    monkeypatch.setenv("PYTHONPERFSUPPORT", "1")
    assert_native(
        *record(agent, program(interpreter(release), load=0.8, shares=OFTEN_NATIVE), python_native=True)
    )


@pytest.mark.nightly
@pytest.mark.parametrize("release", ["3.6", "3.7"])
def test_old_releases_are_refused(agent, program, release):
    outcome = agent.refuse(program(interpreter(release)), engine="pyspy")
    assert outcome["code"] == "python-unsupported", outcome


@pytest.mark.nightly
def test_perf_reads_the_map_of_a_python_that_writes_one(agent, program, monkeypatch):
    monkeypatch.setenv("PYTHONPERFSUPPORT", "1")
    done, _ = record(agent, program(interpreter("3.14"), load=0.8), engine="perf")
    # Many stacks are broken: this Python is built without frame pointers.
    assert done.head()["engine"] == "perf" and done.share("hot (shares.py)") > 0.02, done.stacks()
    assert not any(frame.startswith("py::") for stack, _ in done.stacks() for frame in stack)
