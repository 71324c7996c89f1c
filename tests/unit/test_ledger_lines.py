"""What the terminal and `--json` tell of recordings that went well."""

from __future__ import annotations

import sys
from dataclasses import replace

import pytest
from rich.cells import cell_len as width

from hprofiler.cli.terminal.ledger import (
    host_records,
    print_degraded,
    print_failures,
    print_reasons,
)
from hprofiler.model import Host, HostResult, Outcome, Process, Recording, Samples, Status
from tests.unit.command import Terminal


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


def test_what_is_wider_than_the_terminal_breaks_between_words(monkeypatch: pytest.MonkeyPatch) -> None:
    reason = "the kernel allows a user no more than one sample in a while, and 宿主宿主 names are wide"
    line = Outcome("n1", Status.DEGRADED, "record", reason, "ask for fewer of them, or become root there", 7)
    result = HostResult(Host("n1", "n1"), None, (), (line,))
    written = {}
    for columns in ("40", "1000", "12"):
        terminal = Terminal()
        monkeypatch.setattr(sys, "stderr", terminal)
        monkeypatch.setenv("COLUMNS", columns)
        print_degraded([result])
        print_failures([replace(line, remedy="")], "page")
        written[columns] = terminal.getvalue().splitlines()
    whole = [f"note: n1 pid 7: {reason}", f"    {line.remedy}", "not recorded:", f"  n1 pid 7: {reason}"]
    assert written["1000"] == written["12"] == whole, "there is no use in columns of a few letters"
    narrow = written["40"]
    assert max(map(width, narrow)) <= 40 and width("宿主") == 4
    assert narrow[1].startswith("      ") and " ".join(" ".join(narrow).split()) == " ".join(
        " ".join(whole).split()
    )
