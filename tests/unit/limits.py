"""Time limits that expire when a test lets time pass, and never because the machine is busy."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import pytest

from hprofiler.collect import HostProgress, Listener, crew
from hprofiler.collect.beside import Beside
from hprofiler.collect.teller import Teller
from hprofiler.collect.watchdog import Watchdog
from tests.unit.stand_in import Fleet


class Prompt(Teller[HostProgress]):
    """Tells at once: time passes for the limits that a step has, and not for those of the next."""

    def __init__(self, listener: Listener) -> None:
        super().__init__(listener)
        self._telling = threading.Lock()

    def tell(self, what: HostProgress) -> None:
        with self._telling:
            self._listener(what)


class Limits:
    """Those of all visits to hosts."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._dogs: list[Watchdog] = []
        dogs = self._dogs

        class Known(Watchdog):
            def __init__(self, beside: Beside) -> None:
                super().__init__(beside)
                dogs.append(self)

        monkeypatch.setattr(crew, "Watchdog", Known)
        monkeypatch.setattr(crew, "Teller", Prompt)

    def pass_time(self, seconds: float) -> None:
        """For the limits that are set by now so many seconds are over."""
        for dog in self._dogs:
            with dog._condition:
                dog._due[:] = [(due - seconds, number) for due, number in dog._due]
                dog._condition.notify()

    def pass_when(self, fleet: Fleet, seconds: float, **stages: Sequence[str]) -> None:
        """Let time pass once, as soon as each of these hosts has come to the last of these stages."""
        seen: list[HostProgress] = []
        passed = False

        def listen(step: HostProgress) -> None:
            nonlocal passed
            fleet.progress.append(step)
            seen.append(step)
            if passed:
                return
            for host, ends in stages.items():
                steps = [one.stage for one in seen if one.host == host]
                if steps[-len(ends) :] != list(ends):
                    return
            passed = True
            self.pass_time(seconds)

        fleet.listener = listen
