"""Where an application's time went: parts that add up, of applications worked out by hand."""

from __future__ import annotations

from dataclasses import replace
from heapq import heappop, heappush
from pathlib import Path

import pytest

from hprofiler.analysis.spark.account import GROUPS, Account, account
from hprofiler.analysis.spark.findings import account_findings, judge
from hprofiler.analysis.spark.sweep import Late
from hprofiler.analysis.spark.words import finding_text, sentence
from hprofiler.app.spark_source import read_source
from hprofiler.report.spark.account import account_part, account_record, remedy_of, what_if_line
from hprofiler.spark.application import FAILED, KILLED
from hprofiler.spark.log.sql import SqlExecution
from hprofiler.spark.replay.schedule import Replay
from tests.unit.spark_application import LOG, START, Made

CASES = LOG.with_name("cases")


def of(made: Made, end: int) -> Account:
    made.application.end = START + end
    return account(made.application, Replay(made.application))


def parts(found: Account) -> dict[str, int]:
    assert sum(part.time for part in found.parts) == found.total
    return {part.code: part.time for part in found.parts if part.time}


def test_no_stage_before_between_and_after() -> None:
    made = Made()
    made.executor("a", 1, added=1000)
    made.job(0, 2000, 8000, (0, 1))
    made.stage(0, 2000, 4000, [(2000, 2000, {"cpu_time": 2_000_000_000})])
    made.stage(1, 7000, 8000, [(7000, 1000, {"cpu_time": 1_000_000_000})])
    made.application.sql[7] = SqlExecution(7, 7, start=START + 3000, end=START + 9000)
    found = of(made, 10_000)
    assert parts(found) == {
        "before-first-executor": 1000,
        "before-first-stage": 1000,
        "between-stages": 3000,
        "after-last-stage": 2000,
        "cpu": 3000,
    }
    between, after = found.part("between-stages"), found.part("after-last-stage")
    (gap,) = between.gaps
    assert (gap.before, gap.after, gap.query, between.in_queries) == ((0, 0), (1, 0), 7, 3000)
    assert (after.gaps[0].before, after.gaps[0].after, after.in_queries) == ((1, 0), None, 1000)
    (first,) = account_findings(found)
    assert (first.code, first.seconds) == ("no-stage", 7)
    assert finding_text(first) == (
        "no stage ran for 7 s of 10 s (70%), 1 s before the first executor came, 1 s before the first "
        "stage, 3 s between stages and 2 s after the last, longest 3 s in query 7 between stage 0.0 and "
        "stage 1.0"
    )


def test_a_stage_that_waits_for_executors() -> None:
    made = Made()
    made.executor("a", 1, added=9000)
    made.job(0, 1000, 10_000, (0,))
    made.stage(0, 1000, 10_000, [(9000, 1000)])
    assert parts(of(made, 10_000)) == {"before-first-stage": 1000, "no-executor": 8000, "other": 1000}


ON_TOP = {
    "above-2-53": ("no-stage", "no stage ran for 2.0 s of 3.0 s"),
    "aqe-cancelled": ("stage-share", "Stage 2.0 (count at App.scala:2) takes 53%"),
    "caused-by": ("job-failed", "No space left on device"),
    "clock-back": ("no-stage", "no stage ran for 2 s of 3 s"),
    "deserialize": ("stage-share", "88% of its task time is deserialization"),
    "driver-gaps": ("no-stage", "No stage ran for 8.0 min of 8.7 min"),
    "event_log": ("work", "had tasks for 63% of the time"),
    "fifo-queued": ("stage-share", "Stage 0.0 (count at App.scala:0) takes 88%"),
    "gpu-slots": ("stage-share", "takes 94% of the time, 90% of that on a CPU"),
    "kill-9": ("stage-share", "1 executor lost by SIGKILL"),
    "lost-executor-reason": ("job-failed", "9.1 GB of 9 GB physical memory used"),
    "memory-killed": ("failed-tasks", "6 executors lost for memory"),
    "non-utf8": ("stage-share", "Stage 0.0 (count at App.scala:0) takes 71%"),
    "one-partition": ("narrow", "1 of its 200 tasks reads all of its data"),
    "one-task-stage": ("narrow", "which has 1 task for 128 slots"),
    "python-sqlstate": ("job-failed", "ValueError: bad record 17"),
    "resubmitted": ("work", "had tasks for 50% of the time, of that 66% on a CPU"),
    "root-cause": ("job-failed", "Java heap space"),
    "spill-few-partitions": ("spill", "298.0 GiB to disk in 8 tasks"),
    "sql-failed-in-driver": ("query-failed", "Could not execute broadcast in 300 secs"),
    "stage-retries": ("repeated-tasks", "after stage 1 failed 3 times"),
    "waits-for-executors": ("no-executor", "No executor was there for 10.0 min of 11.0 min"),
}
"""What stands first of each log, and a part of the sentence."""


