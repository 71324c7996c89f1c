"""SIGTERM, and a terminal that hangs up, in the middle of a real run: what was recorded is kept."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import signal
import socket
import subprocess
import sys
import termios
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.burners.burner import Burner
from tests.contract import real
from tests.lab import procs

pytestmark = pytest.mark.skipif(bool(real.why_not()), reason=str(real.why_not()))
LONG = 600


@pytest.fixture
def burner() -> Iterator[Burner]:
    made = Burner(role="alpha", load=0.4)
    yield made
    made.kill()


def words(burner: Burner, folder: Path) -> list[str]:
    command = [sys.executable, "-m", "hprofiler", "-j", f"pid:{burner.pid}", "-t", str(LONG)]
    return [*command, "--force-busy", "-o", str(folder)]


def burnt(burner: Burner) -> None:
    """Until it has burnt what is enough for some samples."""
    before = burner.counters()
    procs.wait_for(
        "CPU time while recorded", lambda: (burner.counters() - before).nanos > 5e8, procs.PATIENCE
    )


def kept(folder: Path, burner: Burner) -> dict[str, Any]:
    """The run that the folder holds, in which the burner was recorded until the signal came."""
    run: dict[str, Any] = json.loads((folder / "run.json").read_text())
    (host,) = run["hosts"]
    (recording,) = host["recordings"]
    assert run["interrupted"] and recording["process"]["pid"] == burner.pid
    assert recording["samples"]["taken"] > 0 and recording["seconds"] < LONG
    assert (folder / "report.html").stat().st_size > 1000
    return run


def test_sigterm_keeps_and_reports_what_was_recorded(burner: Burner, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    running = subprocess.Popen(
        words(burner, folder), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert running.stderr
    try:
        while "recording" not in (line := running.stderr.readline()):
            assert line, "it ended before it recorded"
        burnt(burner)
        running.send_signal(signal.SIGTERM)
        out, err = running.communicate(timeout=4 * procs.PATIENCE)
    finally:
        running.kill()
        running.wait()
    assert running.returncode == 143, err
    assert "Traceback" not in err and "before the interrupt" in out
    kept(folder, burner)


def test_a_terminal_that_hangs_up_costs_nothing_but_what_it_would_have_shown(
    burner: Burner, tmp_path: Path
) -> None:
    """By the live display, to a terminal that takes nothing any more."""
    folder = tmp_path / "run"
    ours, theirs = pty.openpty()
    running = subprocess.Popen(
        words(burner, folder),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        env={**os.environ, "TERM": "xterm", "COLUMNS": "200"},
    )
    os.close(theirs)
    shown = bytearray()
    recording = threading.Event()

    def read() -> None:
        while not recording.is_set():
            shown.extend(os.read(ours, 4096))
            if re.search(rb"[1-9]/600", shown):  # the bar of what is recorded moves
                recording.set()

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    try:
        assert recording.wait(4 * procs.PATIENCE), bytes(shown)
        reader.join()
        burnt(burner)
        os.close(ours)
        code = running.wait(4 * procs.PATIENCE)
    finally:
        running.kill()
        running.wait()
    assert code == 129
    kept(folder, burner)


@pytest.mark.parametrize("verb", ["ps", "doctor", "cleanup"])
def test_a_terminal_that_hangs_up_while_a_host_is_connected_to_is_told_as_that(
    verb: str, tmp_path: Path
) -> None:
    """The host takes the connection and says nothing."""
    audit = tmp_path / "audit"
    ours, theirs = pty.openpty()
    with socket.create_server(("127.0.0.1", 0)) as host:
        host.settimeout(procs.PATIENCE)
        target = ["-h", "127.0.0.1", "--port", str(host.getsockname()[1])]
        selector = [] if verb == "cleanup" else ["-j", "java"]
        running = subprocess.Popen(
            [sys.executable, "-m", "hprofiler", verb, *target, *selector, "--audit", str(audit)],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        os.close(theirs)
        try:
            host.accept()
            os.close(ours)
            code = running.wait(4 * procs.PATIENCE)
        finally:
            running.kill()
            running.wait()
    last = json.loads(audit.read_text().splitlines()[-1])
    assert (code, last["what"], last["exit_code"]) == (129, "end", 129)
