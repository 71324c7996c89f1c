"""The page's ledger: of each process samples, attach and bytes; of each host bytes and time by stage."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hprofiler.report import make_report
from tests.viewer.block import described
from tests.viewer.made_run import MadeHost, content_of, make_run, rewrite

TIMINGS = {"connect": 0.312, "prepare": 1.5, "clean": 0.0}


def ledger_of(
    tmp_path: Path, host: dict[str, Any], recording: dict[str, Any], **made: Any
) -> list[dict[str, Any]]:
    """The ledger's lines; the host's record and each recording's have these members, too."""
    folder = make_run(
        tmp_path / "run", [MadeHost("n1", {11: "main;work 40\n"}, **made)], events=("cpu", "alloc")
    )
    run = content_of(folder)
    run["hosts"][0].update(host)
    for one in run["hosts"][0]["recordings"]:
        one.update(recording)
    rewrite(folder, run)
    ledger = described(make_report(folder.path).page)["run"]["ledger"]
    assert ledger["samples"]
    lines: list[dict[str, Any]] = ledger["lines"]
    return lines


def test_it_tells_what_hosts_and_processes_took(tmp_path: Path) -> None:
    host = {"bytes_sent": 2 << 20, "bytes_received": 300 << 10, "timings": TIMINGS}
    recording = {"attach_seconds": 0.1234, "bytes_received": 2048}
    events = {"alloc": {11: "main;byte[]_[i] 4096\n"}}
    of_host, process = ledger_of(tmp_path, host, recording, events=events)
    assert (of_host["status"], of_host["host"], of_host["sent"]) == ("ok", "n1", "300 KiB")
    assert of_host["took"] == "2 MiB sent to it, connect 312 ms, prepare 1.5 s"
    assert (process["samples"], process["attached"], process["sent"]) == ([41, 40, 3], "123 ms", "4 KiB")
