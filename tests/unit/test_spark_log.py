"""Event logs: Java's framings, cut and damaged files, hostile lines, what is missing."""

from __future__ import annotations

import gzip
import io
import json
import random
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import cramjam
import msgspec
import pytest
import zstandard

from hprofiler.spark.application import FAILED, KILLED, RUNNING, SUCCESS, Application, TaskTable
from hprofiler.spark.facts import SparkError
from hprofiler.spark.figures import figures, stage_figures
from hprofiler.spark.log import reading as event_log
from hprofiler.spark.log.codecs import Decoded
from hprofiler.spark.log.files import gaps, in_order, local_files
from hprofiler.spark.log.reading import MASK, read_application
from hprofiler.spark.replay.schedule import Replay
from hprofiler.spark.timeline import timeline
from tests.unit.spark_application import LOG, event, stage_event, task_event

PLAIN = LOG.read_bytes() * 20
PIECES = [PLAIN[at : at + 32_000] for at in range(0, len(PLAIN), 32_000)]
PIECE_OF_LZF = 8000


# Codecs


def gzipped(pieces: Iterable[bytes]) -> bytes:
    return b"".join(map(gzip.compress, pieces))


def zstd(pieces: Iterable[bytes]) -> bytes:
    return b"".join(map(zstandard.ZstdCompressor().compress, pieces))


def lz4_block(plain: bytes, raw: bool = False) -> bytes:
    packed = plain if raw else bytes(cramjam.lz4.compress_block(plain, store_size=False))
    sizes = len(packed).to_bytes(4, "little") + len(plain).to_bytes(4, "little")
    return b"LZ4Block" + bytes([0x16 if raw else 0x26]) + sizes + b"\0\0\0\0" + packed


def lz4(pieces: Iterable[bytes]) -> bytes:
    """Streams that follow each other, each with an end; every second block is not packed."""
    end = lz4_block(b"", raw=True)
    return b"".join(lz4_block(piece, number % 2 == 1) + end for number, piece in enumerate(pieces))


def snappy_java(pieces: Iterable[bytes]) -> bytes:
    head = b"\x82SNAPPY\0" + (1).to_bytes(4, "big") * 2
    packed = [bytes(cramjam.snappy.compress_raw(piece)) for piece in pieces]
    return b"".join(head + len(one).to_bytes(4, "big") + one for one in packed)


def lzf_chunk(plain: bytes) -> bytes:
    """Literal bytes, and references where the last 40 bytes come again."""
    packed, at = bytearray(), 0
    while at < len(plain):
        length = 0
        while (
            at >= 40
            and length < 264
            and plain[at + length : at + length + 1] == plain[at + length - 40 : at + length - 39]
            and at + length < len(plain)
        ):
            length += 1
        if length >= 9:
            packed += bytes([7 << 5, length - 9, 39])
            at += length
            continue
        run = plain[at : at + 32]
        packed += bytes([len(run) - 1]) + run
        at += len(run)
    return b"ZV\1" + len(packed).to_bytes(2, "big") + len(plain).to_bytes(2, "big") + bytes(packed)


def lzf(pieces: Iterable[bytes]) -> bytes:
    found = b""
    for number, piece in enumerate(pieces):
        for at in range(0, len(piece), PIECE_OF_LZF):
            part = piece[at : at + PIECE_OF_LZF]
            stored = b"ZV\0" + len(part).to_bytes(2, "big") + part
            found += stored if number % 2 else lzf_chunk(part)
    return found


CODECS: dict[str, Callable[[Iterable[bytes]], bytes]] = {
    "plain": b"".join,
    "gzip": gzipped,
    "zstd": zstd,
    "lz4": lz4,
    "snappy": snappy_java,
    "lzf": lzf,
}


class Trickle:
    """A stream that gives a few bytes at a time, as networks do."""

    def __init__(self, content: bytes) -> None:
        self._content = io.BytesIO(content)

    def read(self, size: int, /) -> bytes:
        return self._content.read(min(size, 1777))


@pytest.mark.parametrize("codec", CODECS)
def test_codecs(codec: str) -> None:
    packed = CODECS[codec](PIECES)
    for stream in (io.BytesIO(packed), Trickle(packed)):
        decoded = Decoded(stream)
        assert b"".join(decoded) == PLAIN
        assert (decoded.cut, decoded.damage) == (False, "")


