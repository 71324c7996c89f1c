"""`hprofiler spark` beside Spark's own history server: every field of every answer.

Expected values come from the history server alone. What is not compared stands here by name, with the reason.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from hprofiler.app.spark_source import read_source
from hprofiler.resolve import YarnOptions
from hprofiler.spark.log.sql import duration_text
from tests.lab.spark import logs
from tests.lab.spark.logs import Logged
from tests.unit.spark_application import ID, LOG

pytestmark = pytest.mark.timeout(2400)  # the first one of a version runs all its applications

NOT_OURS = {
    "application": {
        # The history server's clock when it read the file.
        "lastUpdated",
        "lastUpdatedEpoch",
        # Where the history server found it.
        "logSourceName",
        "logSourceFullPath",
    },
    "job": {"jobTags"},
    "stage": {
        # Each task, each accumulator: too much for one answer.
        "tasks",
        "accumulatorUpdates",
        "executorSummary",
        "executorMetricsDistributions",
        # Push-based shuffle, which Spark has off by default.
        "shuffleCorruptMergedBlockChunks",
        "shuffleMergedFetchFallbackCount",
        "shuffleMergedRemoteBlocksFetched",
        "shuffleMergedLocalBlocksFetched",
        "shuffleMergedRemoteChunksFetched",
        "shuffleMergedLocalChunksFetched",
        "shuffleMergedRemoteBytesRead",
        "shuffleMergedLocalBytesRead",
        "shuffleMergedRemoteReqsDuration",
        "shuffleMergersCount",
        "isShufflePushEnabled",
    },
    "distributions": {"shufflePushReadMetricsDist"},
    "executor": {
        # Cached blocks: event logs have them only with spark.eventLog.logBlockUpdates.enabled.
        "rddBlocks",
        "memoryUsed",
        "diskUsed",
        "memoryMetrics",
        # Exclusion of executors, and addresses of their logs.
        "isBlacklisted",
        "isExcluded",
        "blacklistedInStages",
        "excludedInStages",
        "executorLogs",
        "resources",
    },
    # A session's settings, which may be secrets.
    "query": {"modifiedConfigs"},
}
OURS = {"query": {"rootExecutionId", "stageIds", "errorMessage", "desc"}}
"""What we say beyond the history server, or that of Spark 3."""
_PEAKS = {"peakExecutorMetrics", "peakMemoryMetrics"}
"""Where 0 means that nothing was sampled, and we leave it out."""
_ORDERED = 4
"""Scala's sets keep the order of so many elements."""
_TASK = re.compile(r"\(stage \d+\.\d+: task \d+\)")
_MIXED = {"duration", "schedulerDelay", "gettingResultTime"}
"""Quantiles that Spark takes over failed and killed tasks, too."""


@cache
def made(version: str) -> dict[str, Logged]:
    found = logs.made(version)
    return {one.log.name if version == logs.SAMPLES else one.name: one for one in found}


