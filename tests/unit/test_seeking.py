"""While a host whose connection is lost is sought, a log and the live display say so, and for how long."""

from __future__ import annotations

import re
import sys
import threading
from queue import SimpleQueue

import pytest

from hprofiler.cli.terminal.progress import LiveDisplay, PlainLines, display
from hprofiler.cli.terminal.reconnect_notice import Seeking
from hprofiler.collect import HostProgress
from tests.unit.command import Terminal

PATIENCE = 30
LOST = HostProgress("host3", "lost", "the connection was lost", 1, 30.0)
AGAIN = HostProgress("host3", "fetch", "reconnected after 12 s", 1)
# How many seconds are over is for the machine's load to say.
SOUGHT = re.compile(r"host3: the connection was lost; looking for its agent \(\d+ s of 30\)")


def seeking(every: float) -> tuple[Seeking, SimpleQueue[list[str]]]:
    said: SimpleQueue[list[str]] = SimpleQueue()
    return Seeking(every, said.put), said


def test_it_is_said_again_and_again_until_the_host_is_found() -> None:
    sought, said = seeking(0.01)
    assert not sought.hear(LOST)
    for _ in range(3):
        (line,) = said.get(timeout=PATIENCE)
        assert SOUGHT.fullmatch(line), line
    assert sought.hear(AGAIN)
    while said.get(timeout=PATIENCE):
        pass
    assert not sought.hear(AGAIN)


def test_a_log_has_it_and_that_it_is_there_again(capfd: pytest.CaptureFixture[str]) -> None:
    log = PlainLines()
    heard = threading.Event()
    say = log._seeking._tell
    log._seeking._tell = lambda lines: (say(lines), heard.set())  # type: ignore[assignment, func-returns-value]
    log(HostProgress("host3", "record", "", 1))
    log(LOST)
    assert heard.wait(PATIENCE)
    log(AGAIN)
    first, *sought, again = capfd.readouterr().err.splitlines()
    assert (first, again) == ("host3: recording 1 process", "host3: reconnected after 12 s")
    assert sought and all(map(SOUGHT.fullmatch, sought))


def test_a_terminal_takes_no_word_of_a_host_for_markup(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "400")
    words = "[link=http://evil]gone[/link] [/x] [bold]"
    shown = threading.Event()
    with display(1, 60.0) as told:
        assert isinstance(told, LiveDisplay)
        tell = told._seeking._tell
        told._seeking._tell = lambda lines: (tell(lines), shown.set())  # type: ignore[assignment, func-returns-value]
        told(HostProgress("host3", "lost", words, 1, 30.0))
        assert shown.wait(PATIENCE)
        told._progress.refresh()
        assert f"host3: {words}; looking" in terminal.getvalue()
        told(HostProgress("host3", "failed", f"failed {words}"))
        told(HostProgress("", "stop", f"stopping {words}"))
    assert f"failed {words}" in terminal.getvalue() and f"stopping {words}" in terminal.getvalue()
