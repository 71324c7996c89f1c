"""What is said of real queries and streaming queries, from their event logs.

`queries.gz` is of PySpark 3.5 on 2 cores, cut down: nine queries over small tables like those of TPC-DS, most
of them with one thing that could be better. `streams.gz` has the progress of three streaming queries.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hprofiler.analysis.spark import query_words
from hprofiler.analysis.spark.finding import SparkFinding
from hprofiler.analysis.spark.findings import Judged, judge
from hprofiler.analysis.spark.groups import batches_of, kind_of, query_groups, stage_groups
from hprofiler.analysis.spark.operators import QueryOperators
from hprofiler.analysis.spark.plans import PlanView, chain, listing_of, step_of
from hprofiler.analysis.spark.queries import query_plans
from hprofiler.analysis.spark.streaming import stream_figures, stream_findings
from hprofiler.analysis.spark.words import finding_text
from hprofiler.report.spark.account import remedy_of
from hprofiler.report.spark.record import answer_record
from hprofiler.report.spark.words import REMEDIES
from hprofiler.spark.application import SUCCESS, Application, Stage, TaskTable
from hprofiler.spark.figures import Figures, figures
from hprofiler.spark.log.events import SQL_PREFIX
from hprofiler.spark.log.files import local_files
from hprofiler.spark.log.reading import EventReader, read_application
from hprofiler.spark.log.sql import Details, Metric, PlanNode, SqlExecution
from hprofiler.spark.replay.schedule import Replay
from hprofiler.spark.streams import PHASES, Batch, StreamQuery
from tests.unit.spark_application import event, stage_event

SQL = SQL_PREFIX.decode()
WRITE_PLAN: dict[str, Any] = {"nodeName": "Execute InsertIntoHadoopFsRelationCommand"}
WRITE_PLAN["simpleString"] = "Execute InsertIntoHadoopFsRelationCommand file:/data/out, false, Parquet"
for below in (
    {"nodeName": "WriteFiles"},
    {"nodeName": "BatchEvalPython", "simpleString": "BatchEvalPython [bad(id#1L)#2]"},
    {"nodeName": "WholeStageCodegen (1)"},
    {"nodeName": "Range"},
):
    inner = WRITE_PLAN
    while "children" in inner:
        (inner,) = inner["children"]
    inner["children"] = [below]
LOGS = Path(__file__).with_name("spark")
STAR, TINY, FILES, READ, MERGE, MULTIPLY, CROSS, NEEDLE, PYTHON = 4, *range(6, 14)


def judged(name: str) -> Judged:
    application = read_application(local_files(LOGS / name))
    return judge(application, Replay(application))


@pytest.fixture(scope="module")
def queries() -> Judged:
    return judged("queries.gz")


@pytest.fixture(scope="module")
def streams() -> Judged:
    return judged("streams.gz")


@pytest.mark.parametrize(
    ("query", "operations"),
    [
        (
            STAR,
            [
                "scan date_dim → broadcast",
                "scan item → broadcast",
                "scan store_sales → broadcast hash join ×2 → partial aggregate",
                "aggregate",
            ],
        ),
        (FILES, ["scan store_sales", "exchange", "sort → write byday"]),
        (READ, ["scan byday → partial aggregate", "aggregate"]),
        (
            CROSS,
            ["scan item → broadcast", "scan customer → nested-loop join → partial aggregate", "aggregate"],
        ),
        (PYTHON, ["scan store_sales", "exchange", "Python <lambda> → partial aggregate", "aggregate"]),
    ],
)
def test_stages_are_named_by_what_they_do(queries: Judged, query: int, operations: list[str]) -> None:
    stages = sorted(queries.application.sql[query].stages)
    known = queries.plans.operations
    assert [known[stage] for stage in stages if stage in known] == operations


@pytest.mark.parametrize(
    ("name", "text", "step"),
    [
        ("Scan parquet spark_catalog.default.item", "", "scan item"),
        ("Scan parquet ", "Location: InMemoryFileIndex(1 paths)[s3://b/t, PartitionFilters: []", "scan t"),
        ("Scan text ", "Location: InMemoryFileIndex(1 paths)[file:/data/days/part-0-c1...]", "scan days"),
        ("Scan csv ", "Location: InMemoryFileIndex(9 paths)[file:/data/ca..., PartitionFilters", "scan ca…"),
        ("Scan JDBCRelation(shop.orders) [numPartitions=4]", "", "scan orders"),
        ("BatchScan lake.db.events[id#1]", "", "scan events"),
        ("PhotonScan parquet hive.db.sales", "", "scan sales"),
        ("GpuHashAggregate", "(keys=[], functions=[partial_gpusum(x)])", "partial aggregate"),
        ("PhotonGroupingAgg", "", "aggregate"),
        ("GpuShuffledSymmetricHashJoin", "", "shuffled hash join"),
        ("PhotonBroadcastHashJoin", "", "broadcast hash join"),
        ("GpuColumnarExchange", "", "exchange"),
        ("SortMergeJoin(skew=true)", "", "sort-merge join"),
        ("Execute InsertIntoHadoopFsRelationCommand", "Execute InsertIntoHadoopFsRelationCommand "
         "file:/out/days, false, Parquet", "write days"),
        ("ArrowEvalPython", "ArrowEvalPython [price(a#1)#2]", "Python price"),
        ("Project", "", ""),
        ("FlatMapNewThing", "", "flat map new thing"),
    ],
)  # fmt: skip
def test_what_nodes_do(name: str, text: str, step: str) -> None:
    assert chain([step_of(PlanNode(0, name, text, []))]) == step


def test_a_failed_stage_is_named_by_the_scopes_of_its_rdds() -> None:
    """Its tasks measured nothing, as none has succeeded."""
    query = {"Event": SQL + "SQLExecutionStart", "executionId": 0, "time": 1000, "sparkPlanInfo": WRITE_PLAN}
    scopes = [{"Scope": json.dumps({"id": "1", "name": name})} for name in ("WriteFiles", "BatchEvalPython")]
    scopes.append({"Scope": json.dumps({"id": "2", "name": "WholeStageCodegen (1)"})})
    stage: dict[str, Any] = {
        "Submission Time": 1000,
        "Completion Time": 2000,
        "Failure Reason": "x",
        "RDD Info": scopes,
    }
    reader = EventReader()
    for line in (
        json.dumps(query, separators=(",", ":")).encode(),
        event("JobStart", Job_ID=0, Stage_IDs=[0], Stage_Infos=[{"Stage ID": 0, "Number of Tasks": 2}],
              Properties={"spark.sql.execution.id": "0"}),
        stage_event("StageSubmitted"),
        stage_event("StageCompleted", **stage),
    ):  # fmt: skip
        assert reader.take(line)
    assert query_plans(reader.application(), {}).operations == {0: "range → Python bad → write out"}


def test_listing_files_is_named() -> None:
    text = "Listing leaf files and directories for 1800 paths:<br/>file:/data/days/day=171, ..."
    assert (listing_of(text), listing_of("list")) == ("list files days", "")


def test_what_could_be_better(queries: Judged) -> None:
    """Each has its evidence; a query without such a thing has none."""
    found: dict[str, list[dict[str, Any]]] = {}
    for one in queries.plans.advice:
        found.setdefault(one.code, []).append(one.parameters)
        assert one.seconds > 0 and finding_text(one) and REMEDIES[one.code]
    assert {code: {one["query"] for one in ones} for code, ones in found.items()} == {
        "small-files-written": {FILES},
        "small-files-read": {READ},
        "tiny-partitions": {TINY},
        "broadcast-fits": {MERGE},
        "join-multiplies": {MULTIPLY},
        "compares-all-rows": {CROSS},
        "filter-keeps-little": {NEEDLE},
    }
    files, partitions = found["small-files-read"][0], found["tiny-partitions"][0]
    assert files["files"] == 7200 and files["bytes"] / files["files"] < 2000
    assert (partitions["tasks"], partitions["bytes"]) == (120, 89_987)
    join = found["join-multiplies"][0]
    assert (join["left"], join["right"], join["rows"]) == (166_700, 20_000, 33_851_600)
    assert found["broadcast-fits"][0]["table"] == "item"
    needle = found["filter-keeps-little"][0]
    assert (needle["read"], needle["rows"]) == (3_000_000, 25)


def test_advice_costs_no_more_than_its_stages() -> None:
    """All stages wait for slots from the start. Their waits are not time of theirs."""
    application = read_application(local_files(LOGS / "queries.gz"))
    for stage in application.stages.values():
        stage.start = application.start
    replay = Replay(application)
    made = judge(application, replay)
    times = {stage.id: time for stage, time in zip(replay.stages, made.account.of_stages, strict=True)}
    assert made.plans.advice
    for one in made.plans.advice:
        stages = application.sql[one.parameters["query"]].stages
        assert one.seconds * 1000 <= sum(times.get(stage, 0) for stage in stages) + 1


def test_operators_take_the_time_of_their_stages(queries: Judged) -> None:
    """Times of tasks add up to those of the query's stages; rows are as the tables have them."""
    plans = {one.query.id: one for one in queries.plans.slowest}
    for plan in plans.values():
        of_tasks = sum(one.time for one in plan.operators if not one.on_driver)
        assert of_tasks == pytest.approx(plan.task_time, rel=0.001)
    star = {one.text: one for one in plans[STAR].operators}
    assert star["scan store_sales"].rows_out == 3_000_000 and star["scan store_sales"].files == 2
    assert star["broadcast item"].rows_out == 20_000 and star["broadcast item"].on_driver
    worst = max(plans[STAR].operators, key=lambda one: 0 if one.on_driver else one.time)
    assert worst.text == "broadcast hash join ×2 → partial aggregate"