def test_references_of_lzf_may_overlap() -> None:
    plain = b"0123456789" * 700
    assert b"".join(Decoded(io.BytesIO(lzf_chunk(plain)))) == plain
    assert len(lzf_chunk(plain)) < len(plain) / 5


@pytest.mark.parametrize("codec", CODECS)
def test_a_cut_file_gives_what_is_whole(codec: str) -> None:
    packed = CODECS[codec](PIECES)
    cut = packed[: len(packed) * 3 // 4]
    decoded = Decoded(io.BytesIO(cut))
    plain = b"".join(decoded)
    assert PLAIN.startswith(plain) and len(PLAIN) / 2 < len(plain) < len(PLAIN)
    assert decoded.damage == "" and decoded.cut == (codec != "plain")


def test_an_open_frame_of_zstandard_gives_what_was_flushed() -> None:
    writer = zstandard.ZstdCompressor().compressobj()
    packed = writer.compress(PIECES[0]) + writer.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)
    assert b"".join(Decoded(io.BytesIO(zstd(PIECES) + packed))) == PLAIN + PIECES[0]


@pytest.mark.parametrize("codec", [name for name in CODECS if name != "plain"])
def test_damaged_files_end_early(codec: str) -> None:
    chance = random.Random(2)
    packed = CODECS[codec](PIECES[:4])
    for _ in range(60):
        wrong = bytearray(packed)
        for _ in range(3):
            wrong[chance.randrange(len(wrong))] = chance.randrange(256)
        for block in Decoded(io.BytesIO(bytes(wrong))):
            assert len(block) <= 1 << 25


@pytest.mark.parametrize(
    "bomb",
    [
        pytest.param(gzip.compress(bytes(300 << 20), 1), id="gzip"),
        pytest.param(zstandard.ZstdCompressor().compress(bytes(300 << 20)), id="zstd"),
        pytest.param(b"LZ4Block\x26" + b"\x40\0\0\0" + b"\xff\xff\xff\x7f" + bytes(100), id="lz4"),
        pytest.param(
            b"\x82SNAPPY\0" + bytes(8) + b"\0\0\0\x10" + b"\xff\xff\xff\xff\x07" + bytes(11), id="snappy"
        ),
    ],
)
def test_small_files_that_unpack_to_much(bomb: bytes) -> None:
    decoded = Decoded(io.BytesIO(bomb))
    assert max((len(block) for block in decoded), default=0) <= 1 << 25


def test_members_of_a_gzip_file_are_read_a_few_at_a_time() -> None:
    """What follows a member is copied: with a whole block of small ones that takes minutes."""

    class Watched(io.BytesIO):
        largest = 0

        def read(self, size: int | None = -1, /) -> bytes:
            self.largest = max(self.largest, size or 0)
            return super().read(size)

    stream = Watched(gzip.compress(b"x\n") * 5000)
    assert b"".join(Decoded(stream)) == b"x\n" * 5000
    assert 0 < stream.largest <= 1 << 12


# Files


def test_files_of_databricks_are_in_order() -> None:
    names = [
        "eventlog",
        "eventlog-2026-01-02--03-00.gz",
        "eventlog-2025-12-31--23-00.gz",
        "init.sh",
        "stderr",
    ]
    assert in_order(names) == ["eventlog-2025-12-31--23-00.gz", "eventlog-2026-01-02--03-00.gz", "eventlog"]


def test_files_that_a_rolling_log_lacks() -> None:
    assert gaps(["events_1_a", "events_2_a.zstd", "events_10_a"]) == (7, "events_3 to 9")
    assert gaps(["events_5_a.compact", "events_6_a"]) == (0, "")
    assert gaps(["events_2_a"]) == (1, "events_1")
    assert gaps(["events_1_a", "events_999999999_a"])[0] == 999_999_997
    assert gaps(["eventlog", "application_1"]) == (0, "")


# Lines


START = event("ApplicationStart", App_Name="job", App_ID="app-1", Timestamp=500, User="etl")
END = event("ApplicationEnd", Timestamp=9000)


