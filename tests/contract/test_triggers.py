"""Recordings that begin or end when something happens, of a JVM on this machine."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pytest

from hprofiler import Profile
from tests.burners import build, burner
from tests.contract import real
from tests.contract.test_long_runs import hosts
from tests.lab import procs
from tests.lab.procs import wait_for

pytestmark = pytest.mark.skipif(bool(real.why_not()), reason=str(real.why_not()))
HPROFILER = [sys.executable, "-m", "hprofiler"]
WORD = f"trigger{os.getpid()}"


class Turning(burner.Program):
    """It does what it is told."""

    def __init__(self) -> None:
        java = ["java", "-Xmx48m", "-XX:+UseSerialGC"]
        super().__init__(["env", f"CLASSPATH={build.classes()}", *java, "Turning", WORD])

    def turn(self, mode: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{mode}\n".encode())

    def wait_until_late(self) -> None:
        """It has been `late` for 12 s."""
        self._line("late")


@pytest.fixture
def turning() -> Iterator[Turning]:
    program = Turning()
    yield program
    program.kill()


def record(folder: Path, *words: str) -> subprocess.Popen[str]:
    command = [*HPROFILER, "-j", f"text:{WORD}", "--json", "-o", str(folder), *words]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def until(lines: IO[str] | None, text: str) -> None:
    assert lines is not None
    while text not in (line := lines.readline()):
        assert line, f"it ended before it said {text!r}"


def test_a_recording_begins_with_much_garbage_collection(turning: Turning, tmp_path: Path) -> None:
    run = record(tmp_path / "run", "--when", "gc > 20%", "-t", "3")
    until(run.stderr, "gc 0 %, waiting for > 20 %")
    turning.turn("gc")
    out, err = run.communicate(timeout=procs.PATIENCE)
    assert run.returncode == 0, err
    fired = json.loads(out)["trigger"]
    assert (fired["condition"], fired["pid"], fired["process"]) == ("gc > 20%", turning.pid, "Turning")
    assert 20 < fired["value"] <= 100 and fired["task"] is None


def test_only_the_last_seconds_before_ctrl_c_are_kept(turning: Turning, tmp_path: Path) -> None:
    turning.turn("early")
    folder = tmp_path / "run"
    run = record(folder, "--keep-last", "10")
    wait_for("a part in run.json", lambda: any(host.recordings for host in hosts(folder)))
    written = json.loads((folder / "run.json").read_text())
    assert written["last_of"] > 0, "if it is killed, it is known to be of the last seconds"
    turning.turn("late")
    turning.wait_until_late()
    run.send_signal(signal.SIGINT)
    out, err = run.communicate(timeout=procs.PATIENCE)
    assert run.returncode == 0, err
    result = json.loads(out)
    assert result["interrupted"] is False and result["last_of"] > 20
    (process,) = result["processes"]
    assert (process["joined"], process["ended"], process["ended_by"]) == (0, pytest.approx(10), "run")
    stacks = [path.frames for path in Profile.read(folder / "cluster" / "cpu.pb.gz").paths(annotate=False)]
    assert any("Turning.late" in frames for frames in stacks)
    assert not any("Turning.early" in frames for frames in stacks)
    (host,) = hosts(folder)
    (recording,) = host.recordings
    samples = recording.samples
    assert samples.taken > 0.5 * samples.expected > 20 and recording.cpu_seconds < 10
    assert not list(folder.glob("hosts/*/*/*.part-*"))


@pytest.mark.nightly
def test_the_last_seconds_before_a_condition(turning: Turning, tmp_path: Path) -> None:
    """Once it collects garbage all the time; it is idle before."""
    run = record(tmp_path / "run", "--keep-last", "15", "--when", "gc > 20%")
    until(run.stderr, "gc 0 %, waiting for > 20 %")
    turning.turn("gc")
    out, err = run.communicate(timeout=2 * procs.PATIENCE)
    assert run.returncode == 0, err
    result = json.loads(out)
    assert result["trigger"]["pid"] == turning.pid and result["interrupted"] is False
    (event,) = result["events"]
    assert event["totals"]["samples"] > 20