def test_a_plan_may_be_deeper_than_the_stack() -> None:
    deep = 20_000
    nodes = [PlanNode(number, "Sort", "Sort", []) for number in range(deep)]
    nodes.append(PlanNode(deep, "Scan parquet db.t", "", [Metric("number of output rows", 1, "sum")]))
    edges = [(number + 1, number) for number in range(deep)]
    details = Details(nodes, edges, totals={1: 7}, measured={0: [1]})
    operators = QueryOperators(PlanView(details), [0], {0: 1000.0})
    assert (operators.rows_out(0), operators.view.scanned(0)) == (7, "t")
    assert operators.by_node[0].rows_in == 7


def test_streaming_queries(streams: Judged) -> None:
    found = {one.query.name: one for one in streams.streams}
    assert {name: len(one.batches) for name, one in found.items()} == {
        "counts": 42,
        "windows": 21,
        "slow": 10,
    }
    windows, slow = found["windows"], found["slow"]
    assert (windows.interval, windows.late) == (2001, 6)  # a trigger of 2 s; each fourth batch sleeps for 3 s
    assert max(windows.phases, key=windows.phases.__getitem__) == "addBatch"
    assert windows.query.watermark and not slow.query.watermark
    assert not slow.interval and slow.busy > 0.8
    stateful = {one.parameters["stream"]: one.code for one in streams.findings if "stream" in one.parameters}
    grown = [one for one in streams.findings if one.code == "state-grows"]
    assert {one.parameters["stream"] for one in grown} == {"counts", "slow"}
    assert stateful["windows"] == "batches-late"
    assert "batches-back-to-back" not in {one.code for one in streams.findings}  # "slow" has no trigger
    assert "without a watermark" in finding_text(grown[0])
    (well,) = (one for one in streams.findings if one.code == "keeps-up")
    assert (well.parameters["stream"], well.parameters["batches"]) == ("counts", 42)