def read(tmp_path: Path, *lines: bytes) -> Application:
    (tmp_path / "log").write_bytes(b"".join(line + b"\n" for line in lines))
    return read_application(local_files(tmp_path / "log"))


def notes(application: Application) -> dict[str, int]:
    return {note.code: note.count for note in application.notes}


def test_a_log_without_metrics_of_later_versions(tmp_path: Path) -> None:
    """Spark 1 wrote neither CPU times nor empty groups of metrics."""
    application = read(
        tmp_path,
        START,
        stage_event("StageSubmitted", **{"Submission Time": 900}),
        task_event("TaskStart", 0),
        task_event("TaskEnd", 0),
        task_event("TaskStart", 1),
        task_event("TaskEnd", 1),
        stage_event("StageCompleted", **{"Submission Time": 900, "Completion Time": 2100}),
        END,
    )
    stage = application.stages[0, 0]
    assert (stage.status, stage.start, stage.end, stage.first_task_launched) == ("COMPLETE", 900, 2100, 1000)
    assert list(stage.tasks.columns("run_time", "fetch_wait", "cpu_time")) == [(900, 7, 0)] * 2
    assert (application.id, application.user, application.end) == ("app-1", "etl", 9000)
    assert application.executors["1"].host == "node1"
    assert notes(application) == {}


@pytest.mark.parametrize(
    ("updates", "time"),
    [(("200", "100"), 300), (("900", "900"), 1000), (("-5",), 0), (("x", None, "9" * 30), 0)],
)
def test_time_of_python_workers(tmp_path: Path, updates: tuple[str | None, ...], time: int) -> None:
    """Spark 4 has it of each operator; they run at the same time, so that their sum may be too much."""
    name, more = "time to run Python workers", {"Metadata": "sql"}
    python = [{"ID": number, "Name": name, "Update": update, **more} for number, update in enumerate(updates)]
    other = {"ID": 99, "Name": "time to start Python workers", "Update": "70", **more}
    application = read(
        tmp_path, START, task_event("TaskStart", 0), task_event("TaskEnd", 0, Accumulables=[*python, other])
    )
    (stage,) = application.stages.values()
    assert list(stage.tasks.column("python_time")) == [time]


