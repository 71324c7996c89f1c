"""Long runs on this machine are kept while they go on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from hprofiler import Profile
from hprofiler.base.errors import ConnectionLost
from hprofiler.collect.following import Following
from hprofiler.collect.recording import collect
from hprofiler.collect.stop import Stop
from hprofiler.collect.visit_group import Reach
from hprofiler.model import Host, HostRecord, Sampling
from hprofiler.runfolder import RunFolder
from hprofiler.runfolder.sink import FolderSink
from hprofiler.transport.local import LocalTransport
from tests.contract import real
from tests.contract.real import is_good, of_host, of_processes
from tests.lab import procs
from tests.lab.procs import wait_for

pytestmark = pytest.mark.skipif(bool(real.why_not()), reason=str(real.why_not()))
HPROFILER = [sys.executable, "-m", "hprofiler"]
WORD = f"longrun{os.getpid()}"
HERE = Host("here", "localhost")
PART = 5.0
"""Seconds, the shortest."""
LONG = 600.0
CUT = 300
"""Bytes of a part that still arrive."""


def test_a_run_that_was_killed_has_what_was_sent(tmp_path: Path, burn) -> None:
    pid, folder = burn(role="alloc").outer.pid, tmp_path / "run"
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
    assert report.returncode == 3 and "the run was cut off" in report.stderr, report.stderr
    assert "cut off" in (folder / "report.html").read_text()
    (host,) = hosts(folder)
    (recording,) = host.recordings
    profile = Profile.open(RunFolder(folder).profile_path(host.name, pid, "cpu"))
    assert recording.totals["samples"] == profile.total("samples") > 100
    assert not list(folder.glob("hosts/*/*/*.part-*"))
    assert [(one.pid, len(one.end) > 0) for one in host.pauses] == [(pid, True)]


def test_a_long_run_that_is_interrupted_is_archived_once(tmp_path: Path, burn) -> None:
    pid, folder, place = burn().outer.pid, tmp_path / "run", tmp_path / "archive"
    command = [*HPROFILER, "-j", f"pid:{pid}", "-t", "job", "--json", "-o", folder, "--archive", place]
    run = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_for("a part in run.json", lambda: any(host.recordings for host in hosts(folder)))
    run.send_signal(signal.SIGINT)
    out, err = run.communicate(timeout=procs.PATIENCE)
    assert run.returncode == 130 and err.count(f"added to {place}") == 1, err
    assert not list(folder.glob("hosts/*/*/*.part-*"))
    (event,) = json.loads(out)["events"]
    question = "SELECT count(DISTINCT run) AS runs, sum(value) AS total FROM samples"
    words = [*HPROFILER, "archive", "sql", place, question]
    archived = subprocess.run(words, capture_output=True, text=True, check=True).stdout.split()
    assert archived[-2:] == ["1", str(event["totals"]["samples"])]


def hosts(folder: Path) -> tuple[HostRecord, ...]:
    """Those that run.json has by now."""
    return RunFolder.open(folder).record.hosts if (folder / "run.json").exists() else ()


class Forgotten:
    """A channel that a firewall forgets when a process has appeared. What is sent from then on is lost, and
    only the beginning of the next part arrives. The agent does not see it."""

    def __init__(self, channel) -> None:
        self._channel = channel
        self._is_lost = False
        self._left: int | None = None

    def __getattr__(self, name: str):
        return getattr(self._channel, name)

    def write(self, data: bytes) -> None:
        if not self._is_lost:
            self._channel.write(data)

    def read(self, size: int) -> bytes:
        if self._left == 0:
            raise ConnectionLost("connect", "the connection was forgotten")
        piece = self._channel.read(size if self._left is None else min(size, self._left))
        self._is_lost |= b'{"type":"appeared"' in piece
        part = piece.find(b'{"type":"profile"')
        if self._left is not None:
            self._left -= len(piece)
        elif self._is_lost and part >= 0:
            piece, rest = piece[: part + CUT], piece[part + CUT :]
            self._left = 0 if rest else part + CUT - len(piece)
        return piece


class Links:
    """Connections to this machine. The first is forgotten, and ends with `end`."""

    def __init__(self) -> None:
        self.made: list[LocalTransport] = []

    def transport(self, host: Host) -> LocalTransport:
        self.made.append(transport := LocalTransport(host))
        if len(self.made) == 1:
            opened, self.end = transport.open, transport.close
            transport.open = lambda command: Forgotten(opened(command))  # type: ignore[method-assign]
            transport.close = lambda: None  # type: ignore[method-assign]
        return transport


@pytest.mark.nightly
def test_a_connection_that_was_forgotten_costs_nothing(tmp_path: Path, burn) -> None:
    """That the second process joins is asked while nobody listens, and asked again."""
    folder, stop, links = RunFolder.create(tmp_path / "run"), Stop(), Links()
    reach = Reach(links.transport, real.binaries(), timeout=60.0)
    how = (Sampling(("cpu",), 99, LONG, part=PART), reach, FolderSink(folder), lambda step: None, stop)
    burners = [burn(load=0.3, extra=[WORD])]
    with ThreadPoolExecutor(1) as threads:
        running = threads.submit(collect, [HERE], real.text(WORD), *how, following=Following())
        try:
            for another in (True, True, False):
                parts = folder.profile_path("here", burners[-1].pid, "cpu").parent
                wait_for("a part of it", lambda parts=parts: running.done() or [*parts.glob("*.part-*")])
                burners += [burn(load=0.3, extra=[WORD])] * another
        finally:
            stop.finish()
        (result,) = running.result(60)
    links.end()
    (line,) = of_host(result)
    assert line.code == "reconnected" and "nothing is missing" in line.reason and len(links.made) == 2
    assert all(is_good(line) for line in of_processes(result)), result.outcomes
    found = {one.pid: one for one in result.recordings}
    assert [one.joined > 0 for one in (found[burner.pid] for burner in burners)] == [False, True, True]
    end = found[burners[0].pid].ended
    for burner in burners:
        recording = found[burner.pid]
        assert recording.ended == pytest.approx(end, abs=2), "every part once"
        profile = Profile.open(folder.profile_path("here", burner.pid, "cpu"))
        times = Profile.open(folder.times_path("here", burner.pid, "cpu")).times
        assert profile.total("samples") == recording.samples.taken == times.samples > 20
        assert (times.end - times.start) / 1e6 == pytest.approx(recording.seconds, abs=1)
