"""A report by Spark stage: samples of tasks' threads, by windows of tasks and by recorded names."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from hprofiler._flamegraph import Profile
from hprofiler.analysis.stages import StageShares
from hprofiler.app.spark_source import read_source
from hprofiler.cli import main
from hprofiler.model.measures import measure_of
from hprofiler.report import Report, make_report
from hprofiler.report.stages import spark_lanes, stages_record, stages_text
from hprofiler.resolve import YarnOptions
from hprofiler.runfolder import APPLICATION_FILE, RunFolder
from hprofiler.spark import application as whole
from hprofiler.spark.application import SUCCESS, Application, TaskTable
from hprofiler.spark.facts import (
    DriverClock,
    RecordedExecutor,
    RecordedJob,
    RecordedStage,
    SparkError,
    SparkFacts,
    Tasks,
    Waits,
    write_facts,
)
from hprofiler.spark.saved import save_application
from tests.timed_profile import Row, timed_profile
from tests.viewer.block import blocks, carried, described
from tests.viewer.made_run import MadeHost, changed, content_of, make_run

APP = "application_1700000000000_0042"
BEGIN = 1_800_000_000
POOL = "[Executor task launch worker for task N.N in stage N.N (TID N)]"
RUN = "org/apache/spark/executor/Executor$TaskRunner.run"
FIRST, SECOND = (POOL, RUN, "App.first"), (POOL, RUN, "App.second")
IDLE = (POOL, "java/util/concurrent/ThreadPoolExecutor.getTask", "park")
FETCH = (
    POOL,
    RUN,
    "org/apache/spark/storage/ShuffleBlockFetcherIterator.next",
    "java/util/concurrent/LinkedBlockingQueue.take",
)
MARK = ("[GC Thread#N]", "mark")


def tasks(*rows: tuple[int, float, float]) -> Tasks:
    """TIDs from 0: stage, launch and finish in seconds of the run; all of that is CPU time."""
    columns = Tasks()
    for tid, (stage, launch, finish) in enumerate(rows):
        begin, end = (round((BEGIN + moment) * 1000) for moment in (launch, finish))
        columns.add(tid, stage, 0, begin, end, (end - begin) * 1_000_000)
    return columns


# Stage 3 from second 1 to 3, stage 4 from 3 to 5 and, in part, at the same time as stage 5.
FACTS = SparkFacts(
    application=APP,
    read=(BEGIN + 60) * 1000,
    clock=DriverClock(0.0, 0.0),
    jobs=(RecordedJob(0, (BEGIN - 9) * 1000, (BEGIN + 3) * 1000, "first job", (3,)),),
    stages=(
        RecordedStage(3, 0, "collect at App.scala:42", (BEGIN + 1) * 1000, (BEGIN + 3) * 1000, 2),
        RecordedStage(4, 0, "count at App.scala:43", (BEGIN + 3) * 1000, 0, 1),
    ),
    tasks={"1": tasks((3, 1.0, 2.0), (3, 2.0, 2.99), (4, 3.0, 5.0), (5, 4.0, 4.5))},
)
ROWS = [
    Row(FIRST, 10),  # before any task
    *(Row(FIRST, bucket) for bucket in range(55, 145)),
    *(Row(IDLE, bucket) for bucket in range(55, 145)),
    *(Row(MARK, bucket) for bucket in range(55, 145)),
    *(Row(SECOND, bucket) for bucket in range(155, 245)),
]


def made_report(
    folder: Path,
    facts: SparkFacts | None = FACTS,
    rows: Sequence[Row] = ROWS,
    named: Sequence[tuple[str, bool]] = (),
    labels: dict[str, str] | None = None,
    slices: bool = True,
    event: str = "cpu",
) -> Report:
    """The report of one executor's time, 20 ms a sample."""
    made = {7: "x 1\n"}
    host = MadeHost("n1", made, events={event: made})
    run = make_run(folder, [host], events=(event,))
    keep(
        run,
        timed(rows, event, named),
        {"executor": "1", "application": APP} if labels is None else labels,
        event,
    )
    if facts is not None:
        write_facts(facts, folder)
    return make_report(folder, slices=slices)


