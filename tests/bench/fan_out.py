"""What the coordinator needs for thousands of hosts, which one process simulates over loopback."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.bench.commands import BenchError
from tests.bench.fan_out_program import Figures
from tests.bench.one_jvm import ended, recording
from tests.bench.table import Row
from tests.burners.burner import Burner
from tests.lab import cache

COUNTS = (500, 1000, 2500, 5000)
DUMPED = 200
SECONDS = 5
MOST_GROWTH = 1.3
"""Of what a further host costs; other programs disturb the processors' caches."""
_PROGRAM = [sys.executable, "-m", "tests.bench.fan_out_program"]
_DEADLINE = 7200


def rows() -> list[Row]:
    with tempfile.TemporaryDirectory() as name, _hosts(Path(name)) as port:
        dumped = [_figures("dump", port, DUMPED, looks, Path(name, f"dump-{looks}")) for looks in (1, 10)]
        made = {count: _run(port, count, Path(name, str(count))) for count in COUNTS}
    last = made[COUNTS[-1]]
    shown = " / ".join(f"{count:,}" for count in COUNTS)
    peaks = " / ".join(f"{one.peak / 2**20:.0f}" for one in made.values())
    sizes = [
        f"{last.threads:,} threads, {last.open_files:,} open files",
        f"run.json {last.record_bytes / 1e6:.0f} MB, page {last.page_bytes / 1e6:.1f} MB",
        f"run folder {last.folder_bytes / 1e9:.1f} GB",
    ]

    def grows(what: str, unit: str, figure: Callable[[Figures], float]) -> Row:
        return _linear(what, unit, {count: figure(one) for count, one in made.items()})

    return [
        grows("CPU time to record a host", "ms", lambda one: 1e3 * one.collecting_cpu),
        grows("CPU time to report a host", "ms", lambda one: 1e3 * (one.cpu - one.collecting_cpu)),
        grows("memory to record a host", "KiB", lambda one: one.collecting_peak / 2**10),
        grows("memory to record and report a host", "KiB", lambda one: one.peak / 2**10),
        Row(f"peak memory, {shown} simulated hosts", f"{peaks} MiB", "", None),
        Row(
            f"{COUNTS[-1]:,} simulated hosts",
            ", ".join(sizes),
            "all recorded",
            last.recorded == COUNTS[-1],
        ),
        _of_dumps(*dumped),
    ]


def _of_dumps(one: Figures, ten: Figures) -> Row:
    """What is kept in memory of a look are its threads' CPU times."""
    peaks = f"{one.peak / 2**20:.0f} MiB, with ten looks {ten.peak / 2**20:.0f} MiB"
    return Row(
        f"a dump of {DUMPED} simulated hosts",
        f"{one.beyond_sampling:.1f} s, {peaks}",
        "under 5 s",
        one.recorded == DUMPED and one.beyond_sampling < 5,
    )


def _linear(what: str, unit: str, totals: Mapping[int, float]) -> Row:
    """What each further host costs: among the last hosts, beside all before them."""
    first, middle, last = COUNTS[0], COUNTS[-2], COUNTS[-1]
    few = (totals[middle] - totals[first]) / (middle - first)
    many = (totals[last] - totals[middle]) / (last - middle)
    measured = f"{few:.1f} {unit} up to {middle:,} hosts, {many:.1f} {unit} up to {last:,}"
    return Row(f"{what} more", measured, f"linear (under {MOST_GROWTH:g} ×)", many < MOST_GROWTH * few)


@contextmanager
def _hosts(folder: Path) -> Iterator[int]:
    """The port of the simulated hosts. Their metrics are this machine's."""
    with ended(Burner("alloc", load=0.02)) as jvm, recording(jvm, SECONDS) as (run, recorded):
        run.result()
        (stored,) = recorded.glob("hosts/*/metrics.json.gz")
        metrics = folder / stored.name
        metrics.write_bytes(stored.read_bytes())
    agents = subprocess.Popen(
        [*_PROGRAM, "agents", str(SECONDS), str(metrics)],
        stdout=subprocess.PIPE,
        text=True,
        env=_environment(),
    )
    assert agents.stdout is not None
    try:
        yield int(agents.stdout.readline())
    finally:
        agents.kill()
        agents.communicate()


def _run(port: int, hosts: int, folder: Path) -> Figures:
    print(f"{hosts:,} hosts …", file=sys.stderr, flush=True)
    return _figures("run", port, hosts, SECONDS, folder)


def _figures(*words: object) -> Figures:
    command = [*_PROGRAM, *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, env=_environment(), timeout=_DEADLINE)
    if done.returncode:
        raise BenchError(f"{' '.join(command)}: {done.stderr[-2000:]}")
    return Figures(**json.loads(done.stdout))


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(cache.CHECKOUT)}
