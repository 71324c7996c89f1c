"""What Spark knows: its REST interface and its event logs, and which stage ran when."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from hprofiler.spark.facts import (
    DriverClock,
    SparkError,
    SparkFacts,
    Tasks,
    facts_of,
    read_facts,
    write_facts,
)
from hprofiler.spark.log.files import local_files
from hprofiler.spark.log.reading import read_application
from hprofiler.spark.rest import application as rest_application
from hprofiler.spark.rest import server as rest
from hprofiler.spark.rest.application import fetch_application
from hprofiler.spark.rest.server import Answer, driver_clock
from hprofiler.spark.windows import SEVERAL, assignment, stage_times
from tests.unit.spark_application import ANSWERS, ID, LOG

BEGIN, END = 1795693731.0, 1795693737.0


def no_clock(driver: str) -> None:
    """The driver's host was not visited."""


def driver(answers: Mapping[str, Any] = ANSWERS) -> rest.Ask:
    """A driver that pages as Spark does."""

    def ask(path: str, parameters: Mapping[str, str]) -> Answer:
        content = answers.get(path, {})  # of SQL and the environment
        if path.endswith("taskList") and isinstance(content, list):
            offset, length = int(parameters["offset"]), int(parameters["length"])
            content = content[offset : offset + length]
        return Answer(content, BEGIN, BEGIN)

    return ask


def by_rest(answers: Mapping[str, Any] = ANSWERS) -> SparkFacts:
    return facts_of(fetch_application(driver(answers), ID), BEGIN, END, no_clock)[0]


def by_log(path: Path = LOG) -> SparkFacts:
    return facts_of(read_application(local_files(path)), BEGIN, END, no_clock)[0]


def finished(facts: SparkFacts) -> list[tuple[int, ...]]:
    return sorted(row for tasks in facts.tasks.values() for row in tasks.rows() if row[4])


# Sources


def test_a_driver_and_its_event_log_say_the_same() -> None:
    asked, read = by_rest(), by_log()
    known = finished(asked)
    assert [row[:3] for row in known] == [(0, 0, 0), (1, 0, 0), (2, 1, 0), (3, 1, 0), (4, 2, 0), (5, 2, 0)]
    assert all(row[5] > 100_000_000 for row in known)
    assert [row for row in finished(read) if row[1] < 3] == known
    over = {one for one in asked.stages if one.to}
    assert over == {one for one in read.stages if one.id < 3}
    assert {one.name for one in over} == {"count at SparkStages.java:52", "collect at SparkStages.java:51"}
    assert {one.description for one in asked.jobs} == {one.description for one in read.jobs}
    for facts in (asked, read):
        assert (facts.application, facts.name, facts.version) == (ID, "stages-together", "3.5.6")
        assert facts.driver == "127.0.0.1" and [one.id for one in facts.executors] == ["driver"]


def test_tasks_that_still_run_have_no_end() -> None:
    assert [row[:2] for row in by_rest().tasks["driver"].rows() if not row[4]] == [(6, 3), (7, 3)]
    assert {one.id for one in by_rest().stages if not one.to} == {3, 4}
    assert sorted(row[0] for row in by_log().tasks["driver"].rows() if not row[4]) == [7, 8, 9]


def test_pages_of_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rest_application, "_PAGE", 1)
    assert finished(by_rest()) == finished(by_log())[:6]


