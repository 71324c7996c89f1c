"""A passphrase asked for on a terminal, beside a display that has it."""

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

PATIENCE = 60
ASKS = """
import threading
from hprofiler.cli.terminal.prompt import passphrase
from hprofiler.cli.terminal.progress import display

given = []
with display(3, 60.0) as listener:
    asking = threading.Thread(target=lambda: given.append(passphrase("Passphrase for key: ")), daemon=True)
    asking.start()
    # A main thread that is just going to sleep on a lock does not hear a signal.
    while asking.is_alive():
        asking.join(0.1)
print("given:", *given)
"""


@contextmanager
def asked(words: str = ASKS) -> Iterator[tuple[subprocess.Popen[bytes], int, int]]:
    """A program on a terminal of its own, and both ends of that."""
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
    """What the terminal shows, up to that."""
    so_far = b""
    while shown not in so_far:
        assert select.select([ours], [], [], PATIENCE)[0], so_far
        so_far += os.read(ours, 4096)
    return so_far


def shows_what_is_typed(terminal: int) -> bool:
    return bool(termios.tcgetattr(terminal)[3] & termios.ECHO)


def test_a_display_leaves_the_question_alone_and_goes_on_after_it() -> None:
    with asked() as (program, ours, theirs):
        assert until(ours, b"Passphrase for key: ").endswith(b"key: ")
        assert not shows_what_is_typed(theirs)
        # The display draws ten times a second.
        assert select.select([ours], [], [], 0.5)[0] == []
        os.write(ours, b"hunted\x7f\x7fer2\n")
        shown = until(ours, b"given: hunter2")
        assert b"ready" in shown and shown.count(b"hunt") == 1
        assert program.wait(PATIENCE) == 0 and shows_what_is_typed(theirs)


@pytest.mark.parametrize("typed", [b"\x03", b"half\x03"])
def test_ctrl_c_ends_the_question_and_the_program(typed: bytes) -> None:
    with asked() as (program, ours, theirs):
        until(ours, b"key: ")
        os.write(ours, typed)
        assert b"KeyboardInterrupt" in until(ours, b"KeyboardInterrupt\r\n")
        assert program.wait(PATIENCE) != 0 and shows_what_is_typed(theirs)


def test_in_a_pipe_nobody_is_asked() -> None:
    done = subprocess.run([sys.executable, "-c", ASKS], capture_output=True, stdin=subprocess.DEVNULL)
    assert done.stdout == b"given: None\n"
