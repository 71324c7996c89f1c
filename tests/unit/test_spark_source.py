"""Where `hprofiler spark` finds an application: history servers, drivers, YARN, HDFS, object stores."""

from __future__ import annotations

import csv
import io
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import pyarrow.parquet
import pytest

from hprofiler.app.spark_source import read_source
from hprofiler.base.errors import HprofilerError, UsageError
from hprofiler.base.row_files import Table, write_csv, write_parquet
from hprofiler.resolve import YarnOptions
from hprofiler.resolve.hdfs import HdfsPath, hdfs_path
from hprofiler.resolve.yarn.rest import Rest
from hprofiler.spark import export
from hprofiler.spark.application import TASK_COLUMNS, Application
from hprofiler.spark.figures import figures, job_records, stage_records
from hprofiler.spark.log.files import local_files
from hprofiler.spark.log.reading import read_application
from tests.unit.spark_application import ANSWERS, ID, LOG, served
from tests.unit.yarn_server import APP, CLUSTER, Answer, Server, log_answer, remote_exception, site

API = f"/api/v1/applications/{ID}"


def archive(**files: bytes) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as into:
        for name, content in files.items():
            into.writestr(name.replace("__", "/"), content)
    return packed.getvalue()


@pytest.fixture
def server() -> Iterator[Server]:
    """A history server that has no event logs to give away, as a driver."""
    environment = {
        "runtime": {"javaVersion": "17", "scalaVersion": "2.13"},
        "sparkProperties": [["spark.master", "local[2]"], ["spark.my.password", "s"], 5],
    }
    with Server({**served(), f"{API}/environment": environment}) as found:
        yield found


def read(source: object, **options: Any) -> Application:
    return read_source(str(source), YarnOptions(**options))


def rows(application: Application) -> list[tuple[int, ...]]:
    names = ("tid", "launch", "finish", "status", "cpu_time")
    return sorted(row for stage in application.stages.values() for row in stage.tasks.columns(*names))


KNOWN = rows(read_application(local_files(LOG)))


def test_an_event_log_from_a_history_server(server: Server) -> None:
    lines = LOG.read_bytes().splitlines(keepends=True)
    folder = f"eventlog_v2_{ID}__"
    for packed in (
        archive(**{ID: LOG.read_bytes()}),
        archive(
            **{
                f"{folder}events_10_{ID}": b"".join(lines[20:]),
                f"{folder}events_9_{ID}.compact": b"".join(lines[:20]),
                f"{folder}events_9_{ID}": b"old",
                f"{folder}appstatus_{ID}": b"",
            }
        ),
    ):
        server.set({f"{API}/logs": log_answer(packed)})
        assert rows(read(f"{server.address}/history/{ID}/stages/")) == KNOWN


def test_the_rest_interface_where_there_is_no_log(server: Server) -> None:
    application = read(f"{server.url}/history/{ID}")
    ended = [row for row in rows(application) if row[3]]
    assert ended and set(ended) < set(KNOWN)
    assert [note.code for note in application.notes] == ["by-rest"]
    assert application.properties == {"spark.master": "local[2]", "spark.my.password": "*********(redacted)"}
    assert application.driver == "127.0.0.1"
    found = figures(application)
    jobs = {job["jobId"]: job["numCompletedTasks"] for job in job_records(application, found)}
    assert jobs and max(jobs.values()) > 0
    assert {one["stageId"] for one in stage_records(found)} >= {0, 1, 2}
    (driver,) = application.executors.values()
    assert driver.total_duration == found.work["succeeded"].sums["taskTime"], "not the application's age"