def test_a_driver_that_answers_slowly_gives_the_newest_stages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each answer takes a second; there is time for those before the tasks, and for two stages."""
    clock = FakeTime(0.0, 0.5)
    for module in (rest, rest_application):
        monkeypatch.setattr(module, "time", clock)
    application = fetch_application(clock.ask, ID, 7.5)
    assert [note.code for note in application.notes] == ["too-slow", "by-rest"]
    with_tasks = [stage.id for stage in application.stages.values() if len(stage.tasks)]
    assert with_tasks == [3], "stage 4 has none yet"
    assert [note.code for note in facts_of(application, BEGIN, END, no_clock)[1]] == ["too-slow"]


def test_the_only_application_need_not_be_named() -> None:
    assert fetch_application(driver(), None).id == ID
    two = [{"id": "app-1"}, {"id": "app-2"}]
    with pytest.raises(SparkError, match=r"2 applications \(app-1, app-2"):
        fetch_application(driver({**ANSWERS, "/applications": two}), None)
    with pytest.raises(SparkError, match="no Spark application"):
        fetch_application(driver({**ANSWERS, "/applications": [{"id": "../x"}]}), None)


def test_only_what_ran_during_the_recording_is_kept() -> None:
    application = fetch_application(driver(), ID)
    facts = facts_of(application, BEGIN + 3600, END + 3600, no_clock)[0]
    assert {one.id for one in facts.stages} == {3, 4}, "they have not ended"
    assert not finished(facts)


@pytest.mark.parametrize("wrong", [None, 5, "x", [], {}, [None, 1, "x", {"stageId": "0", "taskId": -1}]])
def test_answers_of_a_wrong_shape(wrong: object) -> None:
    for path in ANSWERS:
        if path != "/applications":
            by_rest({**ANSWERS, path: wrong} if path != f"/applications/{ID}" else ANSWERS)


def test_lines_that_are_damaged_are_counted(tmp_path: Path) -> None:
    lines = LOG.read_bytes().splitlines(keepends=True)
    bad = [
        b"\n",
        b"garbage\n",
        b'{"Event":"SparkListenerTaskEnd","Stage ID":"x"}\n',
        b'{"Event":"SparkListenerTaskEnd","Task Info":null}\n',
        b'{"Event":"SparkListenerJobStart"}\n',
        b'{"Event":"org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionStart","x":1}\n',
        b'{"Event":"SparkListenerStageCompleted"' + b"[" * 5000 + b"\n",
    ]
    cut = tmp_path / "log.inprogress"
    cut.write_bytes(b"".join([*lines[:20], *bad, *lines[20:-1], lines[-1][:50]]))
    facts = by_log(cut)
    assert facts.damaged == 4, "the last line of a running log is cut, not damaged"
    assert finished(facts) == finished(by_log())


def test_a_task_whose_end_was_lost_ends_with_its_stage(tmp_path: Path) -> None:
    kept = [line for line in LOG.open() if not ("TaskEnd" in line and '"Task ID":2,' in line)]
    (tmp_path / "log").write_text("".join(kept))
    (task,) = [row for row in by_log(tmp_path / "log").tasks["driver"].rows() if row[0] == 2]
    (stage,) = [one for one in by_log().stages if one.id == 1]
    assert task[4] == stage.to > 0


def test_rolling_logs(tmp_path: Path) -> None:
    lines = LOG.read_text().splitlines(keepends=True)
    folder = tmp_path / f"eventlog_v2_{ID}"
    folder.mkdir()
    for number, part in ((2, lines[:10]), (9, lines[10:30]), (10, lines[30:])):
        (folder / f"events_{number}_{ID}").write_text("".join(part))
    (folder / f"events_1_{ID}").write_text("old")
    (folder / f"events_2_{ID}").rename(folder / f"events_2_{ID}.compact")
    (folder / f"events_2_{ID}").write_text("old")
    (folder / f"appstatus_{ID}.inprogress").touch()
    facts = by_log(folder)
    assert (facts.damaged, finished(facts)) == (0, finished(by_log()))


def test_what_is_no_event_log(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    for path, reason in (("empty", "not an event log"), ("none", "does not exist")):
        with pytest.raises(SparkError, match=reason):
            by_log(tmp_path / path)
    (tmp_path / "application_1_1").write_bytes(LOG.read_bytes())
    assert by_log(tmp_path).application == by_log().application, "the only log"
    (tmp_path / "application_1_2").touch()
    with pytest.raises(SparkError, match="not the event log of one application") as folder:
        by_log(tmp_path)
    assert folder.value.remedy == f"name one log: {tmp_path / 'application_1_1'}"


class FakeTime:
    """A driver's clock that is ahead of ours by `ahead`, and answers after `way` seconds."""

    def __init__(self, ahead: float, way: float) -> None:
        self.now, self.ahead, self.way = BEGIN + 0.37, ahead, way

    def time(self) -> float:
        return self.now

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def ask(self, path: str, parameters: Mapping[str, str]) -> Answer:
        sent = self.now
        self.now += self.way
        date = (self.now + self.ahead) // 1
        self.now += self.way
        return Answer(driver()(path, parameters).content, sent, self.now, date)


def test_the_clock_of_the_drivers_host_is_taken() -> None:
    known = DriverClock(0.1, 0.0)
    asked: list[str] = []
    application = fetch_application(driver(), ID)

    def clock_of(driver: str) -> DriverClock:
        asked.append(driver)
        return known

    assert facts_of(application, BEGIN, END, clock_of)[0].clock == known
    application = read_application(local_files(LOG))
    assert facts_of(application, BEGIN, END, clock_of)[0].clock == known
    assert asked == ["127.0.0.1", "127.0.0.1"]


@pytest.mark.parametrize("ahead", [-7.771, 0.0, 0.004, 3.2])
def test_the_drivers_clock_is_measured_by_its_answers(monkeypatch: pytest.MonkeyPatch, ahead: float) -> None:
    clock = FakeTime(ahead, 0.002)
    monkeypatch.setattr(rest, "time", clock)
    found = driver_clock(clock.ask, ID)
    assert found is not None and found.uncertainty < 0.02
    assert abs(found.offset - ahead) <= found.uncertainty


def test_the_recording_is_found_by_the_drivers_clock() -> None:
    """An hour ahead of ours."""
    application = read_application(local_files(LOG))
    since, until = BEGIN - 3600, END - 3600
    facts = facts_of(application, since, until, lambda driver: DriverClock(3600.0, 0.0))[0]
    assert finished(facts) == finished(by_log())


