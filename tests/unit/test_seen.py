"""What part of a job was recorded, of runs whose truth is known."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hprofiler.analysis.coverage import host_sampled, sampled
from hprofiler.analysis.facts import read_facts
from hprofiler.analysis.seen import Seen, seen
from hprofiler.analysis.spark.findings import judge
from hprofiler.base.time_range import TimeRange
from hprofiler.report.sections import event_of_page
from hprofiler.report.seen import seen_part, seen_record, seen_text
from hprofiler.spark.application import Application, Executor, Note, Stage, TaskTable
from hprofiler.spark.replay.schedule import Replay
from tests.viewer.made_run import record_of

ZERO = 1_700_000_000
"""When the recording begins."""


def recording(
    pid: int, joined: float, ended: float, cpu: float, age: float | None = 1.0, **labels: str
) -> dict[str, Any]:
    """Of a process with these labels, which used half a second of CPU time before."""
    name = f"task {labels['attempt']}" if "attempt" in labels else f"process {pid}"
    return {
        "process": {"pid": pid, "label": name, "labels": labels, "is_jvm": True},
        "event": "cpu",
        "joined": joined,
        "seconds": ended - joined,
        "age": age,
        "cpu_before": None if age is None else 0.5,
        "cpu_seconds": cpu,
        "totals": {"samples": 1, "cpu": round(cpu * 1e9)},
        "times": {"start": round((ZERO + joined) * 1e6), "width": 20_000},
    }


def host(name: str, *recordings: dict[str, Any], gone: tuple[int, ...] = (), **more: Any) -> dict[str, Any]:
    outcomes = [{"host": name, "pid": pid, "gone": True, "seconds": None} for pid in gone]
    return {"name": name, "recordings": list(recordings), "outcomes": outcomes, **more}


def attempt(name: str, where: str, started: float, ended: float, cpu: float, **more: Any) -> dict[str, Any]:
    labels = {"attempt": name}
    times = {"started": ZERO + started, "ended": ZERO + ended}
    return {"name": f"task {name}", "host": where, "labels": labels, "cpu_seconds": cpu, **times, **more}


def seen_of(*hosts: dict[str, Any], **members: Any) -> Seen:
    return seen(read_facts(record_of({"hosts": list(hosts), **members})))


@pytest.fixture(scope="module")
def mapreduce() -> Seen:
    """Of six attempts that count 40 s two were recorded, 18 s of them; and one that does not count."""
    refused = {"host": "n1", "pid": 9, "label": "task m_000003_0", "status": "failed", "reason": "refused"}
    first = host(
        "n1",
        recording(1, 0.0, 30.0, 2.0, age=20.0),
        recording(2, 2.0, 12.0, 9.0, attempt="m_000000_0"),
        gone=(2,),
    )
    first["outcomes"].append(refused)
    second = host(
        "n2.example",
        recording(3, 5.0, 16.0, 11.0, attempt="m_000001_1"),
        recording(4, 5.0, 6.0, 1.0, attempt="m_000001_0"),
        gone=(3, 4),
    )
    lost = {"name": "n3", "outcomes": [{"host": "n3", "status": "failed", "reason": "no route to host"}]}
    parts = [
        attempt("m_000000_0", "n1", 1.0, 12.0, 10.0),
        attempt("m_000001_0", "n2", 4.0, 6.0, 1.5, counts=False),
        attempt("m_000001_1", "n2", 4.0, 16.0, 9.0),
        attempt("m_000002_0", "n3", 4.0, 12.0, 6.0),
        attempt("m_000003_0", "n1", 4.0, 12.0, 5.0),
        attempt("m_000004_0", "n2", 20.0, 21.0, 0.5),
        attempt("m_000005_0", "n9", -30.0, -20.0, 9.5),
    ]
    return seen_of(first, second, lost, job={"manager": "mapreduce", "cpu_seconds": 40.0, "parts": parts})


def test_mapreduces_own_counters_are_the_whole(mapreduce: Seen) -> None:
    """A task counts at most what its counter says: the start of its JVM is not in there."""
    assert mapreduce.cpu is not None
    assert (mapreduce.cpu.recorded, mapreduce.cpu.whole, mapreduce.cpu.missed) == (18.0, 40.0, 21.0)
    assert mapreduce.cpu.share == pytest.approx(0.45)
    counted = {one.process.pid: one.cpu_counted for one in mapreduce.presences}
    assert counted == {1: None, 2: 10.0, 3: 9.0, 4: 1.5}


def test_what_was_missed_and_why(mapreduce: Seen) -> None:
    assert [(one.name, one.code, one.detail) for one in mapreduce.missed] == [
        ("task m_000002_0", "host-failed", "no route to host"),
        ("task m_000003_0", "not-recorded", "refused"),
        ("task m_000004_0", "too-short", ""),
    ]
    assert mapreduce.others == 1  # it ended before the recording began


def test_how_many_processes_there_were_over_time(mapreduce: Seen) -> None:
    """Recorded and not recorded, at the moments when that changes."""
    moments = [tuple(one) for one in mapreduce.moments]
    assert moments == [
        (0.0, 1, 0),
        (1.0, 1, 1),
        (2.0, 2, 0),
        (4.0, 2, 4),
        (5.0, 4, 2),
        (6.0, 3, 2),
        (12.0, 2, 0),
        (16.0, 1, 0),
        (20.0, 1, 1),
        (21.0, 1, 0),
        (30.0, 0, 0),
    ]


def test_the_terminal_the_page_and_json_have_the_same(mapreduce: Seen) -> None:
    text = seen_text(mapreduce)
    said = "hprofiler saw 45.0% of the CPU time of the job's tasks: 18.0 of 40.0 s by MapReduce's counters"
    assert f"{said}.\nTasks that were not recorded used 52.5%.\n" in text
    assert "3 of 4 processes joined during the recording:" in text
    assert "\n1 process of the job ended before the recording began, or started at its end.\n" in text
    assert "its host, or container, failed: no route to host" in text
    record = seen_record(mapreduce)
    assert record["cpu"] == {
        "counted_by": "mapreduce",
        "recorded_seconds": 18.0,
        "all_seconds": 40.0,
        "missed_seconds": 21.0,
        "share": pytest.approx(0.45),
    }
    part = seen_part(mapreduce, read_facts(record_of({}))).record()
    assert [block["kind"] for block in part["blocks"]] == ["lines", "timeline", "table"]
    lines, timeline, table = part["blocks"]
    assert said.replace("%", " %") in lines["texts"][0] and len(table["rows"]) == 3
    spans = {lane["name"]: lane["spans"] for lane in timeline["lanes"]}
    assert [(begin, end, label, state, mark) for begin, end, label, _, state, mark, _ in spans["n1"]] == [
        (0.0, 30.0, "process 1 (pid 1)", "", 0.0),
        (1.0, 12.0, "task m_000000_0 (pid 2)", "ended", 2.0),
        (4.0, 12.0, "task m_000003_0", "missed", 4.0),
    ]
    abouts = [about for *_, about in spans["n1"]]
    assert abouts[1].startswith(
        "task m_000000_0 (pid 2), started after 1 s, recorded from 2 s to 12 s, until"
    )
    assert abouts[2] == "task m_000003_0, not recorded: it could not be recorded"
    assert set(spans) == {"n1", "n2.example", "n3"}
    recorded, lived = (curve["values"] for curve in timeline["curves"])
    assert (max(recorded), max(lived)) == (4, 6)


def test_a_host_is_known_by_its_short_name_and_not_by_the_begin_of_an_address() -> None:
    hosts = host("n1.example", recording(1, 2.0, 30.0, 2.0)), host("10.0.0.5")
    parts = [
        {"name": name, "host": name, "labels": {"container": name}, "started": ZERO + 5}
        for name in ("N1", "10.0.0.7")
    ]
    found = seen_of(*hosts, job={"manager": "yarn", "parts": parts})
    codes = {one.name: one.code for one in found.missed}
    assert codes == {"N1": "nothing-recorded", "10.0.0.7": "host-not-visited"}


def test_by_the_kernel_where_nobody_else_counts() -> None:
    found = seen_of(
        host("n1", recording(1, 0.0, 30.0, 3.5, age=20.0), recording(2, 3.0, 9.0, 5.5), gone=(2,))
    )
    assert found.cpu is not None and found.cpu.counted_by == "processes"
    assert (found.cpu.recorded, found.cpu.whole, found.cpu.share) == (9.0, 10.0, 0.9)
    assert [one.started for one in found.presences] == [-20.0, 2.0]
    unknown = seen_of(host("n1", recording(1, 0.0, 30.0, 3.5), recording(2, 3.0, 9.0, 5.5, age=None)))
    assert unknown.cpu is None


def test_what_was_dropped_on_purpose_was_not_missed() -> None:
    assert seen_of(host("n1", recording(1, 0.0, 30.0, 3.5, age=2000.0)), last_of=2000.0).cpu is None


def test_what_was_not_sampled_was_not_seen() -> None:
    """Such as the time in the kernel where only user code may be sampled."""
    half = recording(1, 0.0, 30.0, 7.5)
    half["totals"]["cpu"] = 4 * 10**9
    found = seen_of(host("n1", half, gone=(1,)))
    assert found.cpu is not None and (found.cpu.recorded, found.cpu.whole) == (4.0, 8.0)


def test_mapreduce_is_not_believed_where_it_does_not_say_what_each_task_used() -> None:
    """A counter has not what the JVM used before its task was set up, which may be most of it."""
    one = host("n1", recording(1, 2.0, 30.0, 20.0, attempt="m_000000_0"))
    part = {"name": "task m_000000", "labels": {"attempt": "m_000000_0"}, "started": ZERO}
    found = seen_of(one, job={"manager": "mapreduce", "cpu_seconds": 25.0, "parts": [part]})
    assert found.cpu is not None and found.cpu.counted_by == "processes"


def test_where_all_are_there_all_the_time_there_is_nothing_to_say() -> None:
    found = seen_of(host("n1", recording(1, 0.0, 30.0, 3.5, age=20.0), recording(2, 0.0, 30.0, 5.5)))
    assert not seen_text(found) and not seen_part(found, read_facts(record_of({}))).title


def test_processes_that_follow_each_other_share_the_time_of_the_run() -> None:
    """Five of 4 s each, one after the other, and one on another host."""
    pids = range(1, 6)
    one = host("n1", *(recording(pid, 5.0 * (pid - 1), 5.0 * pid - 1, 0.7) for pid in pids), gone=tuple(pids))
    other = host("n2", recording(7, 8.0, 13.0, 1.0), gone=(7,))
    facts = read_facts(record_of({"hosts": [one, other], "sampling": {"duration": 24}}))
    assert facts.seconds == seen(facts).seconds == event_of_page(facts).seconds == 24
    assert sampled(facts) == "99 Hz for 24 s"
    assert host_sampled(facts, facts.hosts[1]) == "99 Hz for 5 of 24 s"
    assert replace(facts, time=TimeRange(3, 9), duration=6.0).seconds == 6


def test_what_the_manager_cannot_say() -> None:
    one = host("n1", recording(1, 2.0, 30.0, 20.0))
    found = seen_of(one, job={"manager": "yarn", "problem": "it did not answer"})
    assert "What the job counts is not known: it did not answer." in seen_text(found)


# Spark


def spark_seen(*notes: Note) -> Seen:
    """Executor 1 is recorded from the middle of its first task on, executor 2 never, for 4 of 12 s."""
    rows = [
        {"tid": 1, "executor": 0, "launch": 0, "finish": 4, "cpu_time": 3, "deserialize_cpu_time": 1},
        {"tid": 2, "executor": 0, "launch": 4, "finish": 8, "cpu_time": 4},
        {"tid": 3, "executor": 1, "launch": 4, "finish": 8, "cpu_time": 4},
    ]
    units = {"launch": (ZERO, 1000), "finish": (ZERO, 1000)}
    for row in rows:
        for name, value in row.items():
            start, unit = units.get(name, (0, 10**9 if "cpu" in name else 1))
            row[name] = (start + value) * unit
    stage = Stage(0, start=ZERO * 1000, end=(ZERO + 8) * 1000, status="COMPLETE", tasks=TaskTable.of(rows))
    executors = {
        "1": Executor("1", "n1", added=ZERO * 1000, cores=1),
        "2": Executor("2", "n2", added=(ZERO + 1) * 1000, removed=(ZERO + 8) * 1000, cores=1),
    }
    application = Application(
        id="app",
        start=ZERO * 1000,
        end=(ZERO + 8) * 1000,
        executors=executors,
        executor_ids=["1", "2"],
        stages={(0, 0): stage},
        notes=list(notes),
    )
    facts = read_facts(
        record_of(
            {"hosts": [host("n1", recording(1, 0.0, 8.0, 1.0), recording(2, 2.0, 8.0, 6.1, executor="1"))]}
        )
    )
    return seen(replace(facts, job=judge(application, Replay(application))))


def test_spark_counts_what_its_tasks_used_while_they_were_recorded() -> None:
    found = spark_seen()
    assert found.cpu is not None and found.cpu.counted_by == "spark"
    assert (found.cpu.recorded, found.cpu.whole, found.cpu.missed) == (6.0, 12.0, 4.0)
    assert [one.cpu_counted for one in found.presences] == [None, 8.0]
    (missed,) = found.missed
    assert (missed.name, missed.started, missed.ended, missed.cpu) == ("executor 2", 1.0, 8.0, 4.0)
    assert missed.code == "host-not-visited"


@pytest.mark.parametrize("code", ["tasks-not-kept", "driver-gone"])
def test_spark_is_not_asked_where_tasks_are_missing(code: str) -> None:
    found = spark_seen(Note(code, 1))
    assert found.cpu is not None and found.cpu.counted_by == "processes"


def test_why_a_pod_was_missed_that_was_visited() -> None:
    """And the time after the last process has ended belongs to the recording."""
    address = "default/etl-2/main"
    lost = {"host": "etl-2", "pid": 7, "status": "failed", "reason": "the container ended"}
    inside = host("etl-2", address=address, inside=True)
    inside["outcomes"].append(lost)
    first = host("etl-1", recording(1, 0.0, 9.0, 3.5), gone=(1,), address="default/etl-1/main", inside=True)
    labels = {"namespace": "default", "pod": "etl-2", "container": "main"}
    times = {"started": ZERO + 10.0, "ended": ZERO + 30.0}
    parts = [
        {"name": "etl-2", "host": address, "labels": labels, **times},
        {"name": "etl-3", "host": "default/etl-3/main", "labels": {**labels, "pod": "etl-3"}, **times},
    ]
    took = {"started": "2026-11-20T06:12:03+00:00", "finished": "2026-11-20T06:13:05+00:00"}
    found = seen_of(first, inside, job={"manager": "kubernetes", "parts": parts}, **took)
    assert found.seconds == 60.0
    assert [(one.code, one.detail) for one in found.missed] == [
        ("not-recorded", "the container ended"),
        ("host-not-visited", ""),
    ]
    assert found.cpu is not None and found.cpu.counted_by == "processes"
