"""Questions to the user at the terminal."""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import sys
import termios
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from hprofiler.base.text import printable
from hprofiler.cli.terminal.streams import is_terminal

floor = threading.Lock()
"""Held while a question is open, and by displays while they write."""
_given_up = threading.Event()
_displays: list[tuple[Callable[[], None], Callable[[], None]]] = []


def can_ask() -> bool:
    """Whether a user can see and answer a question."""
    return is_terminal(sys.stdin) and is_terminal(sys.stderr)


def agrees(question: str) -> bool:
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


@contextmanager
def makes_room(leave: Callable[[], None], go_on: Callable[[], None]) -> Iterator[None]:
    """Lets a display use the terminal while the block runs; questions pause it."""
    _displays.append((leave, go_on))
    try:
        yield
    finally:
        _displays.remove((leave, go_on))


def passphrase(prompt: str) -> str | None:
    """Ask on the terminal without echo, one question at a time; may be called from any thread.

    None if no user can answer. Ctrl-C ends the question and is raised again as a signal; no other question
    follows.
    """
    if not is_terminal(sys.stdin):
        return None
    try:
        terminal = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        with floor, _displays_left(), _unseen(terminal) as interrupt:
            if _given_up.is_set():
                return None
            os.write(terminal, printable(prompt).encode(errors="replace"))
            answer = os.read(terminal, 4096)
            os.write(terminal, b"\n")
            gives_up = answer.endswith(interrupt)
            if gives_up:
                _given_up.set()
    except (OSError, termios.error):  # the terminal hung up, or this is a background job
        return None
    finally:
        os.close(terminal)
    if gives_up:  # only once: a second signal would mean "at once"
        os.kill(os.getpid(), signal.SIGINT)
        return None
    return os.fsdecode(answer.rstrip(b"\r\n"))


@contextmanager
def _displays_left() -> Iterator[None]:
    left = list(_displays)
    for leave, _ in left:
        leave()
    try:
        yield
    finally:
        for display in left:
            if display in _displays:  # the answer may have ended it
                display[1]()


@contextmanager
def _unseen(terminal: int) -> Iterator[bytes]:
    """No echo while the block runs, and Ctrl-C (returned) ends a line like Enter.

    As a signal it would not reach the reading thread. The echo is restored however the program ends.
    """
    if os.tcgetpgrp(terminal) != os.getpgrp():
        raise OSError("in the background")
    before, meanwhile = termios.tcgetattr(terminal), termios.tcgetattr(terminal)
    interrupt: bytes = before[6][termios.VINTR]
    meanwhile[3] &= ~(termios.ECHO | termios.ISIG)
    meanwhile[6][termios.VEOL] = interrupt

    def show_again() -> None:
        with contextlib.suppress(OSError, termios.error):
            termios.tcsetattr(terminal, termios.TCSANOW, before)

    atexit.register(show_again)
    try:
        termios.tcsetattr(terminal, termios.TCSAFLUSH, meanwhile)
        yield interrupt
    finally:
        show_again()
        atexit.unregister(show_again)
