"""Triggers: their conditions, what makes them true, and the last seconds that are kept."""

from __future__ import annotations

import os
import re
import signal
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hprofiler._flamegraph import Profile
from hprofiler.app.run import run
from hprofiler.base.errors import HprofilerError, NotFired
from hprofiler.cli.options import objects as chosen
from hprofiler.cli.options.parser import parse
from hprofiler.collect.visit_group import HostProgress
from hprofiler.model import (
    Host,
    HostRecord,
    Outcome,
    Pauses,
    Present,
    Process,
    Recording,
    Samples,
    Status,
    Target,
)
from hprofiler.model.metrics import Metrics, Series
from hprofiler.model.trigger import Fired, Trigger
from hprofiler.report.triggered import fired_text, triggered_text
from hprofiler.resolve import Located, SparkDriver
from hprofiler.runfolder import RunFolder, window
from hprofiler.runfolder.parts import Parts, settle
from hprofiler.runfolder.sink import FolderSink
from hprofiler.runfolder.window import Window
from hprofiler.spark.rest.running import ActiveStage, Running
from hprofiler.spark.rest.server import Answer
from tests.timed_profile import Row, timed_profile
from tests.unit.conftest import MakeFleet
from tests.unit.stand_in import ANY

SECOND = 1_000_000


# Conditions


@pytest.mark.parametrize(
    ("text", "kind", "limit", "shown"),
    [
        ("stage 14", "stage", 14, "stage 14"),
        (" Task>3.5x median", "task", 3.5, "task > 3.5 x median"),
        ("task > 3 * median", "task", 3, "task > 3 x median"),
        ("gc > 20 %", "gc", 20, "gc > 20%"),
        ("cpu > 1.5", "cpu", 1.5, "cpu > 1.5"),
    ],
)
def test_a_condition_is_read_and_written(text: str, kind: str, limit: float, shown: str) -> None:
    trigger = Trigger.of(text)
    assert (trigger.kind, trigger.limit, str(trigger)) == (kind, limit, shown)
    assert Trigger.of(shown) == trigger