def test_an_attempt_that_is_named(server: Server) -> None:
    (newest,) = ANSWERS[f"/applications/{ID}"]["attempts"]
    attempts = [{**newest, "attemptId": "2"}, {**newest, "attemptId": "1", "sparkUser": "of-the-first"}]
    for number in (1, 2):
        server.set(served({path.replace(f"{ID}/", f"{ID}/{number}/"): one for path, one in ANSWERS.items()}))
    server.set({API: {**ANSWERS[f"/applications/{ID}"], "attempts": attempts}})
    newest_one = read(f"{server.url}/history/{ID}")
    (note,) = (note for note in newest_one.notes if note.code == "other-attempts")
    assert (newest_one.attempt, note.count) == ("2", 1)
    first = read(f"{server.url}/history/{ID}/1/stages/")
    assert (first.attempt, first.user) == ("1", "of-the-first")
    assert [note.code for note in first.notes] == ["by-rest"]
    with pytest.raises(HprofilerError, match="has no attempt 3"):
        read(f"{server.url}/history/{ID}/3")


def test_an_archive_of_several_attempts(server: Server, tmp_path: Path) -> None:
    """Spark's page gives one for the whole application. It may be a file, too."""
    first, second = (
        LOG.read_bytes().replace(b'"App ID"', b'"App Attempt ID":"%d","App ID"' % n) for n in (1, 2)
    )
    several = archive(**{f"{ID}_1.zstd": first, f"eventlog_v2_{ID}_2__events_1_{ID}_2": second})
    (attempt,) = ANSWERS[f"/applications/{ID}"]["attempts"]
    server.set({API: {**ANSWERS[f"/applications/{ID}"], "attempts": [{**attempt, "attemptId": "1"}]}})
    server.set({f"{API}/1/logs": log_answer(several)})
    found = read(f"{server.url}/history/{ID}")
    assert (found.attempt, rows(found)) == ("1", KNOWN)
    assert [note.code for note in found.notes] == ["no-end"]
    path = tmp_path / "eventLogs.zip"
    path.write_bytes(several)
    with pytest.raises(HprofilerError, match="several event logs"):
        read(path)
    path.write_bytes(archive(**{ID: first}))
    assert rows(read(path)) == KNOWN


def test_an_archive_that_is_none(server: Server) -> None:
    server.set({f"{API}/logs": log_answer(b"no archive")})
    notes = read(f"{server.url}/history/{ID}").notes
    assert [note.code for note in notes] == ["by-rest"], "a driver has no log to give"
    (attempt,) = ANSWERS[f"/applications/{ID}"]["attempts"]
    ended = {**attempt, "completed": True, "endTime": attempt["startTime"]}
    server.set({API: {**ANSWERS[f"/applications/{ID}"], "attempts": [ended]}})
    notes = read(f"{server.url}/history/{ID}").notes
    assert [note.code for note in notes] == ["by-rest", "not-downloaded"] and "zip" in notes[1].detail


def test_an_application_that_no_server_knows(server: Server) -> None:
    with pytest.raises(HprofilerError, match="not found") as failed:
        read(f"{server.url}/history/app-1")
    assert "history:18080" in failed.value.remedy


def test_an_ended_application_by_its_id(server: Server) -> None:
    """YARN's proxy links to the page of the history server."""
    server.set(
        {f"/history/{ID}/1": Answer(b"<html>"), f"{API}/logs": log_answer(archive(x=LOG.read_bytes()))}
    )
    with Server() as manager:
        page = {"state": "FINISHED", "trackingUrl": f"{manager.url}/proxy/{APP}/"}
        there = Answer(b"", 302, {"Location": f"{server.url}/history/{ID}/1"})
        manager.set({f"{CLUSTER}/apps/{APP}": {"app": page}, f"/proxy/{APP}/": there})
        assert rows(read(APP, urls=manager.url)) == KNOWN
        manager.set({f"{CLUSTER}/apps/{APP}": {"app": {"state": "KILLED", "trackingUrl": "N/A"}}})
        with pytest.raises(HprofilerError, match="links to no history server"):
            read(APP, urls=manager.url)


