"""What visits to hosts share: the common start, time limits, the user's wish to stop."""

from __future__ import annotations

import threading

from hprofiler.collect import Stop
from hprofiler.collect.beside import Beside
from hprofiler.collect.gate import StartGate
from hprofiler.collect.watchdog import Watchdog


def test_the_gate_opens_with_the_last_and_stays_open():
    gate = StartGate(3)
    passed = []
    threads = [threading.Thread(target=lambda: passed.append(gate.wait())) for _ in range(2)]
    for thread in threads:
        thread.start()
    assert not passed
    gate.leave()
    for thread in threads:
        thread.join(60)
    assert passed == [0.0, 0.0]


def test_patience_begins_when_nobody_is_queued():
    began = []
    gate = StartGate(2, lambda: began.append(1))
    gate.under_way()
    assert not began
    gate.under_way()
    assert began == [1]


def test_the_watchdog_acts_in_time_and_not_when_cancelled():
    acted = []
    done = threading.Event()
    with Beside() as beside, Watchdog(beside) as dog:
        dog.cancel(dog.after(1.0, lambda: acted.append("cancelled")))
        dog.after(1.2, done.set)
        dog.after(1.1, lambda: acted.append("first"))
        assert done.wait(60)
    assert acted == ["first"]


def test_stop_requests_made_early_count():
    stop = Stop()
    stop.request()
    heard = threading.Event()
    with stop.telling(lambda level: heard.set() if level == 1 else None):
        assert heard.wait(60)
    assert stop.level == 1