@pytest.mark.parametrize(
    "log", [*sorted(filter(Path.is_file, CASES.iterdir())), LOG], ids=lambda log: log.stem
)
def test_the_largest_part_is_on_top(log: Path) -> None:
    application = read_source(str(log), None)
    judged = judge(application, Replay(application))
    ended = application.end if application.end > application.start else application.last_event
    assert sum(parts(judged.account).values()) == ended - application.start
    code, said = ON_TOP[log.stem]
    assert judged.findings[0].code == code and said.lower() in sentence(judged.findings).lower()


Task = tuple[int, int, dict[str, int]]


@pytest.mark.parametrize(
    ("tasks", "expected"),
    [
        ([(0, 1000)], {"one-task": 1000}),
        ([(0, 1000), (0, 1000)], {"few-tasks": 1000}),
        ([(0, 400)] * 11 + [(0, 1000)], {"other": 400, "tail": 600}),
        ([(0, 400)] + [(500, 500)] * 11, {"slow-launch": 400, "no-task": 100, "other": 500}),
    ],
)
def test_few_tasks_on_many_slots(tasks: list[Task], expected: dict[str, int]) -> None:
    made = Made(a=12)
    made.job(0, 0, 1000, (0,))
    made.stage(0, 0, 1000, tasks)  # type: ignore[arg-type]
    assert parts(of(made, 1000)) == expected


def again(launch: int, time: int, attempt: int = 0, **more: int) -> Task:
    """A try of the last of 12 tasks."""
    return launch, time, {"index": 11, "partition": 11, "attempt": attempt, **more}


@pytest.mark.parametrize(
    ("tries", "expected"),
    [
        # The last one takes 400 ms, as the other tasks do.
        (
            [again(0, 300, status=FAILED), again(300, 300, 1, status=FAILED), again(600, 400, 2)],
            {"retries": 600},
        ),
        ([again(0, 500, status=FAILED), again(500, 500, 1, status=FAILED)], {"retries": 600}),
        # It is slow, and failed once at the begin.
        ([again(0, 100, status=FAILED), again(100, 900, 1)], {"tail": 500, "retries": 100}),
        # Its output was lost.
        ([again(0, 600), again(800, 200, 1)], {"tail": 200, "no-task": 200, "retries": 200}),
        # A copy, as it was slow.
        ([again(0, 1000, status=KILLED), again(500, 500, 1, speculative=1)], {"tail": 600}),
    ],
)
def test_few_tasks_that_failed_or_were_tried_again(tries: list[Task], expected: dict[str, int]) -> None:
    made = Made(a=12)
    made.job(0, 0, 1000, (0,))
    made.stage(0, 0, 1000, [*[(0, 400)] * 11, *tries])
    made.application.stages[0, 0].num_tasks = 12
    found = of(made, 1000)
    assert {code: time for code, time in parts(found).items() if code in GROUPS["narrow"]} == expected


def test_a_stage_whose_tasks_were_all_killed() -> None:
    made = Made(a=12)
    made.job(0, 0, 1000, (0,))
    made.stage(0, 0, 1000, [(0, time, {"status": KILLED}) for time in (*[400] * 11, 1000)])
    assert parts(of(made, 1000)) == {"repeated": 400, "tail": 600}


def test_a_stage_that_is_repeated_for_few_of_its_tasks() -> None:
    made = Made(a=12)
    made.job(0, 0, 1000, (0,))
    made.stage(0, 0, 500, [*[(0, 400)] * 11, again(0, 500, status=FAILED)])
    made.stage(0, 600, 1000, [again(600, 400)], attempt=1)
    found = of(made, 1000)
    assert parts(found) == {"between-stages": 100, "repeated": 37, "other": 363, "retries": 500}
    assert found.part("retries").stages[0].attempts == (0, 1)
    narrow, *_ = account_findings(found)
    assert finding_text(narrow).endswith(
        "(50%), while tasks of stage 0 (attempts 0, 1) failed or were tried again"
    )
    assert "why tasks failed" in remedy_of(narrow)


