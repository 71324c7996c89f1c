"""Ctrl-C is heard whichever thread it reaches, and whatever the main thread is waiting for."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from queue import SimpleQueue

import pytest

from hprofiler.collect import Stop, on_interrupt

PATIENCE = 30


def setting(event: threading.Event) -> Callable[[int], None]:
    """An action that sets the event, whatever the signal."""
    return lambda number: event.set()


def wait_until_asleep(thread: int) -> None:
    """Until a thread of this process was found asleep many times in a row: not only waiting for a turn."""
    asleep = 0
    until = time.monotonic() + PATIENCE
    while asleep < 1000 and time.monotonic() < until:
        state = Path(f"/proc/self/task/{thread}/stat").read_text().rpartition(")")[2].split()[0]
        asleep = asleep + 1 if state == "S" else 0


def test_a_signal_that_another_thread_takes_is_heard_while_the_main_thread_sleeps() -> None:
    """So it is, too, when the signal comes just before the main thread goes to sleep."""
    heard, over, going = threading.Event(), threading.Event(), threading.Event()

    def take() -> None:
        going.wait(PATIENCE)
        wait_until_asleep(os.getpid())
        signal.pthread_kill(threading.get_ident(), signal.SIGINT)
        over.wait(PATIENCE)

    with on_interrupt(setting(heard)):
        taker = threading.Thread(target=take)
        taker.start()
        going.set()
        assert heard.wait(PATIENCE)
        over.set()
        taker.join()


def test_only_the_innermost_hears_and_the_outer_one_hears_again_afterwards() -> None:
    outer, inner = threading.Event(), threading.Event()
    with on_interrupt(setting(outer)):
        with on_interrupt(setting(inner)):
            os.kill(os.getpid(), signal.SIGINT)
            assert inner.wait(PATIENCE)
        assert not outer.is_set()
        os.kill(os.getpid(), signal.SIGINT)
        assert outer.wait(PATIENCE)
    with pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGINT)
        threading.Event().wait(PATIENCE)


def test_an_action_that_fails_is_reported_and_the_next_signal_heard(caplog: pytest.LogCaptureFixture) -> None:
    calls: SimpleQueue[None] = SimpleQueue()

    def fail(number: int) -> None:
        calls.put(None)
        raise OSError("the terminal is closed")

    with on_interrupt(fail):
        for _ in range(2):
            os.kill(os.getpid(), signal.SIGINT)
            calls.get(timeout=PATIENCE)
    assert caplog.text.count("the terminal is closed") >= 2


def test_a_listener_that_fails_is_reported_and_hears_the_next_level(caplog: pytest.LogCaptureFixture) -> None:
    stop = Stop()
    levels: SimpleQueue[int] = SimpleQueue()

    def fail(level: int) -> None:
        levels.put(level)
        raise OSError("the terminal is closed")

    with stop.telling(fail):
        for level in (1, 2):
            stop.request()
            assert levels.get(timeout=PATIENCE) == level
    assert caplog.text.count("the terminal is closed") >= 2


def test_an_action_that_goes_on_does_not_keep_the_block_from_ending() -> None:
    begun, release = threading.Event(), threading.Event()

    def block(number: int) -> None:
        begun.set()
        release.wait()

    def leave() -> None:
        with on_interrupt(block):
            os.kill(os.getpid(), signal.SIGINT)
            assert begun.wait(PATIENCE)

    # Without a bound the block would wait for ever: then it is let go, and told.
    late = threading.Timer(PATIENCE, release.set)
    late.start()
    try:
        leave()
        assert not release.is_set()
    finally:
        late.cancel()
        release.set()


def test_each_request_is_a_level_of_its_own() -> None:
    stop = Stop()
    levels: SimpleQueue[int] = SimpleQueue()
    with stop.telling(levels.put), on_interrupt(stop.request):
        for level in (1, 2):
            os.kill(os.getpid(), signal.SIGINT)
            assert levels.get(timeout=PATIENCE) == level


def test_sigterm_and_a_hangup_are_requests_too_and_the_first_is_known() -> None:
    stop = Stop()
    levels: SimpleQueue[int] = SimpleQueue()
    before = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)]
    with stop.telling(levels.put), on_interrupt(stop.request):
        os.kill(os.getpid(), signal.SIGHUP)
        assert levels.get(timeout=PATIENCE) == 1
        os.kill(os.getpid(), signal.SIGTERM)
        assert levels.get(timeout=PATIENCE) == 2
    assert stop.signal == signal.SIGHUP
    assert [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)] == before


@pytest.mark.parametrize("first", [signal.SIGINT, signal.SIGHUP])
def test_a_terminal_that_hangs_up_is_heard_once_and_is_no_second_request(first: signal.Signals) -> None:
    """The kernel and the shell both say it; nor is it one after Ctrl-C: nobody means "at once" by it."""
    stop = Stop()
    levels: SimpleQueue[int] = SimpleQueue()
    with stop.telling(levels.put):
        stop.request(first)
        stop.request(signal.SIGHUP)
    assert levels.get(timeout=PATIENCE) == 1 and levels.empty()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_a_signal_that_is_ignored_stays_ignored(number: signal.Signals) -> None:
    heard: SimpleQueue[int] = SimpleQueue()
    before = signal.signal(number, signal.SIG_IGN)
    try:
        with on_interrupt(heard.put):
            assert signal.getsignal(number) is signal.SIG_IGN
            os.kill(os.getpid(), number)
            os.kill(os.getpid(), signal.SIGTERM)
            assert heard.get(timeout=PATIENCE) == signal.SIGTERM and heard.empty()
        assert signal.getsignal(number) is signal.SIG_IGN
    finally:
        signal.signal(number, before)
