"""Stragglers and their causes, in stages with one slow task of a known cause."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from hprofiler.analysis.spark.account import account
from hprofiler.analysis.spark.findings import judge, spark_findings
from hprofiler.analysis.spark.words import sentence
from hprofiler.report.spark.blocked import blocked_part, straggler_part
from hprofiler.report.spark.record import stragglers_record
from hprofiler.report.spark.text import headline
from hprofiler.spark.application import LOCALITIES, RUNNING
from hprofiler.spark.figures import figures
from hprofiler.spark.replay.blocked import blocked_time
from hprofiler.spark.replay.schedule import Gain, Replay
from hprofiler.spark.replay.stragglers import Stragglers, stragglers
from tests.unit.spark_application import START, Made

Task = tuple[int, int, dict[str, int]]


def analyzed(made: Made) -> Stragglers:
    return stragglers(made.application, Replay(made.application))


def one_stage(tasks: list[Task], **cores: int) -> Stragglers:
    """The stragglers of a stage with these tasks, on hosts `host-a`, `host-b`."""
    made = Made(**(cores or {"a": 16, "b": 16}))
    end = max(launch + time for launch, time, _ in tasks)
    made.job(0, 0, end, (0,))
    made.stage(0, 0, end, tasks)
    return analyzed(made)


# Nine of ten tasks read 1000 bytes in 1 s; before them, one ended on each executor.
def usual(count: int = 9, **more: int) -> list[Task]:
    earlier: list[Task] = [(0, 1000, {"input_bytes": 1000, "executor": number, **more}) for number in (0, 1)]
    later: list[Task] = [
        (1000, 1000, {"input_bytes": 1000, "executor": number % 2, **more}) for number in range(count - 2)
    ]
    return [*earlier, *later]


def slow(**more: int) -> Task:
    return (1000, 4000, {"input_bytes": 1000, "tid": 77, **more})


def test_a_task_that_reads_more_is_none() -> None:
    assert one_stage([*usual(), (1000, 4000, {"input_bytes": 4000})]).count == 0


def test_a_slow_task_and_what_it_costs() -> None:
    found = one_stage([*usual(), slow()])
    ((task, gain),) = found.worst
    assert (task.tid, task.host, task.times, task.lost, task.causes) == (77, "host-a", 4.0, 3000, ())
    # All slots are free in the replay: it takes 4 s of 5 s, and 1 s without the straggler, which lost 3 s.
    (stage,) = found.stages
    assert gain and stage.gain and gain.time == stage.gain.time == found.gain.time == 3000
    assert stage.by_bytes and stage.stragglers == 1


def test_without_input_rates_are_durations() -> None:
    tasks = [(0, 1000, {"executor": number % 2}) for number in range(5)]
    found = one_stage([*tasks, (0, 1600, {})])
    assert not found.stages[0].by_bytes and found.count == 1


@pytest.mark.parametrize(
    ("cause", "columns"),
    [
        ("gc", {"gc_time": 3500}),
        ("shuffle read", {"fetch_wait": 3000}),
        ("shuffle write", {"shuffle_write_time": 2_600_000_000}),
        ("scheduler", {"run_time": 1000}),
        ("output", {"shuffle_write_bytes": 4000}),
        ("spill", {"disk_spilled": 9}),
        ("locality", {"locality": LOCALITIES.index("ANY")}),
        ("cpu", {"cpu_time": 1_000_000_000}),
    ],
)
def test_causes(cause: str, columns: dict[str, int]) -> None:
    normal = {"shuffle_write_bytes": 1000, "cpu_time": 900_000_000, "gc_time": 50}
    found = one_stage(
        [*usual(**normal), slow(**{"cpu_time": 3_600_000_000, "shuffle_write_bytes": 1000, **columns})]
    )
    assert [task.causes for task, _ in found.worst] == [(cause,)]


def test_time_that_all_spend_is_no_cause() -> None:
    """Without the fetches, the slow task is as much slower than the others."""
    found = one_stage([*usual(fetch_wait=900), slow(fetch_wait=3600)])
    assert [task.causes for task, _ in found.worst] == [()]


def test_cold_tasks_are_like_one_another() -> None:
    cold = [(0, 2000, {"input_bytes": 1000, "executor": number}) for number in (0, 1)]
    warm = [(2000, 1000, {"input_bytes": 1000, "executor": number % 2}) for number in range(8)]
    found = one_stage([*cold, *warm])
    assert [task.causes for task, _ in found.worst] == [("cold",), ("cold",)]
    waves = found.stages[0].waves
    assert (waves.first, waves.later, waves.times) == (2, 8, 2.0)


def test_a_task_on_a_slot_that_had_one_is_none_of_the_first() -> None:
    """The driver launches it 3 ms before it notes the end of the last task there."""
    first = [(0, 1003, {"input_bytes": 1000, "run_time": 990, "executor": number}) for number in (0, 1)]
    later = [(1000, 1000, {"input_bytes": 1000, "executor": number}) for number in (0, 1)]
    slow_one = (2000, 4000, {"input_bytes": 1000, "executor": 0})
    waves = one_stage([*first, *later, slow_one], a=1, b=1).stages[0].waves
    assert (waves.first, waves.later) == (2, 3)


def test_a_task_that_still_runs() -> None:
    """Its metrics are not known yet; other tasks have only begun, which makes nobody slow."""
    made = Made(a=16, b=16)
    running = {"status": RUNNING, "run_time": 0, "cpu_time": 0}
    began: list[Task] = [(4900, 0, running) for _ in range(20)]
    normal = usual(9, cpu_time=900_000_000)
    made.stage(0, 0, 0, [*normal, *began, (1000, 0, {**running, "tid": 77})])
    made.job(0, 0, 0, (0,))
    stage, job = made.application.stages[0, 0], made.application.jobs[0]
    stage.end = job.end = 0
    made.application.last_event = START + 5000
    replay = Replay(made.application)
    assert replay.measured == 5000
    found = stragglers(made.application, replay)
    ((task, gain),) = found.worst
    assert (task.tid, task.duration, task.running, task.causes) == (77, 4000, True, ())
    assert gain and gain.time == 3000
    assert "executor a on host-a: 4 s so far, still running, 4.0 x" in straggler_part(found).text
    assert "on host-a, still running, costs 3 s" in sentence(
        spark_findings(account(made.application, replay), found, replay, {})
    )
    made.application.end = START + 5000
    assert analyzed(made).count == 0, "of an ended application its end was lost"


def test_nobody_is_slower_than_no_time() -> None:
    made = Made(a=4)
    made.job(0, 0, 0, (0,))
    made.stage(0, 0, 0, [*[(0, 0)] * 3, (0, 0, {"status": RUNNING})])
    stage, job = made.application.stages[0, 0], made.application.jobs[0]
    stage.end = job.end = 0
    made.application.last_event = START + 5000
    assert analyzed(made).count == 0


def test_a_slow_host() -> None:
    tasks = [(0, 1000, {"executor": number % 2, "input_bytes": 1000}) for number in range(10)]
    slow_ones = [(0, 3000, {"executor": 2, "input_bytes": 1000}) for _ in range(3)]
    found = one_stage([*tasks, *slow_ones], a=8, b=8, c=8)
    assert found.count == 3
    assert all("host" in task.causes and task.host == "host-c" for task, _ in found.worst)


def test_a_host_is_not_slow_because_the_tasks_of_another_read_nothing() -> None:
    tasks = [(0, 1000, {"executor": 0, "input_bytes": 1000}) for _ in range(9)]
    nothing = [(0, 1000, {"executor": 1, "input_bytes": 0}) for _ in range(4)]
    found = one_stage([*tasks, *nothing, slow(executor=0)])
    assert [("host" in task.causes, task.host) for task, _ in found.worst] == [(False, "host-a")]


def test_few_tasks_and_tasks_without_input() -> None:
    assert one_stage([(0, 100, {}), (0, 900, {})]).count == 0
    found = one_stage([*usual(), slow(), (0, 5000, {"input_bytes": 0})])
    assert found.count == 1 and found.stages[0].without_rate == 1


def test_a_failed_job_comes_first() -> None:
    made = Made(a=1)
    made.job(0, 0, 100, (0,))
    made.job(1, 100, 200, (1,))
    made.stage(0, 0, 100, [(0, 100)])
    made.stage(1, 100, 200, [(100, 100)], job=1)
    made.application.jobs[1].status = "FAILED"
    made.application.stages[
        1, 0
    ].failure = "most recent failure: Lost task 0.0 (TID 1) (n1): a.Full: no disk\n\tat x"
    found = judge(made.application, Replay(made.application)).findings
    assert sentence(found).startswith("1 of 2 jobs failed in stage 1.0: a.Full: no disk; stage 0.0 takes 50%")
    assert found[0].code == "job-failed" and found[0].parameters["stage"] == 1


def test_a_task_that_reads_far_more_is_named() -> None:
    made = Made(a=8)
    made.job(0, 0, 400, (0,))
    made.stage(0, 0, 400, [*[(0, 100, {"input_bytes": 10})] * 5, (0, 400, {"input_bytes": 170, "tid": 77})])
    assert "its task 77 reads 17 x the median" in sentence(
        judge(made.application, Replay(made.application)).findings
    )
    made.stage(0, 0, 400, [*[(0, 100, {"input_bytes": 10})] * 5, (0, 400, {"input_bytes": 50})])
    assert "reads" not in sentence(judge(made.application, Replay(made.application)).findings)


def test_an_application_without_a_stage() -> None:
    made = Made(a=8)
    assert headline(made.application, figures(made.application), ())[1] == "No stage has started yet."


def test_cores_are_those_at_once() -> None:
    made = Made(a=4)
    for number in range(5):
        made.executor(str(number), 4, added=number * 10, removed=number * 10 + 10)
    assert made.application.most_cores == 8
    (first, *_) = headline(made.application, figures(made.application), ())
    assert first.endswith("on 6 executors with at most 8 cores at once")


def test_record() -> None:
    record = msgspec.json.decode(msgspec.json.encode(stragglers_record(one_stage([*usual(), slow()]))))
    assert record["count"] == 1 and record["tasks"][0]["taskId"] == 77
    assert record["stages"][0]["laterWaves"]["tasks"] == 8
    assert stragglers_record(analyzed(Made()))["stages"] == []


def test_what_stands_out_is_one_sentence() -> None:
    made = Made(a=2, b=2)
    made.executor("c", 1, host="node7")
    made.job(0, 0, 10_000, (14, 15))
    fetch = {"fetch_wait": 2600, "input_bytes": 1000}
    made.stage(14, 0, 6100, [(0, 6000, {**fetch, "executor": 2, "gc_time": 100}), *[(0, 3000, fetch)] * 4])
    made.stage(15, 6100, 10_000, [(6100, 3900)], parents=(14,))
    replay = Replay(made.application)
    blocked, found = blocked_time(made.application, replay), stragglers(made.application, replay)
    made_account = account(made.application, replay)
    findings = spark_findings(made_account, found, replay, {})
    assert [one.code for one in findings] == ["stage-share", "stage-wait", "straggler"]
    assert findings[1].parameters["what"] == "fetch" and findings[2].seconds == 3
    assert sentence(findings) == (
        "Stage 14.0 takes 61% of the time, 51% of that with few tasks; 72% of its task time is shuffle "
        "fetch; the straggler on node7 costs 3 s."
    )
    text = blocked_part(blocked).text + straggler_part(found).text
    assert "network: waits for shuffle blocks" in text and "never add up" in text
    assert "task 14000 of stage 14.0, executor c on node7: 6 s, 2.0 x the median" in text
    task, gain = found.worst[0]
    assert gain is not None
    short = replace(found, worst=((task, replace(gain, time=900.0)),))
    assert len(spark_findings(made_account, short, replay, {})) == 2, (
        "under a second it is not worth a sentence"
    )
    cheap = straggler_part(replace(found, gain=Gain(0.009, 90.0)))
    assert not cheap.blocks and cheap.title.endswith("cost the job at most 90 ms (0.90%)")