def test_what_tasks_did_never_counts_twice() -> None:
    """Of 1000 ms: 100 of the scheduler, 50 deserialization; the pauses that the collector counts are more
    than is left of the run time."""
    made = Made(a=1)
    made.job(0, 0, 2000, (0,))
    did = {
        "run_time": 850,
        "deserialize_time": 50,
        "cpu_time": 400_000_000,
        "fetch_wait": 200,
        "gc_time": 5000,
    }
    made.stage(0, 0, 2000, [(0, 1000, {"status": FAILED}), (1000, 1000, {**did, "index": 0, "attempt": 1})])
    assert parts(of(made, 2000)) == {
        "repeated": 1000,
        "scheduler": 100,
        "deserialize": 50,
        "cpu": 400,
        "fetch": 200,
        "gc": 250,
    }


@pytest.mark.parametrize(
    ("measured", "expected"),
    [
        ({}, "90% of its task time is what Spark does not time: likely Python (timed in SQL only"),
        # By Spark 4.
        ({"python_time": 800}, "80% of its task time is Python workers"),
    ],
)
def test_python_that_spark_does_not_time(measured: dict[str, int], expected: str) -> None:
    made = Made(a=1)
    made.job(0, 0, 1000, (0,))
    made.stage(0, 0, 1000, [(0, 1000, {"cpu_time": 100_000_000, **measured})])
    made.application.stages[0, 0].python = True
    made.application.end = START + 1000
    stage, wait = judge(made.application, Replay(made.application)).findings
    assert (stage.code, wait.code) == ("stage-share", "stage-wait") and expected in finding_text(wait)
    assert "Arrow" in remedy_of(wait)


def test_python_of_many_stages() -> None:
    made = Made(a=1)
    did = {"cpu_time": 100_000_000}
    made.job(0, 0, 6000, (*range(6),))
    for number in range(6):
        made.stage(number, 1000 * number, 1000 * (number + 1), [(1000 * number, 1000, did)])
        made.application.stages[number, 0].python = number % 2 == 0
    made.application.end = START + 6000
    work = judge(made.application, Replay(made.application)).findings[0]
    assert work.code == "work" and "90% in what Spark does not time: likely Python" in finding_text(work)
    assert "Arrow" in remedy_of(work)


def test_a_moment_belongs_to_the_stage_that_has_the_slots() -> None:
    made = Made(a=4)
    made.job(0, 0, 9000, (0,))
    made.job(1, 0, 10_000, (1,))
    made.stage(0, 0, 9000, [(0, 9000)] * 4)
    made.stage(1, 0, 10_000, [(9000, 1000)] * 4, job=1)
    found = of(made, 10_000)
    assert list(found.of_stages) == [9000, 1000] and parts(found) == {"other": 10_000}
    stage = judge(made.application, Replay(made.application)).findings[0]
    assert (stage.code, stage.parameters["stage"], stage.parameters["share"]) == ("stage-share", 0, 0.9)


def test_stages_that_work_at_the_same_time_share_it_by_their_tasks() -> None:
    """Of two jobs side by side one has three times as many slots for 6 s, and all of them after that."""
    made = Made(a=8)
    made.job(0, 0, 9000, (0,))
    made.job(1, 0, 6000, (1,))
    made.stage(0, 0, 9000, [(0, 6000)] * 6 + [(6000, 3000)] * 8)
    made.stage(1, 0, 6000, [(0, 6000)] * 2, job=1)
    found = of(made, 9000)
    assert list(found.of_stages) == [7500, 1500] and parts(found) == {"other": 9000}


@pytest.mark.parametrize(
    ("last", "read", "said", "todo"),
    [
        (1000, {}, "", "as many tasks as there are slots"),
        (9000, {}, "", "skewJoin"),
        (9000, {"input_bytes": 900}, "reads 9 x the median", "split the input"),
        (9000, {"shuffle_local_bytes": 900}, "reads 9 x the median", "skewJoin"),
        (9000, {"shuffle_read_records": 900}, "reads 9 x the records of the median", "skewJoin"),
    ],
)
def test_why_the_last_task_of_a_stage_runs_alone(
    last: int, read: dict[str, int], said: str, todo: str
) -> None:
    made = Made(a=8)
    made.job(0, 0, 1000 + last, (0,))
    usual = dict.fromkeys(read, 100)
    made.stage(0, 0, 1000 + last, [*[(0, 1000, usual)] * 8, (1000, last, read)])
    found = judge(made.application, Replay(made.application)).findings
    narrow = next(one for one in found if one.code == "narrow")
    assert narrow.parameters["part"] == "tail" and todo in remedy_of(narrow)
    assert said in sentence(found)


