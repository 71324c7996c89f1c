"""The methods of `top`: of the busiest process, recorded for a moment when a key asks for it."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress

from hprofiler.analysis.attribution import Method
from hprofiler.analysis.sure_callers import Callers
from hprofiler.app.glance import SECONDS, Glance, glance
from hprofiler.base.errors import HprofilerError
from hprofiler.base.text import printable
from hprofiler.cli.terminal.top_processes import TopProcess
from hprofiler.collect.stop import Stop
from hprofiler.collect.visit_group import Reach
from hprofiler.model import Host
from hprofiler.model.measures import counted
from hprofiler.report.text import UNKNOWN_TOTALS, hottest

_MOST = 10
# Longest time that the end of `top` waits for the end of a recording.
_PATIENCE = 30.0


class TopMethods:
    """`lines` is what is known last."""

    def __init__(self, hosts: Mapping[str, Host], reach: Reach) -> None:
        self._hosts = hosts
        self._reach = reach
        self._stop = Stop()
        self._worker: threading.Thread | None = None
        self.lines: Sequence[str] = ()

    def ask(self, processes: Sequence[TopProcess]) -> None:
        """Record the first process, unless one is being recorded."""
        if self._worker and self._worker.is_alive():
            return
        if not processes or processes[0].cpu is None:
            self.lines = ["it is not known yet which process is busiest: press m again in a few seconds"]
            return
        self._worker = threading.Thread(target=self._record, args=(processes[0],), daemon=True)
        with suppress(RuntimeError):
            self._worker.start()

    def close(self) -> None:
        """End a recording, and wait until nothing of it is left."""
        self._stop.finish()
        if self._worker and self._worker.is_alive():
            self.lines = ["ending the recording …"]
            self._worker.join(_PATIENCE)

    def _record(self, process: TopProcess) -> None:
        who = printable(f"{process.label} (pid {process.pid})")
        self.lines = [f"recording {who} for {SECONDS:.0f} s …"]
        try:
            seen = glance(self._hosts[process.host], process.pid, self._reach, self._stop)
        except HprofilerError as error:
            self.lines = [printable(f"{who}: {error.reason}"), printable(f"  {error.remedy}")]
        except (OSError, ValueError, RuntimeError) as error:
            self.lines = [printable(f"{who}: the profile cannot be used: {error}")]
        else:
            samples = seen.profile.total()
            taken = f"{who}: {counted(samples, 'samples')} of CPU time"
            self.lines = [taken, *(methods_of(seen) if samples else [])]


def methods_of(seen: Glance) -> list[str]:
    """The hottest methods as lines of text, and why totals are not known."""
    profile = seen.profile
    unknown = Callers([profile], waits=False).unknown if seen.callers_unsure else []
    methods = [
        Method(one.name, one.self_value, one.total_value, known=one.name not in unknown)
        for one in profile.top(_MOST)
    ]
    lines = hottest(methods, profile.total(), "cpu", self_only=seen.broken).split("\n")
    if seen.broken:
        return ["too many stacks are broken for totals", *lines]
    return lines if all(one.known for one in methods) else [*lines, UNKNOWN_TOTALS]
