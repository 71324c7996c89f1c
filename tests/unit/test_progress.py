"""The live display and the log: a lost connection, and a question for a passphrase."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import subprocess
import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from hprofiler.cli.terminal.progress import PlainLines, display
from hprofiler.collect.visit_group import HostProgress
from tests.unit.command import Terminal

LOST = HostProgress("host3", "lost", "the connection was lost", 1, 30.0)
AGAIN = HostProgress("host3", "fetch", "reconnected after 12 s", 1)


def test_a_log_reports_a_lost_connection_and_the_reconnect(capfd: pytest.CaptureFixture[str]) -> None:
    log = PlainLines()
    for step in (HostProgress("host3", "record", "", 1), LOST, AGAIN, AGAIN):
        log(step)
    assert capfd.readouterr().err.splitlines() == [
        "host3: recording 1 process",
        "host3: the connection was lost; reconnecting for up to 30 s",
        "host3: reconnected after 12 s",
    ]


def test_messages_of_hosts_are_not_markup(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "400")
    words = "[link=http://evil]gone[/link] [/x] [bold]"
    with display(1, 60.0) as told:
        told(HostProgress("host3", "lost", words, 1, 30.0))
        assert f"host3: {words}; reconnecting" in terminal.getvalue()
        told(HostProgress("host3", "failed", f"failed {words}"))
        told(HostProgress("", "stop", f"stopping {words}"))
    assert f"failed {words}" in terminal.getvalue() and f"stopping {words}" in terminal.getvalue()


PATIENCE = 60
ASKS = """
import threading
from hprofiler.cli.terminal.prompt import passphrase
from hprofiler.cli.terminal.progress import display

given = []
with display(3, 60.0) as listener:
    asking = threading.Thread(target=lambda: given.append(passphrase("Passphrase for key: ")), daemon=True)
    asking.start()
    # A main thread that blocks on a lock does not handle signals.
    while asking.is_alive():
        asking.join(0.1)
print("given:", *given)
"""


@contextmanager
def asked(words: str = ASKS) -> Iterator[tuple[subprocess.Popen[bytes], int, int]]:
    """A program on a terminal of its own, and both ends of the terminal."""
    ours, theirs = pty.openpty()
    program = subprocess.Popen(
        [sys.executable, "-c", words],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        env={**os.environ, "TERM": "xterm"},
    )
    try:
        yield program, ours, theirs
    finally:
        program.kill()
        program.wait()
        os.close(ours)
        os.close(theirs)


def until(ours: int, shown: bytes) -> bytes:
    """The output of the terminal up to `shown`."""
    so_far = b""
    while shown not in so_far:
        assert select.select([ours], [], [], PATIENCE)[0], so_far
        so_far += os.read(ours, 4096)
    return so_far


def shows_what_is_typed(terminal: int) -> bool:
    return bool(termios.tcgetattr(terminal)[3] & termios.ECHO)


def test_the_display_pauses_for_a_question() -> None:
    with asked() as (program, ours, theirs):
        assert until(ours, b"Passphrase for key: ").endswith(b"key: ")
        assert not shows_what_is_typed(theirs)
        # The display draws ten times a second.
        assert select.select([ours], [], [], 0.5)[0] == []
        os.write(ours, b"hunted\x7f\x7fer2\n")
        shown = until(ours, b"given: hunter2")
        assert b"ready" in shown and shown.count(b"hunt") == 1
        assert program.wait(PATIENCE) == 0 and shows_what_is_typed(theirs)


def test_in_a_pipe_there_is_no_question() -> None:
    done = subprocess.run([sys.executable, "-c", ASKS], capture_output=True, stdin=subprocess.DEVNULL)
    assert done.stdout == b"given: None\n"
