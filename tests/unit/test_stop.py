"""Requests to stop, by signals or by hand."""

from __future__ import annotations

import os
import signal

import pytest

from hprofiler.collect import Stop, on_interrupt


def test_each_signal_is_a_request_and_the_first_is_known() -> None:
    stop = Stop()
    signals = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
    before = [signal.getsignal(number) for number in signals]
    with on_interrupt(stop.request):
        os.kill(os.getpid(), signal.SIGHUP)
        assert stop.level == 1
        os.kill(os.getpid(), signal.SIGTERM)
        assert stop.level == 2
    assert stop.signal == signal.SIGHUP
    assert [signal.getsignal(number) for number in signals] == before


@pytest.mark.parametrize("first", [signal.SIGINT, signal.SIGHUP])
def test_a_hangup_is_never_the_second_request(first: signal.Signals) -> None:
    stop = Stop()
    stop.request(first)
    stop.request(signal.SIGHUP)
    assert stop.level == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_an_ignored_signal_stays_ignored(number: signal.Signals) -> None:
    stop = Stop()
    before = signal.signal(number, signal.SIG_IGN)
    try:
        with on_interrupt(stop.request):
            os.kill(os.getpid(), number)
        assert stop.level == 0 and signal.getsignal(number) is signal.SIG_IGN
    finally:
        signal.signal(number, before)
