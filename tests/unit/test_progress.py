"""A log and the live display report a host whose connection is lost, and that it is there again."""

from __future__ import annotations

import sys

import pytest

from hprofiler.cli.terminal.progress import PlainLines, display
from hprofiler.collect import HostProgress
from tests.unit.command import Terminal

LOST = HostProgress("host3", "lost", "the connection was lost", 1, 30.0)
AGAIN = HostProgress("host3", "fetch", "reconnected after 12 s", 1)


def test_a_log_has_it_and_that_it_is_there_again(capfd: pytest.CaptureFixture[str]) -> None:
    log = PlainLines()
    for step in (HostProgress("host3", "record", "", 1), LOST, AGAIN, AGAIN):
        log(step)
    assert capfd.readouterr().err.splitlines() == [
        "host3: recording 1 process",
        "host3: the connection was lost; reconnecting for up to 30 s",
        "host3: reconnected after 12 s",
    ]


def test_a_terminal_takes_no_word_of_a_host_for_markup(monkeypatch: pytest.MonkeyPatch) -> None:
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