def stream_of(times: list[tuple[int, int]], phase: str = "addBatch") -> list[SparkFinding]:
    """Findings on batches that begin and last so many milliseconds, for all their time in a phase."""
    batches = [
        Batch(number, 60_000 + start, lasts, tuple(lasts if name == phase else 0 for name in PHASES))
        for number, (start, lasts) in enumerate(times)
    ]
    application = Application(streams={"run": StreamQuery("id", "run", "orders", batches=batches)})
    return stream_findings(stream_figures(application))


@pytest.mark.parametrize(
    ("last", "code"), [(20_000, "batches-back-to-back"), (19_823, "batches-without-pause")]
)
def test_batches_that_wait_for_a_trigger_begin_at_whole_seconds(last: int, code: str) -> None:
    times = [(1500 * number, 1500) for number in range(10)]
    assert [one.code for one in stream_of([*times, (last, 1500)])] == [code]


@pytest.mark.parametrize(
    ("lasts", "phase", "code", "kind"),
    [
        (2000, "addBatch", "keeps-up", "run"),
        (9000, "latestOffset", "barely-keeps-up", "source"),
        (10_000, "walCommit", "batches-without-pause", "checkpoint"),
    ],
)
def test_whether_a_streaming_query_keeps_up(lasts: int, phase: str, code: str, kind: str) -> None:
    (found,) = stream_of([(10_000 * number, lasts) for number in range(30)], phase)
    assert (found.code, found.parameters["kind"], found.parameters["kindShare"]) == (code, kind, 1)
    assert finding_text(found) and bool(remedy_of(found)) == (code != "keeps-up")