def test_a_stage_that_mostly_has_one_task_is_spoken_of_once() -> None:
    """A tail of 4 s is less than the work of other stages, but most of its stage."""
    made = Made(a=8)
    made.job(0, 0, 11_000, (0, 1, 2))
    for number, start in ((0, 0), (1, 3000)):
        made.stage(number, start, start + 3000, [(start, 3000)] * 8)
    made.stage(2, 6000, 11_000, [*[(6000, 1000)] * 7, (6000, 5000)])
    made.application.end = START + 11_000
    found = judge(made.application, Replay(made.application)).findings
    assert sentence(found).startswith("Stage 2.0 takes 45% of the time, 80% of that with few tasks;")
    assert "narrow" not in {one.code for one in found}


def test_what_to_do_says_what_is_set_already() -> None:
    made = Made(a=8)
    made.job(0, 0, 10_000, (0,))
    made.stage(0, 0, 10_000, [*[(0, 1000)] * 7, (0, 10_000)])
    judged = judge(made.application, Replay(made.application))
    settings = {"spark.speculation": "true", "spark.app.name": "x"}
    text = account_part(judged.account, judged.findings, settings).text
    assert text.count("(already set: spark.speculation=true)") == 1


def test_damaged_applications() -> None:
    """Without a stage, without executors, with an end before the start, of which nothing has a time."""
    assert parts(of(Made(), 1000)) == {"before-first-stage": 1000}
    made = Made()
    made.stage(0, 100, 900, [(100, 800)])
    assert parts(of(made, 1000)) == {"before-first-stage": 100, "other": 800, "after-last-stage": 100}
    made.application.last_event = START + 900
    assert parts(of(made, -5000)) == {"before-first-stage": 100, "other": 800}
    nothing = Made()
    nothing.application.start = 0
    found = account(nothing.application, Replay(nothing.application))
    assert parts(found) == {} and not account_part(found, (), {}).title


def test_the_record_and_the_table_have_all_of_it() -> None:
    made = Made(a=4)
    made.job(0, 1000, 10_000, (0,))
    made.stage(0, 1000, 10_000, [(1000, 9000)])
    judged = judge(made.application, Replay(made.application))
    record = account_record(judged.account)
    assert record["total"] == sum(record["groups"].values()) == sum(part["time"] for part in record["parts"])
    assert [part["name"] for part in record["parts"]] == [code for codes in GROUPS.values() for code in codes]
    text = account_part(judged.account, judged.findings, {}).text
    assert "90.0%  many tasks: not timed by Spark" in text and "10.0%  no stage, before" in text


def test_sparklens_says_the_same_of_driver_and_executors() -> None:
    """Its test application: 15,975 ms, of which 483 in jobs by its definition (3.0 %)."""
    made = Made(driver=4)
    made.job(0, 12_265, 12_734, (0,))
    made.job(1, 13_953, 13_967, (1,))
    made.stage(0, 12_288, 12_729, [(12_454, 265), *[(12_474, 248)] * 3])
    made.stage(1, 13_954, 13_966, [(13_958, 7), *[(13_959, 6)] * 3], job=1)
    found = of(made, 15_975)
    driver = found.group("no-stage")
    assert abs(found.share(driver) - (1 - 483 / 15_975)) < 0.01


@pytest.mark.parametrize(
    ("stages", "slots", "expected"),
    # Sparklens' cases: n in a row take n on any number of slots; n at once and one after all of them.
    [(10, slots, time) for slots, time in zip(range(1, 12), (11, 6, 5, 4, 3, 3, 3, 3, 3, 2, 2), strict=True)]
    + [(10, 100, 2), (100, 100, 2)],
)
def test_more_slots_for_stages_that_run_at_once(stages: int, slots: int, expected: int) -> None:
    made = Made(a=1)
    made.job(0, 0, 1000 * (stages + 1), (*range(stages + 1),))
    for number in range(stages):
        made.stage(number, 0, 1000 * (number + 1), [(1000 * number, 1000)])
    last = 1000 * stages
    made.stage(stages, last, last + 1000, [(last, 1000)], parents=(*range(stages),))
    replay = Replay(made.application)
    assert replay.as_it_was == 1000 * (stages + 1) and replay.run(slots=slots) == 1000 * expected


