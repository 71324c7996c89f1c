"""Long runs on this machine are kept while they go on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from hprofiler import Profile
from hprofiler.model import HostRecord
from hprofiler.runfolder import RunFolder
from tests.contract import real
from tests.lab import procs
from tests.lab.procs import wait_for

pytestmark = pytest.mark.skipif(bool(real.why_not()), reason=str(real.why_not()))
HPROFILER = [sys.executable, "-m", "hprofiler"]


def test_a_run_that_was_killed_has_what_was_sent(tmp_path: Path, burn) -> None:
    pid, folder = burn().outer.pid, tmp_path / "run"
    command = [*HPROFILER, "-j", f"pid:{pid}", "-t", "300", "-o", folder]
    run = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_for("a part in run.json", lambda: any(host.recordings for host in hosts(folder)))
        report = subprocess.run([*HPROFILER, "report", folder], capture_output=True, text=True, check=False)
        assert report.returncode == 2 and "goes on" in report.stderr, report.stderr
    finally:
        os.kill(run.pid, signal.SIGKILL)
        run.wait()
    report = subprocess.run([*HPROFILER, "report", folder], capture_output=True, text=True, check=False)
    assert report.returncode == 3, report.stderr
    assert "cut off" in (folder / "report.html").read_text()
    (host,) = hosts(folder)
    (recording,) = host.recordings
    profile = Profile.open(RunFolder(folder).profile_path(host.name, pid, "cpu"))
    assert profile.total("samples") >= recording.samples.taken > 100
    assert not list(folder.glob("hosts/*/*/*.part-*"))


def test_a_long_run_that_is_interrupted_is_archived_once(tmp_path: Path, burn) -> None:
    pid, folder, place = burn().outer.pid, tmp_path / "run", tmp_path / "archive"
    command = [*HPROFILER, "-j", f"pid:{pid}", "-t", "job", "--json", "-o", folder, "--archive", place]
    run = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_for("a part in run.json", lambda: any(host.recordings for host in hosts(folder)))
    run.send_signal(signal.SIGINT)
    out, err = run.communicate(timeout=procs.PATIENCE)
    assert run.returncode == 130 and err.count(f"added to {place}") == 1, err
    (event,) = json.loads(out)["events"]
    question = "SELECT count(DISTINCT run) AS runs, sum(value) AS total FROM samples"
    words = [*HPROFILER, "archive", "sql", place, question]
    archived = subprocess.run(words, capture_output=True, text=True, check=True).stdout.split()
    assert archived[-2:] == ["1", str(event["totals"]["samples"])]


def hosts(folder: Path) -> tuple[HostRecord, ...]:
    """Those that run.json has by now."""
    return RunFolder.open(folder).record.hosts if (folder / "run.json").exists() else ()
