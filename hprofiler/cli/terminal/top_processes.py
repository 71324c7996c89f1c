"""The processes of `top`: what each used in the last second, the busiest first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hprofiler.analysis.metrics import HostMetrics
from hprofiler.base.text import printable
from hprofiler.model.measures import size
from hprofiler.report.machines import shown_percent

if TYPE_CHECKING:
    from rich.table import Table

    from hprofiler.collect.watching import HostReading

HEADS = ("host", "PID", "user", "CPU", "memory", "heap", "GC", "process")


@dataclass(frozen=True)
class TopProcess:
    """`cpu` are CPUs in use, `memory` resident bytes; `heap` and `gc` (a share in %) are of JVMs."""

    host: str
    pid: int
    user: str
    label: str
    cpu: float | None
    memory: float | None
    heap: float | None
    gc: float | None

    @property
    def row(self) -> tuple[str, ...]:
        cpu = "" if self.cpu is None else f"{self.cpu:.2f}"
        memory, heap = (size(one) if one else "" for one in (self.memory, self.heap))
        gc = "" if self.gc is None else shown_percent(self.gc)
        return (
            printable(self.host),
            str(self.pid),
            printable(self.user),
            cpu,
            memory,
            heap,
            gc,
            printable(self.label),
        )


def processes_of(reading: HostReading, metrics: HostMetrics) -> tuple[TopProcess, ...]:
    def last(of: str, pid: int, name: str) -> float | None:
        return metrics.column(of, str(pid), name).values[-1]

    found = []
    for one in reading.processes:
        cpu, memory = last("process", one.pid, "cpu"), last("process", one.pid, "memory")
        cpu = None if cpu is None else cpu / 100
        heap, gc = last("jvm", one.pid, "heap_used"), last("jvm", one.pid, "gc")
        found.append(TopProcess(reading.host.name, one.pid, one.user, one.label, cpu, memory, heap, gc))
    return tuple(found)


def busiest_first(processes: Sequence[TopProcess]) -> list[TopProcess]:
    return sorted(processes, key=lambda one: (-(one.cpu or 0.0), one.host, one.pid))


def process_rows(processes: Sequence[TopProcess]) -> list[tuple[str, ...]]:
    """Heads and rows; without the host if there is one."""
    rows = [HEADS, *(one.row for one in processes)]
    alone = len({one.host for one in processes}) < 2
    return [row[1:] if alone else row for row in rows]


def process_table(processes: Sequence[TopProcess], height: int) -> Table:
    """As many processes as fit in so many lines."""
    from rich.table import Table
    from rich.text import Text

    room = max(1, height - 1)
    shown = processes[: room if len(processes) <= room else room - 1]
    heads, *rows = process_rows(shown)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for head in heads:
        left = head in ("host", "user", "process")
        table.add_column(head, justify="left" if left else "right", no_wrap=True, overflow="ellipsis")
    for row in rows:
        table.add_row(*map(Text, row))
    if len(processes) > len(shown):
        table.add_row(*[""] * (len(heads) - 1), f"… and {len(processes) - len(shown)} more processes")
    return table