def test_batches_that_become_slower() -> None:
    (found,) = stream_of([(10_000 * number, 1000 + 200 * number) for number in range(30)])
    assert (found.code, found.parameters["first"], found.parameters["last"]) == (
        "batches-slow-down",
        1.9,
        5.9,
    )


@pytest.mark.parametrize(
    ("source", "sink", "title"),
    [
        ("RateStreamV2[rowsPerSecond=5, rampUpTimeSeconds=0]", "ForeachBatchSink",
         "RateStreamV2 → ForeachBatchSink (d6)"),
        ("KafkaV2[Subscribe[orders]]", "org.apache.spark.sql.execution.datasources.noop.NoopTable$@6b7d",
         "KafkaV2[Subscribe[orders]] → NoopTable (d6)"),
        ("FileStreamSource[s3://b/in]", "FileSink[s3://b/out.v2]",
         "FileStreamSource[s3://b/in] → FileSink[s3://b/out.v2] (d6)"),
        ("", "", "d6-98"),
    ],
)  # fmt: skip
def test_a_streaming_query_without_a_name_is_named_by_what_it_does(
    source: str, sink: str, title: str
) -> None:
    assert StreamQuery("d6-98", "run", sources=(source,), sink=sink).title == title
    assert StreamQuery("d6-98", "run", "counts", sources=(source,), sink=sink).title == "counts"


def test_every_finding_of_queries_has_a_remedy() -> None:
    assert set(query_words.TEXTS) - {"keeps-up", "batches-without-pause"} <= set(REMEDIES)


def test_the_record(queries: Judged) -> None:
    record = answer_record(queries, figures(queries.application))
    operations = [one["operation"] for one in record["groups"]["stages"]]
    assert "sort → write byday" in operations
    star = next(one for one in record["groups"]["queries"] if one["slowest"]["executionId"] == STAR)
    assert star["readsAndWrites"] == ["scan date_dim", "scan item", "scan store_sales"]
    times = {one["executionId"]: one["taskTime"] for one in record["operators"]}
    assert times[STAR] == star["taskTime"]


def made_stages(names: list[str]) -> Figures:
    """Stages of these names; the tasks of each take a second more than those of the one before."""
    stages = {}
    for id_, name in enumerate(names):
        table = TaskTable.of([{"launch": 1000, "finish": 2000 + 1000 * id_, "status": SUCCESS}])
        stage = Stage(id_, name=name, start=1000, end=2000 + 1000 * id_, status="COMPLETE", tasks=table)
        stages[stage.key] = stage
    return figures(Application(stages=stages))


def test_stages_that_do_the_same_are_one_group() -> None:
    found = made_stages(["a", "a", "b", "a"])
    first, *others = stage_groups(found, {0: "scan t", 1: "scan t", 3: "scan u"})
    assert (first.operation, first.count, first.slowest.stage.id) == ("scan u", 1, 3)
    group = next(one for one in others if one.count == 2)
    assert (group.elapsed, group.median, group.task_time, group.slowest.stage.id) == (3000, 1500, 3000, 1)


def test_queries_stand_below_their_root_and_batches_beside_each_other() -> None:
    """A root counts the jobs and task time of what it ran."""
    batch = "counts\nid = 1\nrunId = 2\nbatch = {}"
    assert kind_of(batch.format(7)) == kind_of(batch.format("init")) != kind_of("counts")
    assert (batches_of(batch.format(7)), batches_of("SELECT 1")) == ("counts", None)
    assert kind_of('Spark Connect - session_id: "1" plan { a') == kind_of(
        'Spark Connect - session_id: "1" plan { b'
    )
    sql = {
        5: SqlExecution(5, 5, "MERGE INTO t", 1000, 9000),
        6: SqlExecution(6, 5, "part", 2000, 8000, jobs={0: "SUCCEEDED"}, stages={0: None}),
        7: SqlExecution(7, 7, batch.format(0), 9000, 9500, jobs={1: "SUCCEEDED"}, stages={1: None}),
        8: SqlExecution(8, 8, batch.format(1), 9500, 9700),
    }
    found = made_stages(["a", "a"])
    merge, batches = query_groups(Application(sql=sql), found, {6: ("scan u", "write t")})
    root = merge.slowest
    assert (root.query.id, [one.id for one in root.children], root.jobs, root.task_time) == (5, [6], 1, 1000)
    assert merge.summary == ("scan u", "write t")
    assert (len(batches.members), batches.lasted, batches.median) == (2, 700, 350)
    assert batches.slowest.most is not None and batches.slowest.most.stage.id == 1