@cache
def ours(log: Path) -> dict[str, Any]:
    command = [sys.executable, "-m", "hprofiler", "spark", str(log), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def as_ours(record: dict[str, Any]) -> dict[str, Any]:
    """An answer of the history server with our form of what is listed above."""
    made = dict(record)
    for name in _PEAKS & made.keys():
        made[name] = {metric: value for metric, value in made[name].items() if value}
    return {name: value for name, value in made.items() if value or name not in _PEAKS}


def differences(wanted: Any, found: Any, kind: str, where: str = "") -> Iterator[str]:
    """Fields that differ, that we lack, and that nobody else has."""
    if isinstance(wanted, dict) and isinstance(found, dict):
        kind = "distributions" if "quantiles" in wanted else kind
        left_out, more = NOT_OURS.get(kind, set()), OURS.get(kind, set())
        for name in (wanted.keys() | found.keys()) - left_out:
            if name not in found:
                yield f"{where}.{name} is missing: {str(wanted[name])[:200]}"
            elif name in wanted:
                yield from differences(wanted[name], found[name], kind, f"{where}.{name}")
            elif name not in more | _MIXED:
                yield f"{where}.{name} is not the history server's: {str(found[name])[:200]}"
    elif isinstance(wanted, list) and isinstance(found, list) and len(wanted) == len(found):
        for place, (one, other) in enumerate(zip(wanted, found, strict=True)):
            yield from differences(one, other, kind, f"{where}[{place}]")
    elif wanted != found:
        yield f"{where}: {str(found)[:300]}, and the history server says {str(wanted)[:300]}"


def check_application(logged: Logged) -> None:
    answer, wanted = ours(logged.log), logged.answers
    found: list[str] = []
    found += differences(wanted[""], application_of(answer), "application", "application")
    found += by_key(wanted["jobs"], answer["jobs"], "job", lambda one: one["jobId"])
    for stage in wanted[logs.STAGES]:
        if stage["numFailedTasks"] or stage["numKilledTasks"]:
            forget_mixed(stage.get("taskMetricsDistributions"))
            forget_mixed(wanted[logs.TASK_SUMMARY.format(stage["stageId"], stage["attemptId"])])
    found += by_key(
        wanted[logs.STAGES], answer["stages"], "stage", lambda one: (one["stageId"], one["attemptId"])
    )
    for stage in answer["stages"]:
        path = logs.TASK_SUMMARY.format(stage["stageId"], stage["attemptId"])
        summary = stage.get("taskMetricsDistributions")
        found += differences(wanted[path], summary, "stage", f"taskSummary {stage['stageId']}")
    found += by_key(wanted["allexecutors"], answer["executors"], "executor", lambda one: one["id"])
    many = {one["id"] for one in answer["sql"] if len(one["stageIds"]) > _ORDERED}
    queries, other = (
        [query_of(one, many) for one in those] for those in (wanted[logs.SQL_QUERIES], answer["sql"])
    )
    found += by_key(queries, other, "query", lambda one: one["id"])
    assert not found, f"{len(found)} differences\n" + "\n".join(found[:60])


def application_of(answer: dict[str, Any]) -> dict[str, Any]:
    return {name: answer["application"][name] for name in ("id", "name", "attempts")}


def forget_mixed(summary: dict[str, Any] | None) -> None:
    """Spark takes quantiles of succeeded tasks, but leaves failed and killed ones in these three."""
    for name in _MIXED:
        if summary is not None:
            del summary[name]


def query_of(query: dict[str, Any], many: set[int]) -> dict[str, Any]:
    """Spark lists the jobs of a query in the order of a hash table. So it does with its stages if there are
    `many`, and names the task of the first one of equal tasks."""
    made = {name: sorted(value) if name.endswith("JobIds") else value for name, value in query.items()}
    if query["id"] in many:
        made["nodes"] = json.loads(_TASK.sub("(a task)", json.dumps(query["nodes"])))
    return made


def by_key(
    wanted: list[dict[str, Any]], found: list[dict[str, Any]], kind: str, key: Callable[[Any], Any]
) -> Iterator[str]:
    known = {key(one): as_ours(one) for one in wanted}
    other = {key(one): as_ours(one) for one in found}
    if known.keys() != other.keys():
        yield f"{kind}s: {sorted(other)}, and the history server has {sorted(known)}"
    for name in known.keys() & other.keys():
        yield from differences(known[name], other[name], kind, f"{kind} {name} ")


def test_small_applications(tmp_path: Path) -> None:
    applications = logs.quick(tmp_path)
    assert [one.name for one in applications] == ["small", "queries"]
    for one in applications:
        check_application(one)


@pytest.mark.parametrize("version", ["spark-3", "spark-4"])
def test_the_log_of_a_history_server(tmp_path: Path, version: str) -> None:
    """A file, and a rolling log: what the server gives away is read as the log itself is."""
    folder = tmp_path / "eventlog_v2_local-2"
    folder.mkdir()
    lines = LOG.read_bytes().replace(ID.encode(), b"local-2").splitlines(keepends=True)
    ended = b'{"Event":"SparkListenerApplicationEnd","Timestamp":1795693790000}\n'
    (tmp_path / ID).write_bytes(LOG.read_bytes() + ended)
    (folder / "events_1_local-2").write_bytes(b"".join(lines[:20]))
    (folder / "events_2_local-2").write_bytes(b"".join([*lines[20:], ended]))
    (folder / "appstatus_local-2").touch()
    with logs.history_server(logs.VERSIONS[version](), tmp_path) as api:
        for id_, log in ((ID, tmp_path / ID), ("local-2", folder)):
            address = api.replace("/api/v1/applications", f"/history/{id_}/jobs/")
            found = read_source(address, YarnOptions())
            known = read_source(str(log), YarnOptions())
            assert (found.notes, found.jobs) == (known.notes, known.jobs)
            assert len(found.stages) == len(known.stages) > 0


NAMES = [entry.split(",")[0] for entry in (*logs.LOCAL, *logs.STANDALONE, *logs.SQL)]


@pytest.mark.nightly
@pytest.mark.parametrize("version", ["spark-3", "spark-4"])
@pytest.mark.parametrize("name", NAMES)
def test_an_application(version: str, name: str) -> None:
    check_application(made(version)[name])


@pytest.mark.nightly
def test_the_logs_of_sparks_own_tests() -> None:
    """By Spark 1.3 to 3.3: failures, exclusion, resource profiles, attempts of an application."""
    samples = made(logs.SAMPLES)
    assert len(samples) >= 18
    for one in samples.values():
        check_application(one)


@pytest.mark.nightly
def test_a_python_application() -> None:
    logged = made("spark-4")["python"]
    check_application(logged)
    # Of each task, as Spark's own page has it of all.
    (wanted,) = (
        metric["value"]
        for query in logged.answers[logs.SQL_QUERIES]
        for node in query["nodes"]
        for metric in node["metrics"]
        if metric["name"] == "time to run Python workers"
    )
    (python,) = (one for one in ours(logged.log)["blocked"]["resources"] if one["name"] == "python")
    assert f"\n{duration_text(round(python['taskTime']))} (" in wanted
