"""Time limits that expire when a test advances the clock, and never because the machine is busy."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

import pytest

from hprofiler.collect import visit, visit_group
from hprofiler.collect.visit_group import HostProgress, VisitGroup
from tests.unit.stand_in import Fleet


class Limits:
    """The clock of all visits; a test can advance it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._ahead = 0.0
        reporting = threading.Lock()

        def report(group: VisitGroup, progress: HostProgress) -> None:
            """Reports at once, so that time passes within a step and not in the next one."""
            with reporting:
                group._listener(progress)

        for module in (visit, visit_group):
            monkeypatch.setattr(module, "time", self)
        monkeypatch.setattr(VisitGroup, "report", report)

    def monotonic(self) -> float:
        return time.monotonic() + self._ahead

    def pass_time(self, seconds: float) -> None:
        self._ahead += seconds

    def pass_when(self, fleet: Fleet, seconds: float, **stages: Sequence[str]) -> None:
        """Advance the clock once, as soon as each of these hosts has reached the last of these stages."""
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
