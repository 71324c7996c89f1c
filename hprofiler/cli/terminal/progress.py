"""Progress of a run on stderr: a live display on a terminal, plain lines elsewhere."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from hprofiler.cli.terminal.prompt import floor, makes_room
from hprofiler.model import DOING
from hprofiler.model.measures import counted

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from hprofiler.collect.visit_group import HostProgress, Listener

# Stages in order; `idle`, `failed` and `done` are final.
STAGES = (
    "connect",
    "push",
    "find",
    "prepare",
    "canary",
    "wait",
    "start",
    "record",
    "dump",
    "fetch",
    "clean",
    "done",
)
TOLD = ("canary", "wait", "record", "dump", "done", "idle", "failed")  # stages shown in plain lines
WORDS = {
    **DOING,
    "canary": "canary",
    "wait": "ready",
    "done": "done",
    "idle": "idle",
    "failed": "failed",
}


_VALUE_SECONDS = 60.0
"""How often a log has the value that a trigger waits for."""


@contextmanager
def display(hosts: int, duration: float) -> Iterator[Listener]:
    """A listener that shows progress while the block runs. A `duration` of 0 is of a visit that records
    nothing."""
    if sys.stderr.isatty():
        with _live(hosts, duration) as listener:
            yield listener
    else:
        yield PlainLines()


class PlainLines:
    """One line per step and host, for logs."""

    def __init__(self) -> None:
        self._said: set[tuple[str, str]] = set()
        self._lost: set[str] = set()
        self._next_value = 0.0

    def __call__(self, progress: HostProgress) -> None:
        if progress.stage == "trigger":
            if progress.detail and time.monotonic() >= self._next_value:
                self._next_value = time.monotonic() + _VALUE_SECONDS
                self._print(progress.detail)
            return
        if progress.stage == "stop":
            self._print(progress.detail)
            return
        if notice := reconnect_notice(progress, self._lost):
            self._print(notice)
        step = (progress.host, progress.stage + (progress.detail if progress.stage == "canary" else ""))
        if progress.stage not in TOLD or step in self._said:
            return
        self._said.add(step)
        words = WORDS.get(progress.stage, progress.stage)
        found = counted(progress.processes, "processes") if progress.processes else "no processes"
        processes = {"record": f" {found}", "dump": f" of {found}"}.get(progress.stage, "")
        detail = f": {progress.detail}" if progress.detail else ""
        self._print(f"{progress.host}: {words}{processes}{detail}")

    def _print(self, line: str) -> None:
        print(line, file=sys.stderr, flush=True)


@contextmanager
def _live(hosts: int, duration: float) -> Iterator[Listener]:
    with _bars("{task.description:<9}", "{task.fields[note]}") as progress:
        yield LiveDisplay(progress, hosts, duration)


@contextmanager
def counters() -> Iterator[Callable[[str, int, int], None]]:
    """Shows counters `done` of `of` by name on a terminal; calling with 0 done adds one."""
    if not sys.stderr.isatty():
        yield lambda name, done, of: None
        return
    tasks: dict[str, TaskID] = {}
    with _bars("{task.description}", "") as progress:

        def count(name: str, done: int, of: int) -> None:
            with floor:
                if done == 0:
                    tasks[name] = progress.add_task(name, total=of)
                progress.update(tasks[name], completed=done)

        yield count


@contextmanager
def _bars(before: str, after: str) -> Iterator[Progress]:
    """Bars on the terminal with these texts around them; questions pause them."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (
        TextColumn(before, markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn(after, markup=False),
    )
    with (
        Progress(*columns, console=Console(stderr=True), transient=True) as progress,
        makes_room(progress.stop, progress.start),
    ):
        yield progress


class LiveDisplay:
    """Three bars: hosts ready, seconds recorded, hosts collected; failures scroll above them."""

    def __init__(self, progress: Progress, hosts: int, duration: float) -> None:
        self._progress = progress
        self._hosts = hosts
        self._duration = duration
        self._stage: dict[str, str] = {}
        self._processes: dict[str, int] = {}
        self._ready = progress.add_task("ready", total=hosts, note="")
        self._record = progress.add_task(
            "record", total=round(duration), note="s", start=False, visible=duration > 0
        )
        self._collect = progress.add_task("collect", total=hosts, note="")
        self._ticker = threading.Thread(target=self._tick, daemon=True)
        self._lost: set[str] = set()
        self._value = ""

    def __call__(self, progress: HostProgress) -> None:
        with floor:
            self._hear(progress)

    def _hear(self, progress: HostProgress) -> None:
        from rich.text import Text

        if progress.stage == "trigger":
            self._value = progress.detail
            self._show()
            return
        if progress.stage == "stop":
            self._progress.console.print(Text(progress.detail))
            return
        if notice := reconnect_notice(progress, self._lost):
            self._progress.console.print(Text(notice))
        if progress.stage != "lost":  # a lost host stays where it was
            self._stage[progress.host] = progress.stage
        if progress.processes:
            self._processes[progress.host] = progress.processes
        if progress.stage == "failed":
            self._progress.console.print(Text(f"{progress.host}: {progress.detail}", style="red"))
        if progress.stage == "record" and self._ticker.ident is None:
            self._progress.start_task(self._record)
            with contextlib.suppress(RuntimeError):  # without a thread the bar does not move
                self._ticker.start()
        self._show()

    def _show(self) -> None:
        stages = list(self._stage.values())
        # Failed and idle hosts, which are at no stage, count too.
        order = STAGES.index
        past = {
            wanted: sum(s not in STAGES or order(s) >= order(wanted) for s in stages)
            for wanted in ("wait", "done")
        }
        total = max(self._hosts, len(stages))  # hosts may join
        busy = sorted({f"{WORDS[s]} {stages.count(s)}" for s in stages if s in STAGES[:4]})
        note = ", ".join(busy) if stages else self._value
        self._progress.update(self._ready, completed=past["wait"], total=total, note=note)
        note = f"s on {counted(sum(self._processes.values()), 'processes')}"
        value = f"; {self._value}" if self._value and self._ticker.ident else ""
        self._progress.update(self._record, note=f"{note}{value}")
        self._progress.update(self._collect, completed=past["done"], total=total)

    def _tick(self) -> None:
        """Move the time bar once a second."""
        task = next(t for t in self._progress.tasks if t.id == self._record)
        clock = threading.Event()
        while not self._progress.finished and (task.elapsed or 0) < self._duration:
            clock.wait(min(1.0, self._duration))
            self._progress.update(
                self._record, completed=min(round(task.elapsed or 0), round(self._duration))
            )


def reconnect_notice(progress: HostProgress, lost: set[str]) -> str:
    """The line about a host that lost its connection, or reconnected; `lost` are the lost hosts so far."""
    if progress.stage == "lost":
        lost.add(progress.host)
        return f"{progress.host}: {progress.detail}; reconnecting for up to {progress.seconds:.0f} s"
    was_lost = progress.host in lost
    lost.discard(progress.host)
    is_back = was_lost and progress.stage not in ("done", "failed")
    return f"{progress.host}: {progress.detail}" if is_back else ""
