"""SQL executions from an event log.

tests/lab/test_lab_spark.py compares real ones with Spark's history server.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from hprofiler.spark.log import sql
from hprofiler.spark.log.events import SQL_PREFIX
from hprofiler.spark.log.sql import SqlLog, bytes_text, duration_text, metric_text, rest_execution
from hprofiler.spark.rest import application as rest_application
from hprofiler.spark.rest.application import fetch_application
from hprofiler.spark.rest.server import Answer

TIMES = [{"name": "time", "accumulatorId": 1, "metricType": "timing"}]
ROWS = [{"name": "rows", "accumulatorId": 2, "metricType": "sum"}]


def node(name: str, *children: dict[str, Any], metrics: object = ()) -> dict[str, Any]:
    return {"nodeName": name, "simpleString": name, "children": list(children), "metrics": list(metrics)}


PLAN = node(
    "WholeStageCodegen (1)", node("Project", node("InputAdapter", node("Scan", metrics=ROWS))), metrics=TIMES
)


def tell(log: SqlLog, name: str, **members: object) -> None:
    event = {"Event": (SQL_PREFIX + name.encode()).decode(), **members}
    decode, take = log.takers()[SQL_PREFIX + name.encode()]
    take(decode(json.dumps(event).encode()))


def started(id_: int = 0, plan: dict[str, Any] = PLAN, log: SqlLog | None = None) -> SqlLog:
    log = log or SqlLog()
    query = {"description": "a query", "physicalPlanDescription": "the plan", "time": 1000}
    tell(log, "SQLExecutionStart", executionId=id_, sparkPlanInfo=plan, **query)
    return log


def updates(**values: int | str) -> msgspec.Raw:
    """Of accumulators `_1`, `_2`."""
    found = [{"ID": int(name[1:]), "Update": value, "Metadata": "sql"} for name, value in values.items()]
    return msgspec.Raw(json.dumps(found, separators=(",", ":")).encode())


def nodes_of(log: SqlLog) -> list[dict[str, Any]]:
    nodes: list[dict[str, Any]] = rest_execution(log.finish()[0], 9000)["nodes"]
    return nodes


def test_metrics_of_nodes() -> None:
    """The largest value names its task; of an index only the first success counts."""
    log = started()
    log.job_started(7, 0, [(3, 2)])
    log.stage_submitted(3, 0)
    log.task_ended(3, 0, 10, 0, False, updates(_1=900, _2=5))
    log.task_ended(3, 0, 11, 0, True, updates(_1="400", _2="7"))
    log.task_ended(3, 0, 12, 1, True, updates(_1="30", _2="1000"))
    log.task_ended(3, 0, 13, 1, True, updates(_1="5000", _2="9"))
    tell(log, "DriverAccumUpdates", executionId=0, accumUpdates=[[2, 100]])
    log.job_ended(7, True)
    tell(log, "SQLExecutionEnd", executionId=0, time=3500, errorMessage="")
    scan, project, whole = nodes_of(log)
    rows = [{"name": "rows", "value": "1,107"}]
    assert scan == {"nodeId": 2, "nodeName": "Scan", "desc": "Scan", "metrics": rows}
    assert (project["nodeName"], project["wholeStageCodegenId"], project["metrics"]) == ("Project", 1, [])
    text = "total (min, med, max (stageId: taskId))\n430 ms (30 ms, 400 ms, 400 ms (stage 3.0: task 10))"
    assert whole["metrics"] == [{"name": "time", "value": text}]
    record = rest_execution(log.finish()[0], 9000)
    assert (record["status"], record["duration"], record["successJobIds"]) == ("COMPLETED", 2500, [7])
    assert (record["stageIds"], record["planDescription"]) == ([3], "the plan")


def test_queries_of_a_running_driver() -> None:
    """What the REST interface says comes out again; jobs lead to stages."""
    log = started()
    log.job_started(7, 0, [(3, 1)])
    log.task_ended(3, 0, 10, 0, True, updates(_1=900, _2=5))
    log.job_ended(7, False)
    said = rest_execution(log.finish()[0], 9000) | {"status": "FAILED", "errorMessage": "it broke"}
    applications = {"id": "app-1", "name": "job", "attempts": [{"startTime": "1970-01-01T00:00:01.000GMT"}]}
    jobs = [{"jobId": 7, "stageIds": [3]}]
    answers: dict[str, Any] = {"": applications, "/jobs": jobs, "/sql": [said]}

    def ask(path: str, parameters: Mapping[str, str]) -> Answer:
        return Answer(answers.get(path.removeprefix("/applications/app-1"), []), 0, 0)

    application = fetch_application(ask, "app-1")
    assert [note.code for note in application.notes] == ["by-rest"]
    assert rest_execution(application.sql[0], 9000) == said
    for wrong in ([None, 5, {"id": -1, "nodes": [{"metrics": 5}, 7], "edges": 3, "jobs": "x"}], "x", {}):
        answers["/sql"] = wrong
        fetch_application(ask, "app-1")


def test_what_the_rest_interface_has_too_much_of_is_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Queries come in pages; what is beyond the limits is counted."""
    monkeypatch.setattr(rest_application, "_PAGE", 2)
    monkeypatch.setattr(rest_application, "_MOST_STAGES", 3)
    monkeypatch.setattr(rest_application, "MOST_EXECUTIONS", 4)
    queries = [{"id": id_} for id_ in range(5)]
    stages = [{"stageId": id_, "status": "SKIPPED"} for id_ in range(5)]

    def ask(path: str, parameters: Mapping[str, str]) -> Answer:
        name = path.removeprefix("/applications/app-1")
        offset = int(parameters.get("offset", 0))
        answers = {"/stages": stages, "/sql": queries[offset : offset + 2], "": {"id": "app-1"}}
        return Answer(answers.get(name, []), 0, 0)

    application = fetch_application(ask, "app-1")
    assert (list(application.sql), len(application.stages)) == ([0, 1, 2, 3], 3)
    notes = {note.code: (note.count, note.detail) for note in application.notes}
    assert notes == {"stages-not-kept": (2, "3"), "sql-not-kept": (1, "4"), "by-rest": (0, "")}


