"""The sample job: its report, and that it leaves no process or file behind."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import tempfile
from html import escape
from pathlib import Path

import pytest

from hprofiler._flamegraph import Profile
from hprofiler.app.demo import running_job
from hprofiler.app.demo.demo import HOT_METHODS
from tests.unit.command import as_process


def folders(temp: Path) -> list[Path]:
    return sorted(temp.glob("hprofiler-demo-*"))


@pytest.fixture
def temp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return tmp_path


def test_the_command_makes_a_report_of_its_own_jvms(tmp_path: Path) -> None:
    """And not of those of another demo."""
    with running_job() as other:
        for process in other.processes:
            os.kill(process.pid, signal.SIGSTOP)
        done = as_process("demo", "-f", "499", "-t", "1", "-o", "run", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stderr.startswith("demo: compiling a small job with ")
    assert "recorded 2 of 2 processes on 1 of 1 host" in done.stdout
    report = tmp_path / "run/report.html"
    assert "report: run/report.html" in done.stdout
    assert "-m hprofiler report run --open " in done.stderr
    page = report.read_text(encoding="utf-8")
    profile = Profile.open(str(tmp_path / "run/cluster/cpu.pb.gz"))
    stacks = profile.to_folded(0).decode().splitlines()
    for method in HOT_METHODS.values():
        # Nearly all time of each JVM is spent there.
        assert any(method.replace(".", "/", method.count(".") - 1) in stack for stack in stacks), method
    assert escape(profile.top(1)[0].name.rpartition("/")[2]) in page


def test_the_jvms_end_when_their_parent_is_killed(temp: Path) -> None:
    code = (
        "import sys\n"
        "from hprofiler.app.demo import running_job\n"
        "with running_job() as job:\n"
        "    print(*(process.pid for process in job.processes), flush=True)\n"
        "    sys.stdin.read()\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert parent.stdin is not None and parent.stdout is not None
    with parent:
        pidfds = [os.pidfd_open(int(pid)) for pid in parent.stdout.readline().split()]
        assert len(pidfds) == 2
        parent.send_signal(signal.SIGKILL)
        parent.wait()
    assert folders(temp) == []
    for pidfd in pidfds:
        # A pidfd is readable once its process has ended.
        assert select.select([pidfd], [], [], 60)[0]
        os.close(pidfd)
