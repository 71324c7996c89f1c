"""What a notebook shows: progress, values and errors. Outside a notebook progress is lines on stderr."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from hprofiler.base.errors import HprofilerError
from hprofiler.base.text import printable
from hprofiler.collect.visit_group import HostProgress
from hprofiler.model.measures import counted

_FINAL = ("idle", "failed", "done")
_FAILURES_SHOWN = 20


class Progress:
    """Where a run is, in one line that changes, or outside a notebook in a line for each step.

    Hosts that failed are lines above it.
    """

    def __init__(self, hosts: int) -> None:
        self._hosts = hosts
        self._stages: dict[str, str] = {}
        self._processes: dict[str, int] = {}
        self._began = 0.0
        self._fetches = False
        self._above: list[str] = []
        self._line = ""
        self._cell = _cell()
        self._show(f"preparing {counted(hosts, 'hosts')}")

    def take(self, step: HostProgress) -> None:
        if step.stage in ("stop", "lost"):
            return
        self._stages[step.host] = step.stage
        if step.stage == "failed" and len(self._above) < _FAILURES_SHOWN:
            self.say(f"{step.host}: {step.detail}")
        if step.stage == "record":
            self._began = self._began or time.monotonic()
            self._processes[step.host] = step.processes
            if self._cell is not None:
                self.recording()
        elif step.stage in ("fetch", "clean"):
            self._fetches = True
            self._show("fetching the recordings")

    def recording(self) -> None:
        """Show how many processes are recorded, until the first recording is fetched."""
        if self._processes and not self._fetches:
            where = f"on {counted(len(self._processes), 'hosts')}"
            self._show(f"recording {counted(sum(self._processes.values()), 'processes')} {where}")

    def is_recording(self, together: float) -> bool:
        """Whether each host records that will: the last ones have `together` seconds once the first one
        does."""
        if not self._began:
            return False
        ready = [one for one in self._stages.values() if one in ("record", "fetch", "clean", *_FINAL)]
        return len(ready) >= self._hosts or time.monotonic() - self._began >= together

    def say(self, line: str) -> None:
        """A line that stays."""
        self._above.append(f"hprofiler: {printable(line)}")
        self._write(self._above[-1])

    def end(self, line: str) -> None:
        self._show(line)

    def _show(self, line: str) -> None:
        line = f"hprofiler: {printable(line)}"
        if line != self._line:
            self._line = line
            self._write(line)

    def _write(self, line: str) -> None:
        if self._cell is None:
            print(line, file=sys.stderr, flush=True)
        else:
            self._cell.update({"text/plain": "\n".join((*self._above, self._line))}, raw=True)


@contextmanager
def explained() -> Iterator[None]:
    """Errors show their remedy too: a notebook prints an exception's text, and no more."""
    try:
        yield
    except HprofilerError as error:
        if error.remedy:
            error.args = (f"{error.reason}\n  {error.remedy}",)
        raise


def show(value: object) -> None:
    """Show a value as a notebook shows the value of a cell; outside a notebook nothing."""
    if is_notebook():
        _display()(value)


def is_notebook() -> bool:
    ipython = sys.modules.get("IPython")
    return ipython is not None and hasattr(ipython.get_ipython(), "kernel")


def _cell() -> Any:
    """A part of the cell's output that can be replaced; None outside a notebook."""
    return _display()({"text/plain": ""}, raw=True, display_id=True) if is_notebook() else None


def _display() -> Any:
    return import_module("IPython.display").display  # not a dependency: a notebook has it