@pytest.mark.parametrize("slots", [1, 2, 10])
def test_more_slots_for_stages_in_a_row(slots: int) -> None:
    made = Made(a=1)
    made.job(0, 0, 11_000, (*range(11),))
    for number in range(11):
        parents = (number - 1,) if number else ()
        made.stage(number, 1000 * number, 1000 * (number + 1), [(1000 * number, 1000)], parents=parents)
    assert Replay(made.application).run(slots=slots) == 11_000


def test_what_if() -> None:
    """8 tasks on 4 slots, of which one takes 3 s; 1 s of driver before, and one after."""
    made = Made(a=4)
    made.job(0, 1000, 5000, (0,))
    made.stage(0, 1000, 5000, [*[(1000, 1000)] * 4, *[(2000, 1000)] * 3, (2000, 3000)])
    made.application.end = START + 6000
    found = judge(made.application, Replay(made.application)).what_if
    assert found is not None and (found.as_it_was, found.slots, found.error) == (6000, 4, 0)
    assert found.times == {
        "twice-slots": 5000,
        "half-slots": 8000,
        "even-tasks": 4000,
        "ideal": 2000 + 10_000 / 4,
        "critical-path": 5000,
    }
    assert "6 s would be 5 s with twice the slots, with half 8 s; 4 s if no" in what_if_line(found).title
    rough = what_if_line(replace(found, error=-0.7))
    assert rough.title == "what if: not known, as the replay is -70.0% off what was measured"


def ramp(every: int, tasks: int) -> Made:
    """Four executors of a slot each, and tasks of 10 s. Each slot runs them from when it comes."""
    made = Made()
    slots = []
    for number in range(4):
        made.executor(str(number), 1, added=number * every)
        slots.append((number * every, number))
    ran = []
    for _ in range(tasks):
        launch, executor = heappop(slots)
        ran.append((launch, 10_000, {"executor": executor, "cpu_time": 10_000_000_000}))
        heappush(slots, (launch + 10_000, executor))
    end = max(launch for launch, _ in slots)
    made.job(0, 0, end, (0,))
    made.stage(0, 0, end, ran)  # type: ignore[arg-type]
    made.application.end = START + end
    return made


def test_executors_that_come_late() -> None:
    """72 tasks take 180 s on four slots; here these come within 180 s, and the tasks take 270 s."""
    made = ramp(60_000, 72)
    first, second, *_ = judge(made.application, Replay(made.application)).findings
    assert (first.code, first.seconds, second.code) == ("executors-late", 90, "stage-share")
    assert finding_text(first) == (
        "executors came late: for 3.0 min tasks waited with 2 of 4 slots on average; all from the start "
        "would save 90 s at most"
    )
    assert "initialExecutors" in remedy_of(first)


def test_executors_that_come_late_for_another_stage() -> None:
    """A long task has the only slot for 100 s."""
    made = Made(a=1)
    made.executor("b", 9, added=100_000)
    made.job(0, 0, 100_000, (0,))
    made.job(1, 0, 110_000, (1,))
    made.stage(0, 0, 100_000, [(0, 100_000)])
    made.stage(1, 0, 110_000, [(100_000, 10_000)] * 9, job=1)
    assert of(made, 110_000).late == Late(100_000, 100_000, 10)


@pytest.mark.parametrize(("every", "tasks"), [(3000, 72), (60_000, 1)])
def test_executors_that_nothing_waits_for(every: int, tasks: int) -> None:
    """They come within seconds, as usual; all tasks had a slot when they came."""
    made = ramp(every, tasks)
    judged = judge(made.application, Replay(made.application))
    assert "executors-late" not in [one.code for one in judged.findings]


def test_a_task_that_reads_all_of_it() -> None:
    made = Made(a=8)
    made.job(0, 0, 10_000, (0,))
    made.stage(0, 0, 10_000, [*[(0, 10)] * 199, (0, 10_000, {"input_bytes": 1 << 30})])
    judged = judge(made.application, Replay(made.application))
    text = sentence(judged.findings)
    assert (
        "while the last of the 200 tasks of stage 0.0 ran; 1 of its 200 tasks reads all of its data" in text
    )
    ((task, _),) = judged.stragglers.worst
    assert task.causes == ("data",)
