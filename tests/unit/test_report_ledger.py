"""The page's ledger: of each process samples, attach and bytes; of each host bytes and time by stage."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from hprofiler.report import make_report
from tests.viewer.made_run import MadeHost, content_of, make_run, rewrite

TIMINGS = {"connect": 0.312, "prepare": 1.5, "clean": 0.0}


def ledger_of(
    tmp_path: Path, host: dict[str, Any], recording: dict[str, Any], **made: Any
) -> list[list[str]]:
    """The cells of the ledger's rows; the host's record and each recording's have these members, too."""
    folder = make_run(
        tmp_path / "run", [MadeHost("n1", {11: "main;work 40\n"}, **made)], events=("cpu", "alloc")
    )
    run = content_of(folder)
    run["hosts"][0].update(host)
    for one in run["hosts"][0]["recordings"]:
        one.update(recording)
    rewrite(folder, run)
    page = make_report(folder.path).page.read_text()
    (section,) = re.findall(r'<section id="ledger">.*?</section>', page, flags=re.S)
    rows = re.findall(r"<tr[^>]*>(.*?)</tr>", section, flags=re.S)
    cells = (re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, flags=re.S) for row in rows)
    return [[unescape(re.sub(r"<[^>]+>", " ", cell)).strip() for cell in row] for row in cells]


def test_it_tells_what_hosts_and_processes_took(tmp_path: Path) -> None:
    host = {"bytes_sent": 2 << 20, "bytes_received": 300 << 10, "timings": TIMINGS}
    recording = {"attach_seconds": 0.1234, "bytes_received": 2048}
    events = {"alloc": {11: "main;byte[]_[i] 4096\n"}}
    heads, of_host, process = ledger_of(tmp_path, host, recording, events=events)
    assert heads[4:] == ["Expected", "Taken", "Lost", "Attached", "Sent", "What happened"]
    took = "2 MiB sent to it, connect 312 ms, prepare 1.5 s"
    assert of_host == ["ok", "n1", "", "", "", "", "", "", "300 KiB", took]
    assert process[4:9] == ["41", "40", "3", "123 ms", "4 KiB"]


@pytest.mark.parametrize(
    ("interrupted", "how"), [(False, "as asked"), (True, "until the run was interrupted")]
)
def test_what_was_interrupted_was_not_recorded_as_asked(tmp_path: Path, interrupted: bool, how: str) -> None:
    folder = make_run(tmp_path / "run", [MadeHost("n1", {11: "main;work 40\n"})])
    rewrite(folder, {**content_of(folder), "interrupted": interrupted})
    page = make_report(folder.path).page.read_text()
    assert f"Everything that was found was recorded {how}." in page