def test_hdfs(monkeypatch: pytest.MonkeyPatch) -> None:
    """A NameNode names the DataNode that has the file; a login is not for that."""
    monkeypatch.setenv("HADOOP_USER_NAME", "etl")
    lines = LOG.read_bytes().splitlines(keepends=True)
    parts = {f"events_2_{ID}": lines[20:], f"events_1_{ID}": lines[:20]}
    with Server() as name_node, Server() as data_node:
        listed = [{"pathSuffix": name, "type": "FILE"} for name in (*parts, f"appstatus_{ID}")]
        name_node.set({"/webhdfs/v1/logs/a%20b": {"FileStatuses": {"FileStatus": listed}}})
        for name, part in parts.items():
            there = Answer(b"", 307, {"Location": f"{data_node.url}/{name}?op=OPEN"})
            name_node.set({f"/webhdfs/v1/logs/a%20b/{name}": there})
            data_node.set({f"/{name}": Answer(b"".join(part))})
        assert rows(read(f"webhdfs://user:pw@{name_node.address}/logs/a b")) == KNOWN
        assert all("user.name=etl" in query for _, query in name_node.asked)
        assert all("Authorization" in headers for headers in name_node.headers)
        assert not any("Authorization" in headers for headers in data_node.headers)
        with pytest.raises(HprofilerError, match="/logs/none does not exist"):
            read(f"hdfs://{name_node.address}/logs/none")


def test_the_active_name_node_answers() -> None:
    refused = remote_exception(403, "Operation category READ is not supported in state standby")
    with Server({"*": refused}) as standby, Server() as active:
        listed = {"FileStatuses": {"FileStatus": [{"pathSuffix": "", "type": "FILE"}]}}
        path = HdfsPath((standby.url, active.url), "/log")
        active.set({"/webhdfs/v1/log": listed, "/webhdfs/v1/": {"FileStatus": {}}})
        rest = Rest()
        assert path.names(rest) is None
        active.set({"/webhdfs/v1/log": Answer(b"content")})
        with path.open(rest) as body:
            assert (body.read(3), body.read(100), body.read(1)) == (b"con", b"tent", b"")


@pytest.mark.parametrize(
    ("address", "base"),
    [
        ("hdfs://nn/x", "http://nn:9870"),
        ("hdfs://nn:8020/x", "http://nn:9870"),
        ("hdfs://nn:50070/x", "http://nn:50070"),
        ("swebhdfs://nn:9871/x", "https://nn:9871"),
        ("swebhdfs://nn/x", "https://nn:9871"),
        ("hdfs://[::1]:9870/x", "http://[::1]:9870"),
    ],
)
def test_addresses_of_hdfs(address: str, base: str) -> None:
    found = hdfs_path(address, {})
    assert (found.bases, found.path) == ((base,), "/x")


@pytest.mark.parametrize("service", ["prod", "NameService1"])
def test_name_services(tmp_path: Path, service: str) -> None:
    def written(name: str, properties: dict[str, str]) -> None:
        (tmp_path / name).write_text(site(properties))

    written("core-site.xml", {"fs.defaultFS": f"hdfs://{service}"})
    nodes = {f"dfs.namenode.http-address.{service}.{node}": f"{node}:9870" for node in ("nn1", "nn2")}
    written("hdfs-site.xml", {f"dfs.ha.namenodes.{service}": "nn1, nn2", **nodes})
    environment = {"HADOOP_CONF_DIR": str(tmp_path)}
    for address in (f"hdfs://{service}/x", "hdfs:///x"):
        assert hdfs_path(address, environment).bases == ("http://nn1:9870", "http://nn2:9870")
    assert hdfs_path("swebhdfs:///x", environment).bases == (f"https://{service}:9871",)
    written("hdfs-site.xml", {})
    assert hdfs_path("hdfs:///a?b#c d", environment) == HdfsPath((f"http://{service}:9870",), "/a?b#c d")
    with pytest.raises(UsageError, match="names no NameNode"):
        hdfs_path("hdfs:///x", {})


