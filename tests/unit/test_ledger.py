"""The ledger: causes that the cluster manager names, lines on the terminal, codes in the reference page."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from hprofiler.analysis.result import CUT_OFF
from hprofiler.cli.terminal.ledger import (
    host_records,
    print_failures,
    print_reasons,
)
from hprofiler.collect.ledger import Ledger, with_causes
from hprofiler.model import (
    Clock,
    HostRecord,
    Note,
    Outcome,
    Pauses,
    Process,
    Recording,
    Samples,
    SampleTimes,
    Status,
)
from hprofiler.model.recording import MOST_PAUSES
from tests.unit.command import ROOT

LOST = Outcome("web", Status.FAILED, "record", "the agent ended with status 137", "try again")
WITH_IT = f"its host was lost: {LOST.reason}"
PROCESS = Outcome("web", Status.FAILED, "record", WITH_IT, pid=1, label="Main", lost=True)
DELETED = Outcome("web", Status.DEGRADED, "record", "the pod was deleted during the recording")


def explained(line: Outcome, said: str) -> Outcome:
    notes = (Note("", DELETED.reason), Note("", said))
    return replace(line, reason=f"{DELETED.reason}; {said}", notes=notes)


def test_the_cause_goes_before_the_effect() -> None:
    line, process = with_causes([LOST, PROCESS], [DELETED])
    assert line.reason == f"{DELETED.reason}; {LOST.reason}" and line.remedy == "try again"
    assert process.reason == f"its host was lost: {DELETED.reason}"
    assert process.lost and not line.lost


def test_unrelated_causes_are_lines_of_their_own() -> None:
    fine = replace(PROCESS, status=Status.OK, reason="")
    assert with_causes([fine], [DELETED]) == (fine, DELETED)
    began = replace(DELETED, stage="find", reason="web-2 started during the recording")
    for stage in ("connect", "push", "find", "prepare"):
        shut = replace(LOST, stage=stage)
        assert with_causes([shut], [DELETED, began]) == (shut, DELETED, began)
    assert with_causes([LOST], [began]) == (LOST, began)


def test_on_a_node_the_cause_goes_to_the_process_of_the_pod() -> None:
    own = replace(PROCESS, host="node1", label="web", lost=False, gone=True, reason="process 7 has ended")
    other = replace(own, label="api", pid=2)
    assert with_causes([own, other], [ON_NODE]) == (
        explained(own, "process 7 has ended"),
        other,
    )


ON_NODE = replace(
    DELETED, host="node1", reason=f"web: {DELETED.reason}", label="web", notes=(Note("", DELETED.reason),)
)


@pytest.mark.parametrize("gone", [True, False])
def test_on_a_node_only_an_end_is_explained(gone: bool) -> None:
    """Decided by its fields, whatever its reason says."""
    said = "no timers" if gone else "process 7 has ended"
    line = Outcome("node1", Status.DEGRADED, "record", said, pid=7, label="web", gone=gone)
    told = with_causes([line], [ON_NODE])
    assert told == ((explained(line, said),) if gone else (line, ON_NODE))


def host(*reasons: str, status: Status = Status.OK, code: str = "") -> HostRecord:
    lines = tuple(
        Outcome("n1", status, "record", reason, "", pid, code=code) for pid, reason in enumerate(reasons, 1)
    )
    return HostRecord(name="n1", outcomes=lines)


@pytest.mark.parametrize(
    ("code", "reasons", "told"),
    [
        ("", ["", ""], []),
        ("", ["perf: no JVM", ""], ["note: n1 pid 1: perf: no JVM"]),
        ("no-timer", ["user frames only", "user frames only"], ["note: 2 processes: user frames only"]),
        ("interval", ["every 1 MiB", "every 2 MiB"], ["note: 2 alike, such as n1 pid 1: every 1 MiB"]),
        ("failed", ["exit code 1", "exit code 1"], [f"note: n1 pid {pid}: exit code 1" for pid in (1, 2)]),
        (
            "",
            [f"reason {n}" for n in range(1, 8)],
            [f"note: n1 pid {n}: reason {n}" for n in range(1, 6)]
            + ["note: 2 more such notes are in the report"],
        ),
    ],
)
def test_reasons_of_one_code_are_one_note(
    code: str, reasons: list[str], told: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    print_reasons([host(*reasons, code=code), host("failed", status=Status.FAILED)])
    assert capsys.readouterr().err.splitlines() == told


def test_notes_about_other_events_are_apart_and_figures_are_from_to(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def note(pid: int, code: str, reason: str, **parameters: str | int) -> Outcome:
        line = Outcome("n1", Status.OK, "record", reason, "", pid, code=code, parameters=parameters)
        return replace(line, notes=(Note(code, reason, "", parameters),))

    intervals = [
        note(
            pid,
            "interval-chosen",
            f"allocation interval {mebibytes} MiB",
            event="alloc",
            bytes=mebibytes << 20,
        )
        for pid, mebibytes in enumerate((4, 1, 4), 1)
    ]
    none = [
        note(pid, "no-samples", f"no {event} samples", event=event)
        for pid, event in ((4, "lock"), (5, "alloc"))
    ]
    few = [
        note(pid, "few-samples", f"{taken} samples", taken=taken, until=pid, events=str(pid), bytes="x")
        for pid, taken in ((6, 9), (7, 1_234_567))
    ]
    print_reasons([HostRecord(name="n1", outcomes=(*intervals, *none, *few))])
    assert capsys.readouterr().err.splitlines() == [
        "note: 3 alike (bytes 1 MiB to 4 MiB), such as n1 pid 1: allocation interval 4 MiB",
        "note: n1 pid 4: no lock samples",
        "note: n1 pid 5: no alloc samples",
        "note: 2 alike (samples 9 to 1,234,567), such as n1 pid 6: 9 samples",
    ]


def failed(number: int, reason: str, remedy: str = "", code: str = "", pid: int | None = None) -> Outcome:
    return Outcome(f"n{number}", Status.FAILED, "find", reason, remedy, pid, code=code)


def test_similar_failures_are_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    outcomes = [failed(number, "interrupted", code="interrupted") for number in range(9)]
    print_failures([*outcomes, failed(9, "no sh", "mend it")], "report.html")
    assert capsys.readouterr().err.splitlines() == [
        "not recorded:",
        "  n0, n1, n2 and 6 more: interrupted",
        "  n9: no sh",
        "    mend it",
    ]
    others = [failed(1, f"process {pid} is root's", "become root", "not-permitted", pid) for pid in (5, 6)]
    print_failures(others, "report.html")
    assert capsys.readouterr().err.splitlines() == [
        "not recorded:",
        "  2 alike, such as n1 pid 5: process 5 is root's",
        "    become root",
    ]
    print_failures([failed(number, f"reason {number}") for number in range(23)], "report.html")
    assert capsys.readouterr().err.splitlines()[-1] == "  … and 3 more: see report.html"
    print_failures([], "report.html")
    assert capsys.readouterr().err == ""


def test_json_has_reasons_and_what_each_recording_was_made_with() -> None:
    made = host("fell back to perf")
    process = Process("n1", 1, 7, 0, "app", "java")
    recording = Recording(process, "cpu", "perf", "cycles", 10, Samples(3, 2, 1), 1.0)
    times = SampleTimes(5, 20_000)
    recording = replace(recording, attach_seconds=0.2, bytes_received=99, times=times)
    result = HostRecord(
        name="n1",
        recordings=(recording,),
        outcomes=made.outcomes,
        timings={"connect": 0.25},
        bytes_sent=7,
        bytes_received=8,
        clock=Clock(0.5, 0.001),
    )
    (record,) = host_records([result])
    assert record == {
        "host": "n1",
        "timings": {"connect": 0.25},
        "bytes_sent": 7,
        "bytes_received": 8,
        "clock": {"offset": 0.5, "uncertainty": 0.001},
        "outcomes": [
            {
                **{"pid": 1, "status": "ok", "stage": "record", "reason": "fell back to perf", "remedy": ""},
                **{"code": "", "parameters": {}},
                "seconds": None,
            }
        ],
        "recordings": [
            {
                **{"pid": 1, "event": "cpu", "engine": "perf", "source": "cycles", "interval": 10},
                **{"seconds": 1.0, "samples": {"expected": 3, "taken": 2, "lost": 1}},
                **{"attach_seconds": 0.2, "bytes_received": 99, "times": {"start": 5, "width": 20_000}},
                "callers_unsure": False,
            }
        ],
    }


STAGES = ("connect", "push", "find", "prepare", "start", "record", "dump", "fetch")


def agent_codes() -> set[str]:
    source = (ROOT / "agents/host/src/wire/outcome.rs").read_text()
    body = re.search(r"pub enum Code \{(.*?)\n\}", source, re.DOTALL)
    assert body
    names = re.findall(r"^    (\w+),", body[1], re.MULTILINE)
    return {re.sub(r"(?<!^)([A-Z])", r"-\1", name).lower() for name in names}


def test_times_that_were_left_out_are_a_note_of_the_process() -> None:
    ledger = Ledger("n1", ("cpu",))
    process = Process("n1", 7, 1, 0, "root", "Job")
    ledger.found([process])
    ledger.recorded(Recording(process, "cpu", "perf", "", 1, Samples(1, 1, 0), seconds=1, times_off=86400.0))
    (line,) = ledger.lines(None)
    assert (line.status, line.code) == (Status.DEGRADED, "times-impossible")
    assert line.parameters == {"event": "cpu", "seconds": 86400.0}


def test_a_recording_whose_last_part_never_came_is_short() -> None:
    """Its host was lost. One of which all came is not."""
    ledger = Ledger("n1", ("cpu",))
    cut, whole = (Process("n1", pid, 1, 0, "root", "Job") for pid in (7, 8))
    ledger.found([cut, whole])
    for process, more in ((cut, True), (cut, True), (whole, True), (whole, False)):
        ledger.recorded(Recording(process, "cpu", "perf", "", 1, Samples(1, 1, 0), seconds=10.0), more)
    lost = Outcome("n1", Status.FAILED, "record", "the connection broke", code="connection-lost")
    first, second = ledger.lines(lost)
    assert (first.status, first.lost, first.seconds) == (Status.DEGRADED, True, 20.0)
    assert first.reason == "its host was lost: the connection broke"
    assert (second.status, second.code) == (Status.OK, "recorded")


def coordinator_codes() -> set[str]:
    """Codes in an application of Spark are not outcomes: docs/spark-log.md has those."""
    of_spark = {ROOT / "hprofiler" / room / "spark" for room in ("analysis", "report")}
    files = (path for path in (ROOT / "hprofiler").rglob("*.py") if path.parent not in of_spark)
    sources = [path.read_text() for path in files]
    given = {
        code for source in sources for code in re.findall(r'\b(?:usual_)?code ?= ?"([a-z0-9-]+)"', source)
    }
    return given | {f"{stage}-failed" for stage in STAGES} | {"unknown", "profile-unusable", CUT_OFF}


def test_the_reference_page_has_every_code_once() -> None:
    page = (ROOT / "docs/reference/outcomes.md").read_text()
    listed = re.findall(r"^\| `([a-z0-9-]+)` \|", page, re.MULTILINE)
    assert len(listed) == len(set(listed))
    assert set(listed) == agent_codes() | coordinator_codes()


def test_of_too_many_pauses_the_longest_are_kept_and_the_last() -> None:
    ledger = Ledger("web", ["cpu"])
    half = MOST_PAUSES // 2
    for begin in (0, half, MOST_PAUSES):
        end = range(begin, begin + half)
        ledger.paused(Pauses(7, ("young",), [0] * half, end, [half - at % half for at in end]))
    (pauses,) = ledger.pauses
    assert len(pauses.end) == half + 1 and pauses.left_out == MOST_PAUSES - 1
    assert min(pauses.duration[:-1]) >= half * 2 // 3, "a third of each batch"
    assert [*pauses.end] == sorted(pauses.end) and pauses.end[-1] == 3 * half - 1


def test_sums_of_parts_are_what_run_json_takes() -> None:
    """A host may send the largest number with each part."""
    most = (1 << 63) - 1
    assert Samples(most, 1, most).plus(Samples(most, 2, 1)) == Samples(most, 3, most)
    ledger = Ledger("web", ("cpu",))
    for _ in range(2):
        ledger.paused(Pauses(7, ("young",), (), (), (), most))
    assert ledger.pauses[0].left_out == most
