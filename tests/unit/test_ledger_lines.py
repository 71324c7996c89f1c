"""What the terminal and `--json` tell of recordings that went well."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hprofiler.cli.terminal.ledger import (
    host_records,
    print_failures,
    print_reasons,
)
from hprofiler.model import Host, HostResult, Outcome, Process, Recording, Samples, Status


def host(*reasons: str, status: Status = Status.OK, code: str = "") -> HostResult:
    lines = tuple(
        Outcome("n1", status, "record", reason, "", pid, code=code) for pid, reason in enumerate(reasons, 1)
    )
    return HostResult(Host("n1", "n1"), None, (), lines)


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


def failed(number: int, reason: str, remedy: str = "", code: str = "", pid: int | None = None) -> Outcome:
    return Outcome(f"n{number}", Status.FAILED, "find", reason, remedy, pid, code=code)


def test_alike_failures_are_one_line(capsys: pytest.CaptureFixture[str]) -> None:
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
    recording = replace(recording, attach_seconds=0.2, bytes_received=99)
    result = HostResult(made.host, None, (recording,), made.outcomes, {"connect": 0.25004}, 7, 8)
    (record,) = host_records([result])
    assert record == {
        "host": "n1",
        "timings": {"connect": 0.25},
        "bytes_sent": 7,
        "bytes_received": 8,
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
                **{"attach_seconds": 0.2, "bytes_received": 99},
            }
        ],
    }