def test_a_second_attempt_of_a_stage_counts_alone() -> None:
    log = started()
    log.job_started(7, 0, [(3, 1)])
    log.task_ended(3, 0, 10, 0, True, updates(_2="7"))
    log.stage_submitted(3, 1)
    log.task_ended(3, 1, 11, 0, True, updates(_2="8"))
    log.task_ended(3, 0, 12, 0, True, updates(_2="9"))
    assert nodes_of(log)[0]["metrics"][0]["value"] == "8"


def test_the_last_plan_counts_with_the_metrics_of_all() -> None:
    log = started(plan=node("AdaptiveSparkPlan", node("Scan", metrics=ROWS)))
    log.job_started(7, 0, [(3, 1)])
    log.task_ended(3, 0, 10, 0, True, updates(_2="7", _1="20"))
    tell(log, "SQLAdaptiveSQLMetricUpdates", executionId=0, sqlPlanMetrics=TIMES)
    log.job_started(8, 0, [(4, 1)])
    log.task_ended(4, 0, 11, 0, True, updates(_1="50"))
    tell(log, "SQLAdaptiveExecutionUpdate", executionId=0, sparkPlanInfo=PLAN)
    assert [one["nodeName"] for one in nodes_of(log)] == ["Scan", "Project", "WholeStageCodegen (1)"]
    assert nodes_of(log)[2]["metrics"][0]["value"] == "50 ms"


def test_a_stage_says_how_many_tasks_it_has_and_need_not_have_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Values are kept for all tasks of a stage; where there is no room, a metric is left out."""
    monkeypatch.setattr(sql, "MOST_VALUES", 1000)
    log = started()
    log.job_started(7, 0, [(3, 1 << 40), (4, 100)])
    log.task_ended(3, 0, 10, 0, True, updates(_1="900", _2="5"))
    log.task_ended(4, 0, 11, 0, True, updates(_1="30", _2="6"))
    scan, _, whole = nodes_of(log)
    assert (scan["metrics"][0]["value"], whole["metrics"], log.left_out_metrics) == ("11", [], 1)


def test_what_an_execution_took_is_free_once_it_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sql, "MOST_VALUES", 1000)
    log = SqlLog()
    for number in range(20):
        started(number, log=log)
        tell(log, "DriverAccumUpdates", executionId=number, accumUpdates=[[2, 1]] * 10)
        log.job_started(number, number, [(number, 300)])
        log.task_ended(number, 0, 10, 0, False, updates(_1="900", _2="5"))
        log.job_ended(number, True)
        tell(log, "SQLExecutionEnd", executionId=number, time=3500)
    assert (log.left_out_metrics, log.without_details) == (0, 0)
    assert all(one.details().metrics for one in log.finish().values())


def test_plans_of_executions_that_never_end_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sql, "MOST_PACKED", 1000)
    monkeypatch.setattr(sql, "MOST_STAGES", 2)
    log = SqlLog()
    for number in range(20):
        started(number, log=log)
        log.job_started(number, number, [(number, 1)])
    assert 0 < log.without_details < 20 and log.left_out_stages == 18


@pytest.mark.parametrize(
    ("ended", "job", "status"),
    [
        (None, True, "RUNNING"),
        ({"errorMessage": ""}, False, "COMPLETED"),
        ({}, True, "COMPLETED"),
        ({}, False, "FAILED"),
        ({"errorMessage": "it broke"}, True, "FAILED"),
    ],
)
def test_status(ended: dict[str, str] | None, job: bool, status: str) -> None:
    log = started()
    log.job_started(7, 0, [(3, 1)])
    log.job_ended(7, job)
    if ended is not None:
        tell(log, "SQLExecutionEnd", executionId=0, time=3500, **ended)
    assert rest_execution(log.finish()[0], 9000)["status"] == status


def test_values_that_many_executions_share_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of them makes a text of all values of the stage."""
    monkeypatch.setattr(sql, "MOST_AGGREGATED", 1000)
    log = SqlLog()
    for number in range(20):
        started(number, log=log)
    for number in range(20):
        log.job_started(number, number, [(3, 100)])
    log.task_ended(3, 0, 10, 0, True, updates(_1="900"))
    found = log.finish()
    assert log.left_out_metrics == 10 and sum(bool(one.details().metrics) for one in found.values()) == 10


