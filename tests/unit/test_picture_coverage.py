"""How much of what was asked for a picture is of: every picture says so, also one that was interrupted."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path

import pytest

from hprofiler.analysis.coverage import duration_in_words
from hprofiler.report import make_report
from hprofiler.runfolder import RunFolder
from tests.unit.test_page_data import described
from tests.viewer.made_run import MadeHost, content_of, make_run, rewrite


@pytest.mark.parametrize(
    ("seconds", "asked", "told"),
    [
        (60, 60, "60 s"),
        (59.4, 60, "60 s"),
        (24, 60, "24 of 60 s"),
        (3.25, 40, "3.25 of 40 s"),
        (0.05, 40, "0.05 of 40 s"),
        (24, 600, "24 s of 10.0 min"),
        (192, 600, "3.2 of 10.0 min"),
        (3456, 7200, "57.6 min of 2.0 h"),
        (0, 60, "60 s"),  # of an old run: nobody knows
    ],
)
def test_it_is_told_how_long_it_lasted(seconds: float, asked: float, told: str) -> None:
    assert duration_in_words(seconds, asked) == told


def run_of(path: Path, seconds: dict[int, float], interrupted: bool = False) -> RunFolder:
    """Two hosts of one process each, recorded for so long; n2 has one more that failed."""
    hosts = [MadeHost("n1", {11: "main;work 40\n"}), MadeHost("n2", {12: "main;work 2\n"})]
    hosts[1].fails("failed", "no room", pid=13)
    folder = make_run(path, hosts)
    run = content_of(folder)
    for host in run["hosts"]:
        for one in host["recordings"]:
            one["seconds"] = seconds[one["process"]["pid"]]
    rewrite(folder, {**run, "interrupted": interrupted})
    return folder


def subtitle(svg: str) -> str:
    found = re.search(r'id="subtitle"[^>]*>([^<]*)<', svg)
    assert found
    return unescape(found[1])


def test_pictures_of_an_interrupted_run_say_so_and_for_how_long(tmp_path: Path) -> None:
    folder = run_of(tmp_path / "run", {11: 5.0, 12: 4.5}, interrupted=True)
    make_report(folder.path)
    whole = "2 of 3 processes on 2 of 2 hosts, interrupted · "
    for name in ("cpu", "cpu-mean"):
        told = subtitle((folder.cluster_dir / f"{name}.svg").read_text())
        assert told.startswith(whole) and "300 Hz for 5 of 60 s" in told
    told = subtitle((folder.host_dir("n1") / "cpu.svg").read_text())
    assert told.startswith("1 of 1 process, interrupted · ") and "300 Hz for 5 of 60 s" in told
    told = subtitle((folder.host_dir("n2") / "cpu.svg").read_text())
    assert told.startswith("1 of 2 processes, interrupted · ") and "300 Hz for 4.5 of 60 s" in told


def test_a_host_that_was_cut_short_says_so_and_others_do_not(tmp_path: Path) -> None:
    folder = run_of(tmp_path / "run", {11: 60.0, 12: 5.0})
    run = content_of(folder)
    line = {
        "status": "degraded",
        "pid": 12,
        "stage": "record",
        "reason": "ended after 5 s: lost",
        "seconds": 5,
    }
    run["hosts"][1]["outcomes"].append(line)
    rewrite(folder, run)
    page = make_report(folder.path).page
    told = {name: subtitle((folder.host_dir(name) / "cpu.svg").read_text()) for name in ("n1", "n2")}
    assert "300 Hz for 60 s" in told["n1"] and "300 Hz for 5 of 60 s" in told["n2"]
    assert "n2: 5 of 60 s" in subtitle((folder.cluster_dir / "cpu.svg").read_text())
    (coverage,) = described(page)["coverage"]
    assert coverage == {
        "runs": ["2 of 3 processes on 2 of 2 hosts, n2: 5 of 60 s · 300 Hz for 60 s"],
        "hosts": {
            "0": "1 of 1 process · 300 Hz for 60 s",
            "1": "1 of 2 processes, n2: 5 of 60 s · 300 Hz for 5 of 60 s",
        },
        "short": {"1": "5 of 60 s"},
    }