def tasks_of_two_slots(clock: Callable[[int], int]) -> Iterator[bytes]:
    """Eight tasks of 3 s and more; `clock` is what the driver's shows at a time."""
    moments = []
    for slot in range(2):
        end = 1000
        for number in range(4):
            tid, begin, end = 4 * slot + number, end, end + 3000 + 250 * slot
            moments += [(begin, 1, tid, end), (end, 0, tid, begin)]
    yield event("ApplicationStart", App_Name="job", App_ID="app-1", Timestamp=clock(500))
    stage = {"Number of Tasks": 8, "Submission Time": clock(900)}
    yield stage_event("StageSubmitted", **stage)
    for moment, begins, tid, other in sorted(moments):
        times = {"Launch Time": clock(moment if begins else other)}
        times["Finish Time"] = 0 if begins else clock(moment)
        metrics = {"Executor Run Time": 3000 + 250 * (tid // 4), "Executor CPU Time": 10**9}
        yield task_event("TaskStart" if begins else "TaskEnd", tid, metrics=metrics, **times)
    yield stage_event("StageCompleted", **stage, **{"Completion Time": clock(15_000)})
    yield event("ApplicationEnd", Timestamp=clock(16_000))


def hour_later(moment: int) -> int:
    return moment + 3_600_000 * (moment > 6000)


def hangs(moment: int) -> int:
    """What ends while the driver hangs ends afterwards."""
    return max(moment, 3_606_000) if moment > 6000 else moment


def test_a_clock_that_is_set_forward(tmp_path: Path) -> None:
    right = read(tmp_path, *tasks_of_two_slots(lambda moment: moment + 3_600_000))
    moved = read(tmp_path, *tasks_of_two_slots(hour_later))
    assert notes(moved) == {"clock-forward": 3600} and not notes(right)
    assert (moved.start, moved.end) == (right.start, right.end)
    assert (moved.executors, moved.jobs) == (right.executors, right.jobs)
    (stage,), (same,) = moved.stages.values(), right.stages.values()
    assert (stage.start, stage.end, list(stage.tasks.rows())) == (
        same.start,
        same.end,
        list(same.tasks.rows()),
    )


def test_a_driver_that_hangs(tmp_path: Path) -> None:
    application = read(tmp_path, *tasks_of_two_slots(hangs))
    assert notes(application) == {} and max(application.stages[0, 0].tasks.column("duration")) > 3_500_000


@pytest.mark.parametrize(
    ("rdd", "python"),
    [
        ({"Name": "PythonRDD"}, True),
        ({"Name": "MapPartitionsRDD", "Scope": '{"id":"7","name":"ArrowEvalPython"}'}, True),
        ({"Name": "MapPartitionsRDD", "Scope": '{"id":"8","name":"FlatMapGroupsInPandas"}'}, True),
        ({"Name": "/data/PythonRDD.txt", "Scope": '{"id":"9","name":"Scan text"}'}, False),
    ],
)
def test_stages_that_run_python(tmp_path: Path, rdd: dict[str, str], python: bool) -> None:
    rdds = [{"RDD ID": 1, "Name": "MapPartitionsRDD"}, {"RDD ID": 0, **rdd}]
    application = read(tmp_path, START, stage_event("StageSubmitted", **{"RDD Info": rdds}))
    assert application.stages[0, 0].python is python


def test_peaks_of_memory(tmp_path: Path) -> None:
    """A heartbeat after the end of a stage tells of the executor alone."""

    def heartbeat(heap: int) -> bytes:
        update = {"Stage ID": 0, "Stage Attempt ID": 0, "Executor Metrics": {"JVMHeapMemory": heap}}
        return event("ExecutorMetricsUpdate", Executor_ID="1", Executor_Metrics_Updated=[update])

    application = read(
        tmp_path,
        START,
        stage_event("StageSubmitted", **{"Submission Time": 900}),
        heartbeat(50),
        heartbeat(40),
        stage_event("StageCompleted", **{"Submission Time": 900, "Completion Time": 2100}),
        heartbeat(70),
    )
    assert application.stages[0, 0].peaks == {"JVMHeapMemory": (50, "1")}
    assert application.executors["1"].peak == {"JVMHeapMemory": 70}


def test_ends_that_spark_dropped_are_counted(tmp_path: Path) -> None:
    times = {"Submission Time": 900, "Completion Time": 2100}
    application = read(
        tmp_path,
        START,
        stage_event("StageSubmitted", **times),
        task_event("TaskStart", 0),
        task_event("TaskEnd", 0),
        task_event("TaskStart", 1),
        stage_event("StageCompleted", **times),
        stage_event("StageSubmitted", 1, **times),
        event("JobStart", Job_ID=3, Submission_Time=800, Stage_IDs=[1]),
        END,
    )
    assert notes(application) == {"tasks-missing": 1, "stages-missing": 1, "jobs-missing": 1}
    assert list(application.stages[0, 0].tasks.column("status")) == [SUCCESS, RUNNING]


def test_how_tasks_ended(tmp_path: Path) -> None:
    application = read(
        tmp_path,
        START,
        *(task_event("TaskStart", tid) for tid in range(4)),
        task_event("TaskEnd", 0),
        task_event("TaskEnd", 1, "ExceptionFailure"),
        task_event("TaskEnd", 2, "TaskKilled"),
        task_event("TaskEnd", 3, "TaskCommitDenied"),
        task_event("TaskEnd", 0, "Resubmitted"),
    )
    stage = application.stages[0, 0]
    assert list(stage.tasks.column("status")) == [SUCCESS, FAILED, KILLED, KILLED]
    assert (stage.failures, stage.kills, stage.resubmitted) == (
        {"ExceptionFailure": 1},
        {"TaskKilled": 1, "TaskCommitDenied": 1},
        1,
    )


def test_lines_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_log, "_LONGEST_LINE", 3 << 20)
    long = b'{"Event":"SparkListenerJobStart","x":"' + b"x" * (4 << 20) + b'"}'
    whole = b'{"Event":"SparkListenerJobStart","Job ID":1,"x":"' + b"x" * (2 << 20) + b'"}'
    turned = json.dumps(
        {"Timestamp": 500, "Event": "SparkListenerApplicationStart", "App Name": "turned"}
    ).encode()
    bad = [b"\xff\xfe", b"{", b'{"Event":"', b'{"Event":5}', task_event("TaskEnd", 0)[:-20], b"[1]"]
    application = read(tmp_path, turned, *bad, long, whole, b'{"Event":"com.example.Other"}', b"  ")
    assert notes(application) == {"damaged": len(bad), "too-long": 1, "no-end": 0}
    assert application.name == "turned" and list(application.jobs) == [1]


def test_numbers_may_be_anything(tmp_path: Path) -> None:
    lines = [
        task_event(
            "TaskEnd", 0, **{"Launch Time": value, "Finish Time": -value, "Index": -value, "Attempt": value}
        )
        for value in (-(1 << 53), 1 << 53, -1, 0)
    ]
    application = read(tmp_path, *lines, task_event("TaskEnd", 1 << 70), task_event("TaskEnd", -1))
    assert len(application.stages[0, 0].tasks) == len(lines) + 1
    assert (notes(application)["damaged"], notes(application)["repaired"]) == (1, 1)


def test_what_is_beyond_the_limits_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MOST_JOBS", "MOST_STAGES", "MOST_TASKS", "MOST_EXECUTORS"):
        monkeypatch.setattr(event_log, name, 2)
    executors = [event("ExecutorAdded", Executor_ID=str(number)) for number in range(5)]
    jobs = [event("JobStart", Job_ID=number) for number in range(5)]
    stages = [stage_event("StageSubmitted", number) for number in range(5)]
    tasks = [task_event("TaskEnd", number, **{"Executor ID": str(number)}) for number in range(5)]
    application = read(tmp_path, START, *executors, *jobs, *stages, *tasks)
    found = notes(application)
    assert (found["jobs-not-kept"], found["stages-not-kept"], found["tasks-not-kept"]) == (3, 3, 3)
    assert len(application.jobs) == len(application.stages) == 2 and len(application.executors) <= 3
    monkeypatch.setattr(event_log, "_MOST_PENDING", 1)
    infos = [{"Stage ID": number, "Stage Attempt ID": 0} for number in range(2)]
    job = event("JobStart", Job_ID=0, Stage_IDs=[0, 1], Stage_Infos=infos)
    assert notes(read(tmp_path, START, job))["stages-not-kept"] == 1


def test_the_launch_of_a_task_is_an_event(tmp_path: Path) -> None:
    """In a log that ends there, nothing ran longer than until then."""
    started = stage_event("StageSubmitted", 0)
    assert read(tmp_path, START, started, task_event("TaskStart", 0, **{"Launch Time": 7000})).until == 7000


def test_secrets_are_masked(tmp_path: Path) -> None:
    secret = {
        "spark.hadoop.fs.s3a.secret.key": "s",
        "spark.hadoop.fs.s3a.access.key": "s",
        "spark.ssl.keyPassword": "s",
        "spark.hadoop.fs.azure.account.key.x.net": "s",
        "spark.my.TOKEN": "s",
        "spark.hadoop.fs.azure.sas.c.acct.blob.core.windows.net": "s",
        "spark.my.header": "Bearer s",
        "spark.executorEnv.DB_PASS": "s",
        "spark.executorEnv.DBPASS": "s",
        "spark.yarn.appMasterEnv.pass": "s",
        "spark.db.pass.primary": "s",
        "spark.pwd.main": "s",
        "spark.dbpass1": "s",
        "spark.my.pw": "s",
        "spark.x.signature.v": "s",
        "spark.my.encryption.key.id": "s",
        "spark.db.password": "&&s",
        "spark.my.arguments": "-x --db-pass hunter2",
        "spark.executor.extraJavaOptions": "-Djavax.net.ssl.trustStorePassword=s",
        "spark.jdbc": "jdbc:postgresql://etl:s@db/x",
    }
    open_ = {"spark.executor.memory": "4g", "spark.master": "yarn", "spark.app.name": "compass"}
    open_ |= {"spark.x.partitionKey": "id", "spark.x.monkey": "1", "spark.io.encryption.keySizeBits": "128"}
    application = read(tmp_path, event("EnvironmentUpdate", Spark_Properties={**secret, **open_}))
    assert application.properties == {**dict.fromkeys(secret, MASK), **open_}


def test_skew_of_data_is_of_all_bytes_that_tasks_read(tmp_path: Path) -> None:
    sizes = [(100, 0, 0), (0, 150, 50), (0, 0, 300), (900, 0, 0)]
    table = TaskTable.of(
        {"status": SUCCESS, "input_bytes": one, "shuffle_remote_bytes": two, "shuffle_local_bytes": three}
        for one, two, three in sizes
    )
    application = read(tmp_path, START, stage_event("StageSubmitted", 0))
    stage = msgspec.structs.replace(application.stages[0, 0], tasks=table)
    assert stage_figures(stage).data_skew == 900 / 250
    one_of_four = TaskTable.of({"status": SUCCESS, "input_bytes": size} for size in (0, 0, 0, 900))
    assert stage_figures(msgspec.structs.replace(stage, tasks=one_of_four)).data_skew == 4, "by the mean"
    assert stage_figures(msgspec.structs.replace(stage, tasks=TaskTable.of([]))).data_skew == 0


@pytest.mark.parametrize("missing", ["Launch Time", "Finish Time"])
def test_times_are_without_tasks_that_lack_them(tmp_path: Path, missing: str) -> None:
    lines = (
        task_event("TaskStart", 0, **{missing: 0}),
        task_event("TaskEnd", 0, **{missing: 0}),
        task_event("TaskEnd", 1),
    )
    application = read(tmp_path, START, *lines, END)
    (stage,) = figures(application).stages
    assert (stage.work["succeeded"].tasks, stage.median, stage.task_time) == (2, 1000, 1000)
    assert timeline(application).start == 1000 and max(timeline(application).most) == 1
    assert Replay(application).left_out.count == {"without times": 1}
    assert notes(application)["without-times"] == 1


def test_a_cut_file_that_others_follow(tmp_path: Path) -> None:
    """A newest file that is cut may be that of a running application; before it, events are lost."""
    folder = tmp_path / "eventlog_v2_app-1"
    folder.mkdir()
    parts = [START, task_event("TaskEnd", 0), task_event("TaskEnd", 1)]
    for number, line in enumerate(parts, 1):
        (folder / f"events_{number}_app-1.zstd").write_bytes(zstd([line + b"\n"]))
    whole = read_application(local_files(folder))
    assert notes(whole) == {"no-end": 0}
    for number, expected in ((2, {"cut-inside": 1, "no-end": 0}), (3, {"cut": 1, "no-end": 0})):
        path = folder / f"events_{number}_app-1.zstd"
        packed = path.read_bytes()
        path.write_bytes(packed[:-3])
        application = read_application(local_files(folder))
        assert notes(application) == expected
        path.write_bytes(packed)


def test_a_cut_file_that_ends_with_a_whole_line(tmp_path: Path) -> None:
    writer = zstandard.ZstdCompressor().compressobj()
    content = START + b"\n" + task_event("TaskEnd", 0)
    packed = writer.compress(content) + writer.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)
    (tmp_path / "log").write_bytes(packed)
    application = read_application(local_files(tmp_path / "log"))
    assert len(application.stages[0, 0].tasks) == 1 and notes(application)["cut"] == 1


def test_figures_of_two_applications_are_not_added_up(tmp_path: Path) -> None:
    other = event("ApplicationStart", App_Name="other", App_ID="app-2")
    with pytest.raises(SparkError, match="app-1, and app-2"):
        read(tmp_path, START, END, other, END)
    assert read(tmp_path, START, START, END).name == "job"


def test_a_line_of_too_many_objects_is_left_out(tmp_path: Path) -> None:
    """They would take ten times its memory."""
    plan = b'"sparkPlanInfo":{"children":[' + b"{}," * 120_000 + b"{}]}"
    name = b"org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionStart"
    line = b'{"Event":"' + name + b'","executionId":0,' + plan + b"}"
    application = read(tmp_path, START, line, END)
    assert not application.sql and notes(application) == {"too-many": 1}