def test_numbers_of_stages_may_be_equal_in_32_bits() -> None:
    log = started()
    log.job_started(1, 0, [(stage << 32, 1) for stage in range(6)])
    assert len(log.finish()[0].stages) == 6


def test_a_plan_that_unpacks_to_too_much_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    execution = started().finish()[0]
    assert execution.details().nodes
    monkeypatch.setattr(sql, "_LARGEST_DETAILS", 10)
    assert not execution.details().nodes


def test_an_exchange_that_is_used_again_is_one_node() -> None:
    exchange = node("Exchange", node("Scan"))
    plan = node(
        "Join",
        node("ShuffleQueryStage", exchange),
        node("ShuffleQueryStage", node("ReusedExchange", exchange)),
    )
    nodes, edges = sql.plan_graph(msgspec.convert(plan, sql.Plan))
    assert [one.name for one in nodes] == ["Join", "Exchange", "Scan"]
    assert edges == [(1, 0), (2, 1), (1, 0)]


def test_plans_as_deep_as_a_log_can_have_them() -> None:
    plan = node("Union")
    for _ in range(300):
        plan = node("Union", plan)
    assert len(started(plan=plan).finish()[0].details().nodes) == 301


def test_damaged_events() -> None:
    log = started()
    log.job_started(7, 0, [(3, 1)])
    for values in ({"_2": "x"}, {"_2": "9" * 30}, {"_2": 1 << 80}):
        log.task_ended(3, 0, 10, 0, False, updates(**values))
    log.task_ended(3, 0, 10, 5, True, updates(_2="7"))
    log.task_ended(3, 0, 10, -1, True, updates(_2="7"))
    log.task_ended(3, 0, 10, 0, True, msgspec.Raw(b'[{"ID":"Metadata":"sql"}]'))
    tell(log, "SQLExecutionEnd", executionId=99, time=1)
    tell(log, "DriverAccumUpdates", executionId=99, accumUpdates=[[1, 1]])
    log.job_started(8, 99, [(3, 1)])
    log.job_ended(55, True)
    assert all(not one["metrics"] for one in nodes_of(log))


def test_no_more_than_a_number_of_executions_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sql, "MOST_EXECUTIONS", 2)
    log = SqlLog()
    for id_ in range(5):
        started(id_, log=log)
        tell(log, "SQLExecutionEnd", executionId=id_, time=2000)
    assert list(log.finish()) == [0, 1] and log.left_out == 3


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (duration_text(999), "999 ms"),
        (duration_text(59_999), "60.0 s"),
        (duration_text(1250), "1.3 s"),
        (duration_text(90_000), "1.5 m"),
        (duration_text(5_400_000), "1.50 h"),
        (bytes_text(2047), "2047.0 B"),
        (bytes_text(2048), "2.0 KiB"),
        (bytes_text(2304), "2.3 KiB"),
        (bytes_text(3 << 60), "3.0 EiB"),
        (
            metric_text("average", [0, 15, 5], "(driver)"),
            "(min, med, max (stageId: taskId)):\n(0.5, 1.5, 1.5 (driver))",
        ),
        (metric_text("average", [12_340], ""), "1,234"),
        (metric_text("nsTiming", [1_999_999], ""), "1 ms"),
        (metric_text("size", [-1], ""), "0.0 B"),
        (metric_text("v2Custom_com.example.Own", [1], ""), "N/A"),
    ],
)
def test_texts_of_metrics(text: str, expected: str) -> None:
    assert text == expected