@pytest.mark.parametrize(
    "text", ["", "gc", "gc > 20", "gc < 20%", "cpu > x", "stage", "task > 3", "cpu > 3; x"]
)
def test_what_is_no_condition_is_told_with_those_that_are(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not a condition: 'stage 14', 'task > 3 x median'"):
        Trigger.of(text)


@pytest.mark.parametrize(
    ("text", "why"), [("gc > 100%", "never true"), ("task > 0.5 x median", "most tasks")]
)
def test_conditions_without_sense(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        Trigger.of(text)


@pytest.mark.parametrize(
    ("condition", "value", "shown"),
    [
        ("cpu > 0.3", 0.33, "0.33 cores"),
        ("cpu > 0.3", 0.3004, "0.3004 cores"),
        ("cpu > 3", 3.52, "3.5 cores"),
        ("gc > 20%", 20.4, "20.4 %"),
        ("gc > 20%", 31.2, "31 %"),
    ],
)
def test_a_value_is_seen_to_be_beyond_the_limit(condition: str, value: float, shown: str) -> None:
    trigger = Trigger.of(condition)
    fired = Fired(condition, trigger.kind, trigger.limit, 0.0, value, "n3", 7, "M")
    assert fired_text(fired) == f"{condition}: {shown} in M (pid 7) on n3"


# What hosts say

USES = """
def watched(request):
    second = 0
    ticks = lambda pid, each: dict(of="process", id=str(pid), name="user_ticks", kind="counter", unit="ticks",
                                   values=[second * each, each])
    while request["type"] != "bye":
        if request["type"] == "find":
            say("found", searched=9, processes=[process(7), process(8)], ignored=[])
        else:
            say("metrics", every=1.0, time=[1000000 * second + 1, 1000000], facts=dict(ticks_per_second=100),
                series=[ticks(7, 50), ticks(8, 300 if second > 8 else 10)])
            second += 1
        request = read()
def records():
    say("ready", processes=[dict(pid=7), dict(pid=8)]); recording(7, 8)
    for pid in (7, 8): profile(pid, PROFILE); outcome(pid)
    say("done", left=[]); read()
hello(); found(7, 8)
"""
"""Process 8 takes 3 cores from second 9 on, before it hardly any; process 7 takes half a core."""
WATCHED = f"{USES}watched(read())"
RECORDED = f"{USES}read(); records()"
BOTH = f"{USES}request = read()\nwatched(request) if request['type'] == 'watch' else records()"
"""Whatever the session is for."""


@pytest.fixture(autouse=True)
def fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hprofiler.collect.watching._EVERY", 0.01)


def watched_then_recorded(folder: Path) -> str:
    """An agent that is watched first; the next one records."""
    flag = folder / "watched"
    once = f"import pathlib\nflag = pathlib.Path({str(flag)!r})\nbefore = flag.exists()\nflag.touch()\n"
    return f"{once}exec({RECORDED!r} if before else {WATCHED!r})"


def test_a_run_begins_when_a_process_has_used_so_many_cores(fleet: MakeFleet, tmp_path: Path) -> None:
    """In five seconds of 3 cores or hardly any, these are more than 2 in the mean."""
    hosts = fleet(one=watched_then_recorded(tmp_path))
    shown: list[HostProgress] = []
    hosts.listener = shown.append
    result = hosts.run(tmp_path / "run", trigger=Trigger.of("cpu > 2"), patience=60.0)
    record = RunFolder.open(tmp_path / "run").record
    fired = record.trigger
    assert fired is not None and (fired.condition, fired.host, fired.pid, fired.process) == (
        "cpu > 2",
        "one",
        8,
        "M",
    )
    assert 2 < fired.value <= 3 and result.coverage.processes.recorded == 2
    assert triggered_text(record).startswith(f"recorded since {fired_text(fired)}, at ")
    assert "recorded since cpu" in (tmp_path / "run" / "report.html").read_text()
    values = [one.detail for one in shown if one.stage == "trigger"]
    assert values[0].startswith("cpu 0.") and "cpu 0.5, waiting for > 2" in values


def test_an_impossible_value_can_be_read_again(fleet: MakeFleet, tmp_path: Path) -> None:
    hosts = fleet(one=watched_then_recorded(tmp_path).replace("300", "2**52"))
    hosts.run(tmp_path / "run", trigger=Trigger.of("cpu > 2"), patience=60.0)
    fired = RunFolder.open(tmp_path / "run").record.trigger
    assert fired is not None and fired.value == 1e12


def test_what_is_never_true_leaves_nothing(fleet: MakeFleet, tmp_path: Path) -> None:
    hosts = fleet(one=WATCHED)
    with pytest.raises(NotFired, match="'cpu > 5' was not true: it was waited for 1") as caught:
        hosts.run(tmp_path / "run", trigger=Trigger.of("cpu > 5"), patience=1.0)
    assert not (tmp_path / "run").exists() and main_code(caught.value) == 4


def test_what_no_process_publishes_is_unknown(fleet: MakeFleet, tmp_path: Path) -> None:
    """The agent ends after some readings."""
    body = WATCHED.replace('while request["type"] != "bye"', "while second < 3")
    with pytest.raises(NotFired) as caught:
        fleet(one=body).run(tmp_path / "run", trigger=Trigger.of("gc > 5%"), patience=600.0)
    assert caught.value.remedy == "last seen: gc unknown, waiting for > 5 %"


def main_code(error: HprofilerError) -> int:
    from hprofiler.cli import exit_code

    return exit_code(error)


def test_a_recording_whose_condition_was_never_true_is_not_kept(fleet: MakeFleet, tmp_path: Path) -> None:
    """Two sessions on the host: one is watched, one records until the end of its time."""
    hosts = fleet(one=BOTH)
    with pytest.raises(NotFired, match="was not true: it was waited for"):
        hosts.run(tmp_path / "run", trigger=Trigger.of("cpu > 50"), keep_last=60.0)
    assert not (tmp_path / "run").exists()


def test_the_wait_for_a_condition_ends_a_recording_too(fleet: MakeFleet, tmp_path: Path) -> None:
    """It would last for a minute, and is asked to end after a second."""
    hosts = fleet(one=BOTH.replace("recording(7, 8)", "recording(7, 8); read()"))
    hosts.sampling = replace(hosts.sampling, duration=60.0)
    with pytest.raises(NotFired, match="was not true: it was waited for"):
        hosts.run(tmp_path / "run", trigger=Trigger.of("cpu > 50"), keep_last=20.0, patience=1.0)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("until_over", [True, False])
def test_the_wait_ends_with_the_job(
    fleet: MakeFleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, until_over: bool
) -> None:
    """Its processes have ended at the second search. If not the job is waited for, others may come."""
    monkeypatch.setattr("hprofiler.app.triggers.QUIET_SECONDS", 0.2)
    hosts = fleet(one=WATCHED.replace("[process(7), process(8)]", "[]"))
    why = "the job is over" if until_over else "it was waited for 2"
    with pytest.raises(NotFired, match=why):
        hosts.run(tmp_path / "run", trigger=Trigger.of("cpu > 50"), patience=2.0, until_over=until_over)


def test_ctrl_c_before_the_recording_leaves_nothing(
    fleet: MakeFleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While the target is asked again what it has."""

    def look() -> Present:
        os.kill(os.getpid(), signal.SIGINT)
        return Present([])

    hosts = fleet(one=WATCHED)
    monkeypatch.setattr("hprofiler.collect.following.Follower._ask", lambda self: None)
    request = hosts.request(tmp_path / "run", located=hosts.located(look=look), patience=60.0)
    with pytest.raises(KeyboardInterrupt):
        run(replace(request, trigger=Trigger.of("cpu > 2")), hosts.reach, hosts.listener)
    assert not (tmp_path / "run").exists()


def test_a_recording_that_nobody_watches_any_more_is_kept(fleet: MakeFleet, tmp_path: Path) -> None:
    """A host that hangs may be why: these seconds are what it was recorded for."""
    broken = BOTH.replace('while request["type"] != "bye"', "while second < 3")
    hosts = fleet(one=broken.replace("recording(7, 8)", "recording(7, 8); read()"))
    hosts.sampling = replace(hosts.sampling, duration=60.0)
    shown: list[HostProgress] = []
    hosts.listener = shown.append
    result = hosts.run(tmp_path / "run", trigger=Trigger.of("cpu > 50"), keep_last=60.0)
    assert result.coverage.processes.recorded == 2 and not result.interrupted
    assert RunFolder.open(tmp_path / "run").record.trigger is None
    said = [one.detail for one in shown if one.stage == "stop"]
    assert said[0].startswith("'cpu > 50' cannot be watched for any more: one: the agent ended")


def test_hosts_that_all_fail_end_the_wait(fleet: MakeFleet, tmp_path: Path) -> None:
    with pytest.raises(NotFired, match=r"was not true: one: .*broken"):
        fleet(one="sys.exit('broken')").run(tmp_path / "run", trigger=Trigger.of("gc > 5%"), patience=600.0)


# What Spark's driver says

STAGES = [
    {"status": "ACTIVE", "stageId": 14, "attemptId": 1, "numCompleteTasks": 7},
    {"status": "ACTIVE", "stageId": 15, "attemptId": 0, "numCompleteTasks": 2},
]
NOW = 1_795_693_800.0


def task(number: int, launched: str, status: str = "RUNNING") -> dict[str, Any]:
    times = {"launchTime": f"2026-11-26T{launched}GMT", "duration": 5}
    return {
        "taskId": number,
        "index": number - 100,
        "executorId": "4",
        "host": "n3",
        "status": status,
        **times,
    }


ANSWERS = {
    "/applications/app-1": {"id": "app-1", "name": "etl", "attempts": [{"completed": False}]},
    "/applications/app-1/stages": STAGES,
    "/applications/app-1/stages/14/1/taskSummary": {"quantiles": [0.5], "duration": [10_000.0]},
    "/applications/app-1/stages/14/1/taskList": [
        task(101, "11:49:00.000", "SUCCESS"),
        task(102, "11:49:15.000"),
        task(103, "11:49:50.000"),
    ],
}


def driver(answers: Mapping[str, Any] = ANSWERS, now: float = NOW) -> Running:
    """A driver whose clock is far behind ours."""

    def ask(path: str, parameters: Mapping[str, str]) -> Answer:
        if path not in answers:
            raise HprofilerError("no such path")
        return Answer(answers[path], time.time(), time.time(), now)

    return Running(ask, "app-1")


def test_active_stages_and_the_task_that_has_taken_longest() -> None:
    running = driver()
    stages = running.stages()
    assert stages == [ActiveStage(14, 1, 7), ActiveStage(15, 0, 2)]
    longest = running.longest_task(stages)
    assert longest is not None and longest.stage.id == 14
    assert (longest.task.id, longest.task.index, longest.task.executor, longest.host) == (102, 2, "4", "n3")
    # 11:50:00 by the driver's clock.
    assert longest.task.median == 10.0 and longest.task.seconds == pytest.approx(45, abs=2)
    assert longest.times == longest.task.seconds / 10


def test_a_new_attempt_of_the_application_is_asked() -> None:
    answers = {**ANSWERS, "/applications/app-1": {"id": "app-1", "attempts": [{"attemptId": "1"}]}}
    answers["/applications/app-1/1/stages"] = STAGES[:1]
    running = driver(answers)
    assert len(running.stages()) == 1
    answers["/applications/app-1"] = {"id": "app-1", "attempts": [{"attemptId": "2"}, {"attemptId": "1"}]}
    answers["/applications/app-1/2/stages"] = STAGES
    del answers["/applications/app-1/1/stages"]
    with pytest.raises(HprofilerError, match="no such path"):
        running.stages()
    assert len(running.stages()) == 2


def test_without_finished_tasks_there_is_no_median() -> None:
    running = driver()
    assert running.longest_task(running.stages()[1:]) is None
    lacking = {path: answer for path, answer in ANSWERS.items() if not path.endswith("taskSummary")}
    assert driver(lacking).longest_task([ActiveStage(14, 1, 7)]) is None


@pytest.mark.parametrize("median", [1e-300, 0.0, 1e300, 10**400, "10", None])
def test_an_impossible_median_is_none(median: object) -> None:
    """A driver runs its user's code; what it says goes into run.json."""
    path = "/applications/app-1/stages/14/1/taskSummary"
    running = driver({**ANSWERS, path: {"quantiles": [0.5], "duration": [median]}})
    assert running.longest_task(running.stages()) is None


@pytest.mark.parametrize(
    ("condition", "says"),
    [
        ("stage 14", "stage 14: stage 14.1 was active"),
        (
            "task > 3 x median",
            r"task > 3 x median: task 102 \(index 2\) of stage 14.1 had run 4[456](\.\d)? s "
            r"in executor 4 on n3, 4\.[456] times the median of 10 s",
        ),
    ],
)
def test_a_run_begins_when_the_driver_says_so(
    fleet: MakeFleet, tmp_path: Path, condition: str, says: str
) -> None:
    def get(path: str, parameters: Mapping[str, str]) -> tuple[object, str | None]:
        return ANSWERS[path], "Thu, 26 Nov 2026 11:50:00 GMT"

    hosts = fleet(one=RECORDED)
    request = hosts.request(tmp_path / "run", located=hosts.located(driver=SparkDriver("app-1", get)))
    run(replace(request, trigger=Trigger.of(condition), patience=60.0), hosts.reach, hosts.listener)
    fired = RunFolder.open(tmp_path / "run").record.trigger
    assert fired is not None
    assert re.fullmatch(says, fired_text(fired)), fired_text(fired)


def test_ctrl_c_ends_the_wait_for_a_slow_driver(fleet: MakeFleet, tmp_path: Path) -> None:
    over = threading.Event()

    def get(path: str, parameters: Mapping[str, str]) -> tuple[object, str | None]:
        os.kill(os.getpid(), signal.SIGINT)
        assert over.wait(20), "the run goes on"
        raise HprofilerError("too late")

    hosts = fleet(one=RECORDED)
    request = hosts.request(tmp_path / "run", located=hosts.located(driver=SparkDriver("app-1", get)))
    with pytest.raises(NotFired, match="before the interrupt") as caught:
        run(replace(request, trigger=Trigger.of("stage 14"), patience=60.0), hosts.reach, hosts.listener)
    assert caught.value.signal == signal.SIGINT and not over.is_set()
    over.set()


def test_a_condition_of_spark_needs_a_driver(capsys: pytest.CaptureFixture[str]) -> None:
    options = parse(["-j", "x", "--when", "stage 3"])
    trigger = chosen.joining(options, ANY)["trigger"]
    with pytest.raises(HprofilerError, match="needs Spark's driver"):
        chosen.refuse_without_driver(trigger, None, Located(Target("hosts", "x"), []))


# The last seconds

HOST = Host("node", "localhost")
CPU = [("samples", "count"), ("cpu", "nanoseconds")]


def process(pid: int) -> Process:
    return Process("node", pid, 1, 0, "root", f"executor {pid}")


def part(begin: float, *seconds: float) -> Iterator[bytes]:
    """A sample at each of these seconds after the beginning."""
    rows = [Row(["main", "work"], int(one * SECOND) // 20_000, 1, (1, 10_000_000)) for one in seconds]
    return iter([timed_profile(rows, start=int(begin * SECOND), values=CPU)])


def test_the_last_seconds_of_each_process_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the last 20 s. Process 7 is cut in the middle of a part; 8, and 6 without samples, ended before; 9
    came later. The recording of 3, which lives on, had ended early: it is said to be missing. Of two that
    could not be recorded, 4 had ended before, too."""
    clock = FakeClock(monkeypatch)
    folder = RunFolder.create(tmp_path / "run")
    kept = Window(20.0)
    sink = FolderSink(folder, kept)
    begin = time.time() - 50
    recordings: dict[int, Recording] = {}

    def arrives(pid: int, at: float, *seconds: float, length: float = 10.0, more: bool = True) -> None:
        samples = Samples(10, 4, 6)
        one = Recording(process(pid), "cpu", "async-profiler", "ctimer", 10**7, samples, length, 0.04)
        one = replace(one, age=100.0, cpu_before=3.0)
        clock.now = at + length
        # Where there are no samples, their times may be those of the host.
        data = part(begin + at, *seconds) if seconds else part(1.0)
        came = sink.profile(HOST, one, data, more)
        before = recordings.get(pid)
        recordings[pid] = before.with_part(came) if before else came

    for at in (0.0, 10.0, 20.0, 30.0):
        arrives(7, at, 1.0, 2.0, 8.0, 9.0)
    arrives(8, 0.0, 1.0, more=False)
    arrives(6, 0.0, more=False)
    arrives(3, 0.0, 1.0, more=False)
    arrives(9, 37.0, 0.5, length=5.0, more=False)
    arrives(7, 40.0, 1.0, 2.0, length=5.0, more=False)
    files = {path.name.removesuffix(".json") for path in (folder.host_dir("node") / "7").iterdir()}
    assert files == {"cpu.part-1-1", "cpu.part-2-2", "cpu.part-3-3", "cpu.part-4-4"}, (
        "the first one is too old"
    )
    outcomes = [
        Outcome("node", Status.OK, "record", pid=pid, seconds=40.0, gone=pid in (6, 8))
        for pid in (3, 6, 7, 8, 9)
    ]
    failed = [Outcome("node", Status.FAILED, "record", pid=pid, gone=pid == 4) for pid in (4, 5)]
    clock.now = 12.0
    kept.figures(folder, [HostRecord(name="node", outcomes=tuple(failed))])
    clock.now = 45.0
    outcomes += failed
    pauses = Pauses(7, ("young",), (0, 0), (int((begin + 20) * SECOND), int((begin + 30) * SECOND)), (5, 6))
    host = HostRecord(
        name="node", recordings=tuple(recordings.values()), outcomes=tuple(outcomes), pauses=(pauses,)
    )
    last = kept.cut(folder, [host], clock.time())
    assert last is not None and last.recorded == pytest.approx(45.0) and last.seconds == 20.0
    assert last.start == pytest.approx((begin + 25) * SECOND, abs=2)
    (host,) = last.hosts
    assert [one.pid for one in host.outcomes] == [3, 7, 9, 5] and host.outcomes[1].seconds == pytest.approx(
        20, abs=0.1
    )
    seven, nine = host.recordings
    # Half of the part's samples were after its cut.
    assert (seven.samples.taken, seven.samples.expected) == (2 + 4 + 4, 5 + 10 + 10)
    assert seven.totals == {"samples": 2 + 4 + 2, "cpu": 80_000_000}
    assert (seven.joined, round(seven.seconds)) == (0.0, 20)
    # It had lived, and used CPU time, before what is kept.
    assert seven.age == pytest.approx(125) and seven.cpu_before == pytest.approx(3.1)
    assert nine.joined == pytest.approx(12, abs=0.05) and nine.seconds == 5.0
    assert (host.pauses[0].end, host.pauses[0].duration) == ((int((begin + 30) * SECOND),), (6,))
    settle(folder, last.hosts)
    profile = Profile.open(folder.times_path("node", 7, "cpu"), "compact")
    assert profile.total("samples") == 8 and profile.times is not None
    assert seven.times is not None and seven.times.start == profile.times.start
    assert profile.times.start == pytest.approx(last.start, abs=20_000)
    assert sorted(path.name for path in folder.host_dir("node").iterdir()) == ["7", "9"]


def test_a_recording_that_was_shorter_is_kept_from_its_begin(tmp_path: Path) -> None:
    folder, kept = RunFolder.create(tmp_path / "run"), Window(60.0)
    sink, begin = FolderSink(folder, kept), time.time() - 5
    recordings = []
    for pid, at in ((7, 0.0), (8, 2.0)):
        one = Recording(process(pid), "cpu", "async-profiler", "ctimer", 10**7, Samples(1, 1, 0), 3.0, 0.01)
        recordings.append(sink.profile(HOST, one, part(begin + at, 1.0), False))
    last = kept.cut(folder, [HostRecord(name="node", recordings=tuple(recordings))], time.time() + 9)
    assert last is not None and last.start == int(begin * SECOND)
    assert [one.joined for one in last.hosts[0].recordings] == [0.0, pytest.approx(2.0, abs=0.001)]


@pytest.mark.parametrize(
    ("ended", "left", "quiet"), [(552.0, [], 540.0), (22.0, [7], 10.0), (None, [7], 0.0)]
)
def test_what_ended_before_the_last_seconds_is_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ended: float | None, left: list[int], quiet: float
) -> None:
    """The only process had ended after 12 s: 9 minutes before the run did, 10 s before, or with it."""
    clock = FakeClock(monkeypatch)
    folder, kept = RunFolder.create(tmp_path / "run"), Window(15.0)
    clock.now = 12.0
    one = Recording(process(7), "cpu", "async-profiler", "ctimer", 10**7, Samples(1, 1, 0), 12.0, 0.01)
    one = FolderSink(folder, kept).profile(HOST, one, part(clock.began, 8.0), False)
    gone = Outcome("node", Status.OK, "record", pid=7, gone=True)
    clock.now = ended or 12.0
    host = HostRecord(name="node", recordings=(one,), outcomes=(gone,))
    last = kept.cut(folder, [host], None if ended is None else clock.began + ended)
    assert last is not None
    assert (
        [one.pid for one in last.hosts[0].recordings] == left == [one.pid for one in last.hosts[0].outcomes]
    )
    assert last.quiet == pytest.approx(quiet, abs=0.1) and last.recorded == pytest.approx(clock.now, abs=0.1)
    assert last.seconds == pytest.approx(min(15.0, clock.now), abs=0.1)
    if left:
        assert last.hosts[0].recordings[0].ended == pytest.approx(last.seconds - quiet, abs=0.1)


def test_a_run_that_is_killed_has_the_last_seconds_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Process 8 ended long before; 9 joined after half a minute."""
    clock = FakeClock(monkeypatch)
    folder, kept = RunFolder.create(tmp_path / "run"), Window(20.0)
    sink = FolderSink(folder, kept)
    ended = Outcome("node", Status.OK, "record", pid=8, gone=True)
    recordings: dict[int, Recording] = {}
    for pid, at in ((8, 0.0), (7, 0.0), (7, 10.0), (7, 20.0), (7, 30.0), (9, 32.0), (7, 40.0)):
        one = Recording(process(pid), "cpu", "async-profiler", "ctimer", 10**7, Samples(1, 1, 0), 10.0, 0.01)
        clock.now = at + 10.0
        came = sink.profile(HOST, replace(one, joined=at), part(clock.began + at, 1.0), True)
        recordings[pid] = recordings[pid].with_part(came) if pid in recordings else came
        host = HostRecord(name="node", recordings=tuple(recordings.values()), outcomes=(ended,))
        (now,) = kept.figures(folder, [host])
        assert {one.pid for one in now.recordings} == recordings.keys()
    clock.now = 50.1
    (now,) = kept.figures(folder, [host])
    assert now.outcomes == () and not Parts(folder.profile_path("node", 8, "cpu"))
    seven, nine = now.recordings
    assert (seven.joined, seven.seconds) == (0.0, 40.0), "the first part is too old"
    assert nine.joined == pytest.approx(22, abs=0.05)


class FakeClock:
    """Of the arrival of parts."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now, self.began = 0.0, time.time() - 50
        monkeypatch.setattr(window, "time", self)

    def monotonic(self) -> float:
        return self.now

    def time(self) -> float:
        return self.began + self.now


def test_metrics_since_a_moment() -> None:
    times = (10 * SECOND, SECOND, SECOND, SECOND)
    series = (
        Series("host", "", "whole", "counter", "count", (5, 1, 2, 3)),
        Series("host", "", "same", "gauge", "count", (5, 1)),
        Series("host", "", "gone", "gauge", "count", (5, None)),
        Series("host", "", "late", "gauge", "count", (None, None, None, 7)),
        Series("host", "", "hole", "gauge", "count", (5, None, None, 2)),
    )
    later = Metrics(1.0, times, {}, series).since(12 * SECOND + 1)
    assert list(later.time) == [12 * SECOND, SECOND]
    assert {one.name: list(one.values) for one in later.series} == {
        "whole": [8, 3],
        "same": [6],
        "gone": [],
        "late": [None, 7],
        "hole": [None, 7],
    }


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--engine", "perf"], "--engine perf"),
        (["--keep-raw"], "--keep-raw"),
        (["--no-timeline"], "--no-timeline"),
        (["-e", "live"], "-e live"),
        (["-e", "cpu,nativelive"], "-e nativelive"),
        (["-t", "30"], "not less"),
    ],
)
def test_what_has_no_last_seconds_is_refused(words: list[str], why: str) -> None:
    with pytest.raises(HprofilerError, match=why):
        chosen.sampling(parse(["-j", "x", "--keep-last", "60", *words]))


@pytest.mark.parametrize(
    ("words", "note", "patience"),
    [
        ([], "until 'cpu > 3' or Ctrl-C, for at most 4.0 h", threading.TIMEOUT_MAX),
        (["--wait", "60"], "waiting for the first process, and until 'cpu > 3', for at most 60 s", 60.0),
    ],
)
def test_how_long_a_condition_is_waited_for_beside_a_recording(
    words: list[str], note: str, patience: float, capsys: pytest.CaptureFixture[str]
) -> None:
    options = parse(["-j", "x", "--when", "cpu > 3", "--keep-last", "60", *words])
    chosen.print_limits(options)
    assert note in capsys.readouterr().err
    assert chosen.joining(options, ANY)["patience"] == patience


def test_how_long_is_recorded_at_most() -> None:
    for words, seconds in (([], 4 * 3600.0), (["-t", "600"], 600.0), (["-t", "job:8h"], 8 * 3600.0)):
        options = parse(["-j", "x", *words, "--keep-last", "60"])
        sampling = chosen.sampling(options)
        assert (sampling.duration, sampling.part) == (seconds, 10.0)
