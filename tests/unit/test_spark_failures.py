"""What failed in an application, and why: small logs made for this, and messages as Spark writes them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hprofiler.analysis.spark.failures import MOST_CAUSES, Failures, failure_findings, find_failures
from hprofiler.analysis.spark.finding import SparkFinding
from hprofiler.analysis.spark.words import sentence
from hprofiler.spark.causes import MASK, cause_of
from hprofiler.spark.log.files import local_files
from hprofiler.spark.log.reading import read_application
from tests.unit.spark_application import event, stage_event, task_event

CASES = Path(__file__).with_name("spark") / "cases"


@pytest.mark.parametrize(
    ("case", "begin", "failed"),
    [
        (
            "root-cause",
            "1 of 3 jobs failed in stage 1.0: java.lang.OutOfMemoryError: Java heap space (2 more jobs",
            ((1,), (), 2, 0),
        ),
        ("aqe-cancelled", "", ((), (), 0, 1)),
        (
            "caused-by",
            "The job failed in stage 0.0: java.io.IOException: No space left on device.",
            ((0,), (), 0, 0),
        ),
        (
            "lost-executor-reason",
            "The job failed in stage 0.0: executor 1 was lost: Container killed by YARN for exceeding "
            "physical memory limits. 9.1 GB of 9 GB physical memory used.",
            ((0,), (), 0, 0),
        ),
        ("python-sqlstate", "The job failed in stage 0.0: ValueError: bad record 17.", ((0,), (), 0, 0)),
        (
            "sql-failed-in-driver",
            "Query 0 failed in the driver: org.apache.spark.SparkException: Could not execute broadcast in "
            "300 secs.",
            ((), (0,), 0, 0),
        ),
    ],
)
def test_the_earliest_cause_is_named(case: str, begin: str, failed: tuple[Any, ...]) -> None:
    found = find_failures(read_application(local_files(CASES / case)))
    assert sentence(failure_findings(found)).startswith(begin) and bool(begin) == bool(found.causes)
    assert (found.jobs, found.queries, found.consequences, found.cancelled) == failed


_TRACE = 'Traceback (most recent call last):\n  File "a.py", line 7, in f\n    raise X\nValueError: {}\n'
_LOST = "Task 1 failed 3 times, most recent failure: Lost task 1.2 in stage 1.0 (TID 11) (n1 executor 2): "
_FROM = "The above exception was the direct cause of the following exception:"
_DURING = "During handling of the above exception, another exception occurred:"
_STACK = "\n\tat a.b(C:1)\n"


@pytest.mark.parametrize(
    ("message", "cause"),
    [
        ("Job 0 cancelled by etl", "Job 0 cancelled by etl"),
        (_TRACE.format("bad row"), "ValueError: bad row"),
        (_TRACE.format("line 1\nline 2"), "ValueError: line 1 line 2"),
        (_TRACE.format("token=hunter2 is bad"), f"ValueError: token={MASK}"),
        ("a.Refused: Authorization: Bearer hunter2", "a.Refused: Authorization: *** ***"),
        ("Authorization: Bearer hunter2", "Authorization: *** ***"),
        ("a.B: jdbc:x://kim:hunter2@db/t refused", "a.B: jdbc:x://***@db/t refused"),
        ("a.B: no method in a.B@1f2e3d: c.D$E@5c", "a.B: no method in a.B@1f2e3d: c.D$E@5c"),
        ("a.NotFound: s3://b/t/key=5/part-0 missing", "a.NotFound: s3://b/t/key=5/part-0 missing"),
        (f"Job aborted: {_LOST}a.PythonException: {_TRACE.format('bad row')}{_STACK}", "ValueError: bad row"),
        ("… most recent failure: Lost task 0.3 in stage 2.0 (TID 3, n1): a.Lost: it\n\tat x", "a.Lost: it"),
        (
            f"{_LOST}a.B: no{_STACK}\t... 3 more\nCaused by: c.D: more{_STACK}Caused by: e.F: full{_STACK}"
            "\n\nDriver stacktrace:\n\tat g.h",
            "e.F: full",
        ),
        (f"a.B: cannot read f.parquet{_STACK}Caused by: java.io.EOFException{_STACK}",
         "a.B: cannot read f.parquet: caused by java.io.EOFException"),
        (f"a.B: no{_STACK}\tSuppressed: c.D: also{_STACK}\tCaused by: e.F: not this{_STACK}", "a.B: no"),
        (
            "ShuffleMapStage 3 (collect at A.scala:1) has failed the maximum allowable number of "
            f"times: 4. Most recent failure reason:\na.FetchFailedException: no connection to n3{_STACK}",
            "a.FetchFailedException: no connection to n3",
        ),
        (
            f"{_LOST}FetchFailed(BlockManagerId(1, h, 7337, None), shuffleId=0, mapId=1, message=\n"
            f"a.FetchFailedException: no connection to n3{_STACK}\n)",
            "a.FetchFailedException: no connection to n3",
        ),
        (
            "Job aborted due to stage failure: Aborting TaskSet 1.0 because task 0 (partition 0)\ncannot run "
            f"anywhere.\nMost recent failure:\nLost task 0.1 in stage 1.0 (TID 3, h): a.B: x{_STACK}",
            "a.B: x",
        ),
        (
            "Job aborted due to stage failure: Could not recover from a failed barrier ResultStage. Most "
            "recent failure reason: Stage failed because barrier task T(1, 0) finished unsuccessfully.\n"
            f"a.RuntimeException: not today{_STACK}",
            "a.RuntimeException: not today",
        ),
        (
            f"{_LOST}ExecutorLostFailure (executor 2 exited caused by one of the running tasks) Reason: "
            "Command exited with code 137\nDriver stacktrace:",
            "executor 2 was lost: Command exited with code 137",
        ),
        (
            f"{_LOST}a.SparkException: Python worker exited unexpectedly (crashed){_STACK}Caused by: "
            f"java.io.EOFException{_STACK}",
            "org.apache.spark.SparkException: Python worker exited unexpectedly (crashed)",
        ),
        (_TRACE.format("first") + f"\n{_FROM}\n\n" + _TRACE.format("second"), "ValueError: first"),
        (_TRACE.format("first") + f"\n{_DURING}\n\n" + _TRACE.format("second"), "ValueError: first"),
        ('{"errorClass":"NO_TABLE","messageParameters":{"name":"`a`.`b`"}}', "[NO_TABLE] name: `a`.`b`"),
        ('{"errorClass":"NO_TABLE","messageParam', '{"errorClass":"NO_TABLE","messageParam'),
        (
            f"{_TRACE}p.Py4JJavaError: An error occurred while calling o7.save.\n: a.B: no{_STACK}"
            f"Caused by: c.D: full{_STACK}",
            "c.D: full",
        ),
        ("p.ConnectGrpcException: (a.ArithmeticException) / by zero", "a.ArithmeticException: / by zero"),
        ("Job aborted due to stage failure: Task serialization failed: a.NotSerializableException: b.C",
         "Task serialization failed: a.NotSerializableException: b.C"),
    ],
)  # fmt: skip
def test_the_cause_in_a_message(message: str, cause: str) -> None:
    assert cause_of(message).text == cause


@pytest.mark.parametrize(
    ("message", "cause"),
    [
        ("a.B: x" + "\n" * 300_000 + "y", "a.B: x"),
        ("a.B: x" + " " * 300_000 + "y", "a.B: x"),
        (f"a.B: x{_STACK * 3000}Caused by: c.D: full{_STACK}", "c.D: full"),
        (f"a.B: {'x ' * 485}u=https://kim:{'s' * 60}@host", f"a.B: {'x ' * 485}u=https://***"),
        (f"a.B: {'x ' * 495}token=hunter2 y", f"a.B: {'x ' * 495}token=****"),
        (f"a.B: cannot parse {'AbC+/' * 600}=", f"a.B: cannot parse {'AbC+/' * 100}"),
    ],
)  # fmt: skip
def test_a_long_message_takes_little_time_and_is_cut(message: str, cause: str) -> None:
    assert cause_of(message).text.startswith(cause)
    assert len(cause_of(message).text) < 1010


BEGIN = event("ApplicationStart", App_ID="app-1", Timestamp=1000)
JOB = event("JobStart", Job_ID=0, Stage_IDs=[0], Stage_Infos=[{"Stage ID": 0, "Number of Tasks": 1}])
SUBMITTED = stage_event("StageSubmitted", 0, **{"Submission Time": 1000})


def failures_of(tmp_path: Path, *lines: bytes) -> Failures:
    log = tmp_path / "log"
    log.write_bytes(b"\n".join([BEGIN, *lines, b""]))
    return find_failures(read_application(local_files(log)))


def failed(message: str) -> list[bytes]:
    """The end of stage 0 and of its job."""
    ended = stage_event("StageCompleted", 0, **{"Completion Time": 5000, "Failure Reason": message})
    result = {"Result": "JobFailed", "Exception": {"Message": message}}
    return [ended, event("JobEnd", Job_ID=0, Completion_Time=5000, Job_Result=result)]


def attempt(tid: int, **reason: Any) -> bytes:
    return task_event("TaskEnd", tid, Index=0).replace(
        b'"Reason":"Success"', ",".join(f'"{key}":"{value}"' for key, value in reason.items()).encode()
    )


def test_attempts_that_failed_because_of_the_first_do_not_hide_it(tmp_path: Path) -> None:
    def exception(tid: int, kind: str, said: str) -> bytes:
        return attempt(tid, Reason="ExceptionFailure", **{"Class Name": kind, "Description": said})

    tasks = [exception(0, "java.io.IOException", "disk full")]
    tasks += [exception(tid, "a.FileAlreadyExistsException", "part-0") for tid in (1, 2, 3)]
    end = failed("Task 0 in stage 0.0 failed 4 times, most recent failure: Lost task 0.3 in stage 0.0 "
                 "(TID 3) (n): a.FileAlreadyExistsException: part-0")  # fmt: skip
    found = failures_of(tmp_path, JOB, SUBMITTED, *tasks, *end)
    assert [one.cause.text for one in found.causes] == ["java.io.IOException: disk full"]


def test_a_failed_fetch_is_the_end_of_the_executor_that_had_the_blocks(tmp_path: Path) -> None:
    address = '{"Executor ID":"7","Host":"n7","Port":1}'
    fetch = attempt(0, Reason="FetchFailed", Message="Failed to connect to n7").replace(
        b'"Message"', b'"Block Manager Address":' + address.encode() + b',"Message"'
    )
    added = event(
        "ExecutorAdded", Executor_ID="7", Timestamp=1000, Executor_Info={"Host": "n7", "Total Cores": 1}
    )
    removed = event("ExecutorRemoved", Executor_ID="7", Timestamp=3000,
                    Removed_Reason="Container killed by YARN for exceeding memory limits.")  # fmt: skip
    end = failed("ResultStage 0 has failed the maximum allowable number of times: 4. Most recent failure "
                 "reason:\na.FetchFailedException: Failed to connect to n7")  # fmt: skip
    (cause,) = failures_of(tmp_path, JOB, added, SUBMITTED, removed, fetch, *end).causes
    assert (cause.cause.executor, cause.time, cause.stage) == ("7", 3000, (0, 0))
    assert cause.cause.text.startswith("executor 7 was lost: Container killed by YARN")


def test_an_application_that_gives_up_after_executors_were_lost(tmp_path: Path) -> None:
    reason = "Command exited with code 137"
    removed = event("ExecutorRemoved", Executor_ID="7", Timestamp=3000, Removed_Reason=reason)
    job = failed("Job 0 cancelled because SparkContext was shut down")
    end = event("ApplicationEnd", Timestamp=6000, ExitCode=11)
    found = failures_of(tmp_path, JOB, SUBMITTED, removed, *job, end)
    assert sentence(failure_findings(found)) == (
        f"The job ended only because SparkContext was shut down, after executor 7 was lost: {reason}."
    )
    assert (found.jobs, found.exit_code) == ((), 11)


def test_an_exit_code_is_named_beside_jobs_that_were_cut_off(tmp_path: Path) -> None:
    job = failed("Job 0 cancelled because SparkContext was shut down")
    found = failures_of(tmp_path, JOB, SUBMITTED, *job, event("ApplicationEnd", Timestamp=6000, ExitCode=1))
    assert [one.code for one in failure_findings(found)] == ["jobs-cut-off", "exit-code"]


def test_an_exit_code_alone_is_a_failure(tmp_path: Path) -> None:
    found = failures_of(tmp_path, event("ApplicationEnd", Timestamp=6000, ExitCode=1))
    assert sentence(failure_findings(found)).startswith("The application ended with exit code 1")


def test_a_stage_of_spark_4_that_says_only_the_outermost_exception(tmp_path: Path) -> None:
    stack = (
        "a.SparkException: [TASK_WRITE_FAILED] rows of x. SQLSTATE: 58030\\n\\tat b\\nCaused by: c.D: full"
    )
    reason = {"Class Name": "a.SparkException", "Full Stack Trace": stack}
    task = attempt(0, Reason="ExceptionFailure", **reason)
    found = failures_of(
        tmp_path, JOB, SUBMITTED, task, *failed("[TASK_WRITE_FAILED] rows of x. SQLSTATE: 58030")
    )
    assert found.causes[0].cause[:2] == ("c.D", "full")
    other = failures_of(
        tmp_path, JOB, SUBMITTED, task, *failed("Total size of results is bigger than it may be")
    )
    assert other.causes[0].cause.text == "Total size of results is bigger than it may be"


SQL = "org.apache.spark.sql.execution.ui.SparkListenerSQLExecution"


@pytest.mark.parametrize(
    ("error", "begin"),
    [
        (
            "java.lang.OutOfMemoryError: Java heap space",
            "Query 4 failed in the driver: java.lang.OutOfMemoryError",
        ),
        ("java.lang.InterruptedException", ""),
        (
            f"{_TRACE}Py4JJavaError: An error occurred while calling o7.x.\n: a.InterruptedException{_STACK}",
            "",
        ),
        ("[SPARK_JOB_CANCELLED] Job 1 cancelled part of cancelled job group g SQLSTATE: XXKDA", ""),
        ("Job 1 cancelled because SparkContext was shut down", ""),
        (f"a.SparkException: Job aborted.{_STACK}Caused by: a.SparkException: Job 0 cancelled by me", ""),
    ],
)
def test_a_query_that_fails_before_it_has_a_plan(tmp_path: Path, error: str, begin: str) -> None:
    end = json.dumps({"Event": f"{SQL}End", "executionId": 4, "time": 3000, "errorMessage": error})
    found = failures_of(tmp_path, end.encode())
    assert sentence(failure_findings(found)).startswith(begin) and bool(begin) == bool(found.queries)


def test_a_streaming_query_that_fails_without_a_batch(tmp_path: Path) -> None:
    stream = "org.apache.spark.sql.streaming.StreamingQueryListener$Query"
    error = f"a.StreamingQueryException: no\n=== Streaming Query ==={_STACK * 300}Caused by: a.B: no topic"
    ended = {"Event": f"{stream}TerminatedEvent", "id": "i", "runId": "r", "exception": error}
    found = failures_of(tmp_path, json.dumps(ended).encode())
    assert sentence(failure_findings(found)) == "A streaming query failed: a.B: no topic."


def test_a_master_that_gave_up_did_so_after_executors_were_lost(tmp_path: Path) -> None:
    reason = "Command exited with code 1"
    removed = event("ExecutorRemoved", Executor_ID="7", Timestamp=3000, Removed_Reason=reason)
    found = failures_of(tmp_path, JOB, SUBMITTED, removed, *failed("Master removed our application: FAILED"))
    assert found.causes[0].cause.message == (
        f"Master removed our application: FAILED, after executor 7 was lost: {reason}"
    )


def test_all_causes_are_counted_though_few_are_kept(tmp_path: Path) -> None:
    def end(id_: int, error: str) -> bytes:
        return json.dumps(
            {"Event": f"{SQL}End", "executionId": id_, "time": 3000 + id_, "errorMessage": error}
        ).encode()

    errors = [f"a.B: no table {id_}" for id_ in range(50)]
    found = failures_of(tmp_path, *(end(id_, error) for id_, error in enumerate([*errors, *errors])))
    assert (found.all_causes, len(found.causes)) == (50, MOST_CAUSES)
    assert found.causes[0].queries == [0, 50]
    assert failure_findings(found)[0].parameters["others"] == 49


@pytest.mark.parametrize(
    ("succeeded", "reason", "survived"),
    [(3500, "a.B: last", True), (2000, "a.B: first", False), (6000, "a.B: first", False)],
)
def test_the_failure_that_ended_the_application_is_on_top(
    tmp_path: Path, succeeded: int, reason: str, survived: bool
) -> None:
    """Jobs fail at 3 s and at 5 s; another one begins in between and succeeds, or before, or after both."""
    lines = []
    for id_, end, message in ((0, 3000, "a.B: first"), (1, 5000, "a.B: last")):
        result = {"Result": "JobFailed", "Exception": {"Message": message}}
        lines.append(event("JobStart", Job_ID=id_, Submission_Time=1500, Stage_IDs=[]))
        lines.append(event("JobEnd", Job_ID=id_, Completion_Time=end, Job_Result=result))
    lines.append(event("JobStart", Job_ID=2, Submission_Time=succeeded, Stage_IDs=[]))
    lines.append(event("JobEnd", Job_ID=2, Completion_Time=7000, Job_Result={"Result": "JobSucceeded"}))
    (found,) = failure_findings(failures_of(tmp_path, *lines))
    assert (found.parameters["reason"], found.parameters["survived"]) == (reason, survived)
    assert sentence([found]).endswith("; the application went on.") == (succeeded == 6000)


def test_jobs_that_somebody_cancelled_are_on_top(tmp_path: Path) -> None:
    found = failures_of(tmp_path, JOB, SUBMITTED, *failed("Job 0 cancelled by kim"))
    assert sentence(failure_findings(found)) == "1 of 1 job cancelled."


def test_descriptions_leave_room_for_reasons_of_failures(tmp_path: Path) -> None:
    described = [
        event("JobStart", Job_ID=id_, Properties={"spark.job.description": f"{id_} {'x' * 20_000}"})
        for id_ in range(1, 600)
    ]
    error = f"a.B: no{_STACK * 300}Caused by: c.D: full{_STACK * 300}"
    (cause,) = failures_of(tmp_path, *described, JOB, *failed(error)).causes
    assert cause.cause.text == "c.D: full"


@pytest.mark.parametrize(
    ("parameters", "begin"),
    [
        ({"failed": 1, "jobs": 1, "stage": 2, "attempts": (0,)}, "The job failed in stage 2.0: no"),
        (
            {"failed": 1, "jobs": 2, "stage": 2, "attempts": (0,), "query": 7},
            "1 of 2 jobs failed in stage 2.0 of query 7: no",
        ),
        (
            {"failed": 2000, "jobs": 3000, "stage": 2, "attempts": (0,)},
            "2,000 of 3,000 jobs failed, first in stage 2.0: no",
        ),
        ({"failed": 2, "jobs": 2}, "2 of 2 jobs failed: no"),
        (
            {"failed": 2, "jobs": 3, "stage": 2, "attempts": (0,), "survived": True, "others": 1},
            "2 of 3 jobs failed, in the end in stage 2.0: no (1 other cause)",
        ),
    ],
)
def test_where_jobs_failed(parameters: dict[str, Any], begin: str) -> None:
    assert sentence([SparkFinding("job-failed", {"reason": "no", **parameters})]) == f"{begin}."