def timed(
    rows: Sequence[Row],
    event: str = "cpu",
    named: Sequence[tuple[str, bool]] = (),
    nanoseconds: int = 20_000_000,
) -> bytes:
    """A profile whose samples stand for so many nanoseconds each."""
    made = [
        Row(row.stack, row.bucket, row.samples, (row.samples, nanoseconds * row.samples), row.slice)
        for row in rows
    ]
    return timed_profile(made, start=BEGIN * 1_000_000, slices=named, values=measure_of(event).columns)


def keep(
    run: RunFolder,
    content: bytes,
    labels: dict[str, str],
    event: str = "cpu",
    pid: int = 7,
    **members: object,
) -> None:
    """Store a profile with times in the place of the made one."""
    profile = Profile.from_bytes(content, "compact")
    run.times_path("n1", pid, event).write_bytes(content)
    profile.write(run.profile_path("n1", pid, event), "pprof", thread_label=True)
    with changed(run) as record:
        (recording,) = (one for one in record["hosts"][0]["recordings"] if one["process"]["pid"] == pid)
        recording.update(members)
        recording["process"]["labels"] = labels
        recording["seconds"], recording["interval"] = 10.0, 20_000_000
        recording["totals"] = {name: profile.total(name) for name, _ in profile.values}
        recording["times"] = {"start": BEGIN * 1_000_000, "width": 20_000}


def whole_application(late: int = 0) -> Application:
    """Of stage 3, whose tasks wait for shuffle blocks; it takes 4 of 5 seconds on two cores, from `late`
    seconds after the recording's start."""
    begin = (BEGIN + late) * 1000
    rows = []
    for tid, second in enumerate((1, 1, 3, 3)):
        times = {"launch": begin + 1000 * second, "finish": begin + 1000 * (second + 2), "run_time": 2000}
        ids = {"tid": tid, "index": tid, "partition": tid}
        rows.append({**ids, **times, "status": SUCCESS, "fetch_wait": 1500, "cpu_time": 500_000_000})
    stage = whole.Stage(3, start=begin + 1000, end=begin + 5000, status="COMPLETE", name="collect at A:42")
    stage.tasks, stage.num_tasks, stage.jobs = TaskTable.of(rows), len(rows), (0,)
    made = Application(id=APP, name="etl", start=begin, end=begin + 5000, executor_ids=["1"])
    made.executors["1"] = whole.Executor("1", "n1", added=begin, cores=2)
    made.jobs[0] = whole.Job(0, begin, begin + 5000, "SUCCEEDED", stage_ids=(3,))
    made.stages[3, 0] = stage
    return made


def test_the_page_has_what_spark_knows(tmp_path: Path) -> None:
    made_report(tmp_path / "run")
    save_application(whole_application(), tmp_path / "run")
    with changed(RunFolder(tmp_path / "run")) as record:
        record["hosts"][0]["recordings"][0]["resident_bytes"] = 3 << 29
    report = make_report(tmp_path / "run", slices=True)
    sentence = report.events[0].findings[1].text
    assert sentence == (
        "Stage 3.0 (collect at A:42) takes 80% of the time; 75% of its task time is shuffle fetch; "
        "no stage ran for 1 s of 5 s (20%), before the first stage."
    )
    page = described(report.page)
    job, curves = page["job"], page["curves"]
    assert job["headline"][1] == "Stage 3.0 (collect at A:42) takes 80% of the time."
    tables = {one["id"]: one["rows"] for one in blocks(job, "table")}
    assert [(one["key"], one["cells"][:2]) for one in tables["stages"]] == [
        ("stage 3.0", ["stage 3.0 collect at A:42", ["8 s", 8000]])
    ]
    titles = [one["title"] for one in job["sections"]]
    assert titles[:4] == ["Where the time went", "What if", "Timeline", "Stages by task time"]
    assert ["1.5 GiB", 3 << 29] in tables["memory"][0]["cells"]
    active = curves["curves"][0]["values"]
    at = {second: active[int((second + 0.5) / curves["width"])] for second in (0, 1, 4)}
    assert at == {0: 0, 1: 2, 4: 2}


