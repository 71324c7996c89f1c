"""Visits that go on after the second Ctrl-C, when nobody waits for them any longer."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Sequence
from dataclasses import replace

import pytest

from hprofiler.base.errors import HostError
from hprofiler.collect import HostProgress, Reach, recording
from hprofiler.collect.ledger import Ledger
from hprofiler.model import Process, Recording, Samples, Status
from tests.unit.stand_in import Fleet, StandIns

PATIENCE = 60
HALF = """hello(); found(7, 8); prepared(7, 8); recording(7, 8)
profile(7, b'p'); time.sleep(600)"""


def test_what_a_worker_keeps_meanwhile_does_not_spoil_the_result(
    stand_ins: StandIns, monkeypatch: pytest.MonkeyPatch
) -> None:
    fleet = Fleet(stand_ins, 600.0, {"a": HALF})
    ledgers: list[Ledger] = []
    numbers = itertools.count()

    class Busy(Process):
        """Another recording is kept whenever somebody asks for its pid in the end."""

        def __getattribute__(self, name: str) -> object:
            if name == "pid" and fleet.stop.level >= 2:
                process = Process("a", 7, 1, 0, "root", "M")
                kept = Recording(process, f"e{next(numbers)}", "perf", "", 1, Samples(1, 1, 0), 1.0)
                ledgers[0].recorded(kept)
            return super().__getattribute__(name)

    class Filling(Ledger):
        def found(self, processes: Sequence[Process]) -> None:
            ledgers.append(self)
            super().found([Busy(**vars(process)) for process in processes])

    def stop(step: HostProgress) -> None:
        fleet.progress.append(step)
        if [one.stage for one in fleet.progress][-2:] == ["fetch", "record"]:
            fleet.stop.request()
            fleet.stop.request()

    fleet.listener = stop
    fleet.sampling = replace(fleet.sampling, events=("cpu", "alloc"), duration=600.0)
    monkeypatch.setattr(recording, "Ledger", Filling)
    result = fleet.collect()["a"]
    assert next(numbers) > 1
    (host, *processes) = result.outcomes
    assert host.reason == "interrupted" and [line.pid for line in processes] == [7, 8]
    assert (result.recordings[0].process.pid, result.recordings[0].event) == (7, "cpu")


def test_a_host_fails_once(stand_ins: StandIns) -> None:
    """It has, and cannot be closed, as the user ends the run."""
    fleet = Fleet(stand_ins, 600.0, {"a": "hello()"})
    never = threading.Event()

    class Wedged:
        become, bytes_sent, bytes_received = None, 0, 0

        def connect(self) -> None:
            raise HostError("connect", "refused")

        def close(self) -> None:
            fleet.stop.request()
            fleet.stop.request()
            never.wait(PATIENCE)

    fleet.reach = Reach(lambda host: Wedged(), fleet.reach.binaries)  # type: ignore[arg-type, return-value]
    outcomes = fleet.collect()["a"].outcomes
    never.set()
    assert [(line.status, line.reason) for line in outcomes] == [(Status.FAILED, "refused")]
    assert [step.detail for step in fleet.progress if step.stage == "failed"] == ["refused"]