def test_facts_are_read_as_they_were_written(tmp_path: Path) -> None:
    facts = msgspec.structs.replace(by_rest(), clock=DriverClock(0.5, 0.001, "x"))
    assert read_facts(tmp_path) is None
    write_facts(facts, tmp_path)
    assert read_facts(tmp_path) == facts
    written = json.loads((tmp_path / "spark.json").read_text())
    for wrong in ({**written, "format": 7}, {**written, "tasks": {"1": {"tid": [1]}}}, [], {"jobs": 5}):
        (tmp_path / "spark.json").write_text(json.dumps(wrong))
        with pytest.raises(SparkError, match=r"spark\.json cannot be read"):
            read_facts(tmp_path)


# Windows


SAME_CLOCK = DriverClock(0.0, 0.0)


def of_tasks(
    *tasks: tuple[int, float, float], clock: DriverClock | None = SAME_CLOCK, read: float = 100.0
) -> SparkFacts:
    """One executor's tasks: stage, launch and finish in seconds (0: it runs). They never wait."""
    columns = Tasks()
    for number, (stage, launch, finish) in enumerate(tasks):
        cpu = round(max(0.0, finish - launch) * 1e9)
        columns.add(number, stage, 0, round(launch * 1000), round(finish * 1000), cpu)
    return SparkFacts(clock=clock, tasks={"1": columns}, read=round(read * 1000))


def slices(
    facts: SparkFacts, uncertainty: float = 0.0, start: float = 10.0
) -> list[tuple[int, int, str, bool]]:
    found = assignment(facts, "1", round(start * 1e6), 20_000, uncertainty)
    return [(begin, end, *found.slices[number - 1]) for begin, end, number in found.ranges]


def test_stages_one_after_the_other() -> None:
    facts = of_tasks((3, 10.1, 10.2), (3, 10.15, 10.3), (4, 10.4, 10.5), (9, 1, 2))
    assert slices(facts) == [(5, 16, "stage 3.0", True), (20, 26, "stage 4.0", True)]
    assert assignment(facts, "2", 0, 20_000, 0.0).ranges == ()


def test_a_bucket_with_two_stages_belongs_to_neither() -> None:
    facts = of_tasks((1, 10.0, 10.13), (2, 10.135, 10.3))
    assert slices(facts) == [
        (0, 6, "stage 1.0", True),
        (6, 7, SEVERAL, False),
        (7, 16, "stage 2.0", True),
    ]


def test_stages_at_the_same_time() -> None:
    facts = of_tasks((1, 10.0, 11.0), (2, 10.5, 12.0))
    assert slices(facts) == [
        (0, 25, "stage 1.0", True),
        (25, 51, SEVERAL, False),
        (51, 101, "stage 2.0", True),
    ]


def test_within_the_doubt_of_clocks_a_stage_is_likely() -> None:
    facts = of_tasks((1, 10.2, 10.4), (2, 10.5, 10.7), clock=DriverClock(0.0, 0.03))
    assert slices(facts, uncertainty=0.03) == [
        (7, 10, "stage 1.0", False),
        (10, 21, "stage 1.0", True),
        (21, 22, "stage 1.0", False),
        (22, 24, SEVERAL, False),
        (24, 25, "stage 2.0", False),
        (25, 36, "stage 2.0", True),
        (36, 39, "stage 2.0", False),
    ]


def test_the_drivers_clock_is_ahead() -> None:
    facts = of_tasks((1, 15.1, 15.2), clock=DriverClock(5.0, 0.0))
    assert slices(facts) == [(5, 11, "stage 1.0", True)]


def test_nothing_is_certain_without_the_drivers_clock() -> None:
    found = slices(of_tasks((1, 10.2, 10.4), clock=None))
    assert found == [(5, 26, "stage 1.0", False)]


def test_a_task_that_still_runs_lasts_until_it_was_read() -> None:
    assert slices(of_tasks((1, 9.0, 0), read=12.0)) == [(0, 101, "stage 1.0", True)]
    ahead = of_tasks((1, 14.0, 0), read=12.0, clock=DriverClock(5.0, 0.0))
    assert slices(ahead) == [(0, 101, "stage 1.0", True)]
    (time,) = stage_times(ahead, [("1", 9_000_000, 20_000_000)]).values()
    assert time.time == pytest.approx(3.0), "from 9 to 12 on our clock"


def test_cpu_time_by_sparks_own_count() -> None:
    facts = of_tasks((1, 9.0, 11.0), (1, 11.0, 12.0), (2, 11.0, 0), (3, 40.0, 41.0))
    times = stage_times(facts, [("1", 10_000_000, 20_000_000), ("2", 0, 1)])
    assert {name: (one.cpu, one.known) for name, one in times.items()} == {
        "stage 1.0": (2.0, 1.0),
        "stage 2.0": (0.0, 0.0),
    }