def test_a_run_folder_is_a_source(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", [MadeHost("n1", {7: "x 1\n"})])
    with pytest.raises(SparkError, match="knows no Spark application"):
        read_source(str(run.path), YarnOptions())
    made = whole_application()
    save_application(made, run.path)
    assert list(read_source(str(run.path), YarnOptions()).stages[3, 0].tasks.rows()) == list(
        made.stages[3, 0].tasks.rows()
    )
    for column, value in (("executor", 1), ("locality", 9), ("status", 4)):
        damaged = whole_application()
        damaged.stages[3, 0].tasks = TaskTable.of([{column: value}])
        save_application(damaged, run.path)
        with pytest.raises(SparkError, match="a task of stage 3 is damaged"):
            read_source(str(run.path), YarnOptions())
    (run.path / APPLICATION_FILE).write_bytes(b"\x93\x01")
    with pytest.raises(SparkError, match="cannot be read"):
        read_source(str(run.path), YarnOptions())
    assert make_report(run.path, slices=True).analysis.notes[0].code == "spark-unknown"


def shares(report: Report) -> StageShares:
    found = report.events[0].stages
    assert found is not None
    return found


def test_stages_of_an_executor(tmp_path: Path) -> None:
    found = shares(made_report(tmp_path / "run"))
    assert [(one.name, one.label, one.certain, one.likely) for one in found.stages] == [
        ("stage 3.0", "collect at App.scala:42", 90, 0),
        ("stage 4.0", "count at App.scala:43", 64, 0),
    ]
    assert (found.several, found.none) == (26, 181), "4.0 to 4.5 s; idle threads, GC, and before all tasks"
    assert found.stages[0].cpu == pytest.approx(1.8)
    assert found.stages[0].spark_cpu == pytest.approx(1.99)
    assert found.certain == pytest.approx(154 / 180)


@pytest.mark.parametrize("event", ["cpu", "wall"])
def test_python_workers_have_the_stages_of_their_executor(tmp_path: Path, event: str) -> None:
    """Their CPU time counts as the JVM's does, however often they were sampled; their wall-clock time not."""
    made = {7: "x 1\n", 8: "x 1\n"}
    run = make_run(tmp_path / "run", [MadeHost("n1", made, events={event: made})], events=(event,))
    labels = {"executor": "1", "application": APP}
    frames = ("manager (pyspark/daemon.py)", "main (pyspark/worker.py)", "process (pyspark/worker.py)")
    worker = ("[MainThread]", *frames, "udf (job.py)")
    waiting = ("[MainThread]", *frames[:2], "read_int (pyspark/serializers.py)")

    keep(run, timed([Row(FIRST, bucket) for bucket in range(55, 145)], event), labels, event)
    rows = [Row(stack, bucket) for bucket in range(55, 145) for stack in (worker, waiting)]
    of_jvm, content = {**labels, "parent": "7"}, timed(rows, event, nanoseconds=5_000_000)
    keep(run, content, of_jvm, event, 8, engine="pyspy", source="py-spy")
    write_facts(FACTS, run.path)
    report = make_report(run.path, slices=True)
    found = shares(report)
    frequency = content_of(run)["sampling"]["frequency"]
    (stage,) = found.stages
    if event == "wall":
        assert (stage.samples, found.none) == (90, 0)
        assert len(found.workers) == 1
        return
    assert (stage.cpu, stage.python) == (pytest.approx(2.7), pytest.approx(0.9))
    assert stage.samples == pytest.approx(2.7 * frequency, abs=2)
    assert report.events[0].total == pytest.approx(2.7 * frequency, abs=2)
    assert stages_text(found).splitlines()[2].split()[3:5] == ["33.3%", "90.5%"]


def test_a_python_worker_has_the_stage_of_its_task(tmp_path: Path) -> None:
    """By the id of the task that ran at each sample; where Spark does not know it, by the times of tasks."""
    made = {8: "x 1\n"}
    run = make_run(tmp_path / "run", [MadeHost("n1", made, events={"cpu": made})])
    labels = {"executor": "1", "application": APP}
    worker = ("[MainThread]", "main (pyspark/worker.py)", "udf (job.py)")
    rows = [
        *(Row(worker, bucket, slice=1) for bucket in range(205, 220)),
        *(Row(worker, bucket, slice=2) for bucket in range(205, 210)),
        *(Row(("[python]", "native code"), bucket, slice=2) for bucket in range(205, 210)),
        *(Row(worker, bucket, slice=3) for bucket in (*range(60, 80), 210)),
    ]
    named = [("task 3", True), ("task 2", True), ("task 77", True)]
    of_jvm = {**labels, "parent": "7"}
    keep(run, timed(rows, named=named), of_jvm, pid=8, engine="pyspy", source="py-spy")
    write_facts(FACTS, run.path)
    found = shares(make_report(run.path, slices=True))
    counts = {one.name: one.certain for one in found.stages}
    assert counts == {"stage 3.0": 20, "stage 5.0": 15, "stage 4.0": 10}
    assert (found.several, found.none) == (1, 0)


@pytest.mark.parametrize(("source", "cpu"), [("ctimer", 3.6), ("cpu-clock,alluser", 1.8)])
def test_samples_that_a_timer_misses_count(tmp_path: Path, source: str, cpu: float) -> None:
    made_report(tmp_path / "run")
    with changed(RunFolder(tmp_path / "run")) as record:
        (recording,) = record["hosts"][0]["recordings"]
        recording["source"] = source
        recording["samples"] = {"expected": 200, "taken": 100, "lost": 100}
    assert shares(make_report(tmp_path / "run")).stages[0].cpu == pytest.approx(cpu)


def test_a_stage_is_a_part_of_the_page(tmp_path: Path) -> None:
    record = described(made_report(tmp_path / "run").page)
    assert [(one["name"], one["label"], one["certain"]) for one in record["slices"]] == [
        ("stage 3.0", "collect at App.scala:42", True),
        ("stage 4.0", "count at App.scala:43", True),
        ("several stages", "", False),
    ]
    assert [(one["name"], one["kind"]) for one in record["lanes"]] == [
        ("Spark jobs", "job"),
        ("Spark stages", "stage"),
    ]


@pytest.mark.parametrize(
    ("facts", "labels", "slices"),
    [
        (None, None, True),
        (FACTS, None, False),
        (FACTS, {"executor": "2", "application": APP}, True),
        (FACTS, {"executor": "1", "application": "application_1_1"}, True),
        (FACTS, {}, True),
    ],
)
def test_other_processes_have_no_stages(
    tmp_path: Path, facts: SparkFacts | None, labels: dict[str, str] | None, slices: bool
) -> None:
    report = made_report(tmp_path / "run", facts, labels=labels, slices=slices)
    assert report.events[0].stages is None
    assert described(report.page)["slices"] == []


def local_run(folder: Path, *labels: dict[str, str], pid: int = 0) -> Report:
    """An application in local mode, and a process with each of these labels; `pid` is known to be it."""
    facts = msgspec.structs.replace(FACTS, tasks={"driver": FACTS.tasks["1"]}, driver_pid=pid)
    made_report(folder, facts, labels={})
    with changed(RunFolder(folder)) as record:
        (host,) = record["hosts"]
        (recording,) = host["recordings"]
        host["address"] = "localhost"
        recording["process"]["is_jvm"] = True
        for number, own in enumerate(labels):
            more = {"pid": 90 + number, "labels": own, "is_jvm": "python" not in own}
            host["recordings"].append({**recording, "process": {**recording["process"], **more}})
    return make_report(folder, slices=True)


def test_only_one_process_is_the_driver(tmp_path: Path) -> None:
    assert shares(local_run(tmp_path / "alone")).stages
    report = local_run(tmp_path / "others", {"executor": "9"}, {"python": "worker"})
    assert shares(report).stages and not report.analysis.notes
    report = local_run(tmp_path / "two", {})
    assert report.events[0].stages is None
    assert [note.code for note in report.analysis.notes if "any of 2 processes" in note.reason] == [
        "spark-unknown"
    ]


def test_a_driver_that_is_known(tmp_path: Path) -> None:
    report = local_run(tmp_path / "one of two", {}, pid=7)
    assert shares(report).stages and not report.analysis.notes
    report = local_run(tmp_path / "another", pid=6)
    assert report.events[0].stages is None
    assert "is process 6, which was not recorded" in report.analysis.notes[0].reason


def test_more_cpu_time_than_spark_counts(tmp_path: Path) -> None:
    assert "another application" not in stages_text(shares(made_report(tmp_path / "own")))
    idle = Tasks()
    for tid, stage, attempt, launch, finish, cpu in FACTS.tasks["1"].rows():
        idle.add(tid, stage, attempt, launch, finish, cpu // 3)
    other = msgspec.structs.replace(FACTS, tasks={"1": idle})
    assert "another application" in stages_text(shares(made_report(tmp_path / "other", other)))


def test_names_decide_where_stages_overlap(tmp_path: Path) -> None:
    """Slice 1 and 2 are by the names of threads, of which the second is of a task by its TID (Spark 3.0)."""
    named = [("stage 5.0", True), ("task 2", True), ("task 1", False)]
    rows = [
        Row(FIRST, 210, slice=1),
        Row(SECOND, 211, slice=2),
        Row(SECOND, 212),
        Row(FIRST, 130, slice=3),
        Row(SECOND, 230, slice=3),
    ]
    found = shares(made_report(tmp_path / "run", rows=rows, named=named))
    counts = {one.name: (one.certain, one.likely) for one in found.stages}
    assert counts == {"stage 5.0": (1, 0), "stage 4.0": (2, 0), "stage 3.0": (1, 0)}
    assert (found.several, found.none) == (1, 0)


@pytest.mark.parametrize("facts", [FACTS, None])
def test_idle_threads_have_no_stage_whatever_they_are_called(
    tmp_path: Path, facts: SparkFacts | None
) -> None:
    """A thread keeps the name of its last task."""
    rows = [Row(FIRST, 60, slice=1), Row(IDLE, 61, 3, slice=1)]
    report = made_report(tmp_path / "run", facts, rows, [("stage 3.0", True)])
    record = described(report.page)
    counts = [sum(column.values()) for column in carried(report.page).columns]
    assert [(column["slice"], count) for column, count in zip(record["columns"], counts, strict=True)] == [
        (0, 1),
        (None, 3),
    ]


def test_slices_of_unknown_tasks_are_none(tmp_path: Path) -> None:
    rows = [Row(FIRST, 9, slice=1), Row(FIRST, 9, slice=2)]
    named = [("task 77", True), ("stage 3.0", True)]
    with_facts = described(made_report(tmp_path / "a", rows=rows, named=named).page)
    without = described(made_report(tmp_path / "b", None, rows, named).page)
    for record in (with_facts, without):
        assert [one["name"] for one in record["slices"]] == ["stage 3.0"]
    undivided = described(made_report(tmp_path / "c", rows=rows, named=named, slices=False).page)
    assert undivided["slices"] == []


def test_damaged_facts_are_a_note(tmp_path: Path) -> None:
    made_report(tmp_path / "run")
    (tmp_path / "run" / "spark.json").write_text("{")
    report = make_report(tmp_path / "run")
    assert report.events[0].stages is None and report.events[0].total
    (note,) = report.analysis.notes
    assert note.code == "spark-unknown" and "spark.json cannot be read" in note.reason


def test_words_and_json(tmp_path: Path) -> None:
    found = shares(made_report(tmp_path / "run"))
    text = stages_text(found)
    how = "85.6% of task samples certain, 0% likely; 26 of several stages, 181 of no task"
    assert text.startswith(f"by Spark stage ({how}):\n")
    first = text.splitlines()[2].split(maxsplit=4)
    assert first == ["24.9%", "1.8", "s", "90.5%", "stage 3.0 collect at App.scala:42"]
    assert stages_record(found)["stages"][0] == {
        "name": "stage 3.0",
        "label": "collect at App.scala:42",
        "certain": 90,
        "likely": 0,
        "cpu_seconds": pytest.approx(1.8),
        "python_cpu_seconds": 0.0,
        "spark_cpu_seconds": pytest.approx(1.99),
        "blocked": {},
        "unsampled": 0.0,
        "spark_waits": {"run": 0, "fetch": 0, "shuffle_write": 0, "gc": 0},
    }


def test_lanes() -> None:
    later = msgspec.structs.replace(FACTS, clock=DriverClock(0.5, 0.0))
    jobs, stages = spark_lanes(later, BEGIN * 1_000_000, 50.0)
    assert jobs.spans == [(0.0, 2.5, "job 0: first job")], "it began before the run"
    assert stages.spans == [
        (0.5, 2.5, "stage 3.0: collect at App.scala:42"),
        (2.5, 50.0, "stage 4.0: count at App.scala:43"),
    ]
    fast = msgspec.structs.replace(FACTS, clock=DriverClock(5.0, 0.0), read=(BEGIN + 4) * 1000)
    _, stages = spark_lanes(fast, (BEGIN - 5) * 1_000_000, 50.0)
    assert stages.spans[1][:2] == (3.0, 9.0), "until it was read, at 4 s of our clock"
    both = msgspec.structs.replace(FACTS, stages=(*FACTS.stages, *FACTS.stages))
    assert len(spark_lanes(both, BEGIN * 1_000_000, 50.0)) == 3, "stages at the same time are in two lanes"


def test_what_a_stage_is_blocked_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stacks = (FIRST, FETCH, FETCH, FETCH)
    rows = [Row(stack, bucket) for bucket in range(60, 100) for stack in stacks]
    first, second = FACTS.stages
    waits = Waits(run=2000, fetch=1400, gc=20)
    facts = msgspec.structs.replace(FACTS, stages=(msgspec.structs.replace(first, waits=waits), second))
    report = made_report(tmp_path / "run", facts, rows, event="wall")
    stage = shares(report).stages[0]
    assert (stage.samples, stage.blocked) == (160, {"shuffle-fetch": 120})
    text = stages_text(shares(report))
    assert (
        "shuffle fetch 75.0%  shuffle fetch 70.0%, GC 1.0%  stage 3.0" in text and "do not add them" in text
    )
    assert stages_record(shares(report))["stages"][0]["blocked"] == {"shuffle-fetch": 120}
    said = [finding.text.replace("\u202f", "") for finding in report.events[0].findings]
    assert said[1] == "Stage 3.0 takes 100% of the wall-clock time of tasks; 75.0% of that is shuffle fetch."
    # Two waves of tasks of 2 s on two cores; without 75 % of each, the job takes 2 s instead of 5 s.
    save_application(whole_application(), tmp_path / "run")
    report = make_report(tmp_path / "run", slices=True)
    assert shares(report).gains["shuffle-fetch"].time == pytest.approx(3000)
    said = "y stacks, the job would be at most so much shorter without: shuffle fetch 3 s (60.0%)"
    assert f"  b{said}" in stages_text(shares(report))
    lines = [text for one in blocks(described(report.page)["job"], "lines") for text in one["texts"]]
    assert f"B{said}." in lines
    assert main(["spark", str(tmp_path / "run")]) == 0
    printed = capsys.readouterr().out
    assert all(line in printed for line in lines), "the command and the page say the same"
    assert "Not in the log: python and locks; by stacks: see below" in printed
    assert main(["spark", str(tmp_path / "run"), "--json"]) == 0
    gains = json.loads(capsys.readouterr().out)["byStacks"]
    assert gains == {
        "shuffle-fetch": {"upperBound": pytest.approx(3000), "upperBoundShare": pytest.approx(0.6)}
    }
    run = tmp_path / "run"
    (run / "hosts/n1/7/wall.time").unlink()
    for damaged, said in (("hosts/n1/7/wall.pb.gz", "not in the answer:"), ("run.json", "note: without")):
        (run / damaged).write_bytes(b"{")
        assert main(["spark", str(run)]) == 3
        told = capsys.readouterr()
        assert told.err.startswith(said) and "stage 3.0" in told.out


def test_attempts_of_a_stage_have_one_bound(tmp_path: Path) -> None:
    """All samples of the first attempt wait, and half of the second one's: three of four, not half."""
    columns = Tasks()
    for attempt, begin, end in ((0, 1, 3), (1, 3, 5)):
        columns.add(attempt, 3, attempt, (BEGIN + begin) * 1000, (BEGIN + end) * 1000, 0)
    facts = msgspec.structs.replace(FACTS, tasks={"1": columns})
    first = [Row(FETCH, bucket) for bucket in range(50, 150)]
    second = [Row(stack, bucket) for bucket in range(150, 250, 2) for stack in (FETCH, FIRST)]
    made_report(tmp_path / "run", facts, [*first, *second], event="wall")
    application = whole_application()
    application.stages[3, 1] = whole.Stage(3, 1, start=(BEGIN + 5) * 1000, end=(BEGIN + 5) * 1000)
    save_application(application, tmp_path / "run")
    gain = shares(make_report(tmp_path / "run", slices=True)).gains["shuffle-fetch"]
    assert gain.time == pytest.approx(4000 * 0.75, rel=0.02)


def test_a_recording_of_a_part_has_no_bound(tmp_path: Path) -> None:
    """Its last tasks ran after the recording's ten seconds."""
    rows = [Row(FETCH, bucket) for bucket in range(60, 100)]
    made_report(tmp_path / "run", FACTS, rows, event="wall")
    save_application(whole_application(), tmp_path / "run")
    found = shares(make_report(tmp_path / "run", slices=True))
    assert found.gains and stages_record(found)["recorded_whole"] is True
    save_application(whole_application(late=7), tmp_path / "run")
    found = shares(make_report(tmp_path / "run", slices=True))
    assert found.gains and stages_record(found)["recorded_whole"] is False
    text = stages_text(found)
    assert "in the recorded part" in text and "at most" not in text


def test_time_without_samples_is_of_disks(tmp_path: Path) -> None:
    """A thread that waits for a disk in the kernel takes no signal, so that it has few samples."""
    read = (POOL, RUN, "java/io/FileInputStream.readBytes")
    rows = [Row(stack, bucket) for bucket in range(60, 70) for stack in (FIRST, read)]
    report = made_report(tmp_path / "run", FACTS, rows, event="wall")
    stage = shares(report).stages[0]
    assert stage.unsampled == pytest.approx(1 - 20 * 0.02 / 1.99)
    assert "local disk read 50.0%, no sample (waits for disks or a CPU) 79.9% of task time" in stages_text(
        shares(report)
    )
    save_application(whole_application(), tmp_path / "run")
    # A whole application is of 4 s on two cores; of the sampled part half is reads.
    (gain,) = shares(make_report(tmp_path / "run", slices=True)).gains.items()
    assert gain[0] == "unsampled" and gain[1].time == pytest.approx(4000 * (1 - 0.201 / 2), rel=0.01)


def test_a_stage_with_a_slow_task(tmp_path: Path) -> None:
    slow = tasks((3, 1.0, 1.5), (3, 1.0, 1.5), (3, 1.0, 3.0))
    facts = msgspec.structs.replace(FACTS, tasks={"1": slow}, executors=(RecordedExecutor("1", "node7"),))
    rows = [Row(FIRST, bucket, 2) for bucket in range(55, 145)]
    said = [finding.text for finding in made_report(tmp_path / "run", facts, rows).events[0].findings]
    assert "its slowest task, on node7, takes 1.5 s longer than the median." in said[1]
    slow.finish[2] = 0
    facts = msgspec.structs.replace(facts, read=round((BEGIN + 3.5) * 1000), clock=DriverClock(0.5, 0.0))
    said = [finding.text for finding in made_report(tmp_path / "running", facts, rows).events[0].findings]
    assert "its slowest task, on node7, takes 2.5 s longer than the median." in said[1]


def test_tasks_of_two_stages_all_the_time(tmp_path: Path) -> None:
    facts = msgspec.structs.replace(FACTS, tasks={"1": tasks((3, 0.0, 9.0), (4, 0.0, 9.0))})
    report = made_report(tmp_path / "run", facts, [Row(FIRST, bucket, 2) for bucket in range(55, 145)])
    assert (shares(report).stages, shares(report).several) == ((), 180)
    assert "several stages" in stages_text(shares(report))