def test_object_stores() -> None:
    files = fsspec.filesystem("memory")
    lines = LOG.read_bytes().splitlines(keepends=True)
    files.pipe({"/logs/one": LOG.read_bytes(), f"/rolled/events_1_{ID}": b"".join(lines)})
    for address in ("memory://logs/one", "memory://rolled"):
        assert rows(read(address)) == KNOWN
    with pytest.raises(HprofilerError, match="memory://logs/none"):
        read("memory://logs/none")
    with pytest.raises(UsageError, match="nothing"):
        read("nothing://logs")


def test_an_object_store_that_fails_while_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in: no store at hand fails in the middle."""

    def fail(*_: object) -> bytes:
        raise OSError("token expired")

    fsspec.filesystem("memory").pipe({"/logs/one": LOG.read_bytes()})
    monkeypatch.setattr("fsspec.implementations.memory.MemoryFile.read", fail)
    with pytest.raises(HprofilerError, match="memory://logs/one: token expired") as failed:
        read("memory://logs/one")
    assert "login" in failed.value.remedy

    class NoLogin(Exception):
        pass

    def refuse(*_: object) -> None:
        raise NoLogin

    monkeypatch.setattr("fsspec.core.url_to_fs", refuse)
    with pytest.raises(HprofilerError, match="memory://logs/one: NoLogin"):
        read("memory://logs/one")


def test_names_of_local_files_are_taken_as_they_are(tmp_path: Path) -> None:
    path = tmp_path / "a?b#c%20d"
    path.write_bytes(LOG.read_bytes())
    for source in (str(path), f"file://{path}", f"file://localhost{path}"):
        assert rows(read(source)) == KNOWN


def test_tables_have_columns_and_types_of_late_rows(tmp_path: Path) -> None:
    """As of stages: only some have accumulators, or figures with fractions."""

    def made() -> Iterator[dict[str, object]]:
        for number in range(20_001):
            late = {"late": "x"} if number == 20_000 else {}
            yield {"id": number, "share": 1.5 if late else 1, "none": 3 if late else None, **late}

    for ending, write in (("csv", write_csv), ("parquet", write_parquet)):
        with (tmp_path / f"x.{ending}").open("wb") as file:
            write(file, Table(made))
    last = {"id": 20_000, "share": 1.5, "none": 3, "late": "x"}
    assert pyarrow.parquet.read_table(tmp_path / "x.parquet").to_pylist()[-1] == last
    with (tmp_path / "x.csv").open(newline="") as file:
        assert list(csv.DictReader(file))[-1] == {name: str(value) for name, value in last.items()}


def test_tables(tmp_path: Path) -> None:
    application = read_application(local_files(LOG))
    found = figures(application)
    assert {path.name for path in export.write_csv(application, found, tmp_path / "new")} == {
        f"{name}.csv" for name in ("application", "jobs", "stages", "executors", "tasks")
    }
    with (tmp_path / "new" / "tasks.csv").open(newline="") as file:
        tasks = list(csv.DictReader(file))
    assert {row["tid"] for row in tasks} == {str(row[0]) for row in KNOWN}
    assert {"stageId", "duration", *TASK_COLUMNS} <= set(tasks[0]) and tasks[0]["status"] == "SUCCESS"
    export.write_parquet(application, found, tmp_path)
    for name, key in (("tasks", "tid"), ("stages", "stageId"), ("jobs", "jobId")):
        table = pyarrow.parquet.read_table(tmp_path / f"{name}.parquet")
        with (tmp_path / "new" / f"{name}.csv").open(newline="") as file:
            assert [row[key] for row in csv.DictReader(file)] == [
                str(one) for one in table.column(key).to_pylist()
            ]
    with pytest.raises(UsageError, match="cannot write"):
        export.write_csv(application, found, tmp_path / "tasks.parquet")
