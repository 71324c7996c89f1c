"""What py-spy costs one busy Python process and its host: in the agent, and as its own command by hand."""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tests.bench.one_jvm import WINDOW, Rate, ended, lost_row, pairs_of, rate_of, recording
from tests.bench.table import Row
from tests.burners.counting import Counting

FREQUENCY = 100
PROMISED = 2.0
ROUNDS = Path(__file__).parents[1] / "burners" / "rounds.py"
SETTLED = 0.5
"""Seconds after which py-spy's command takes samples."""


def overhead() -> list[Row]:
    """Rounds with the profiler on and off in many short pairs, as for a JVM."""
    rows = [_lost(f"throughput lost to py-spy at {FREQUENCY} Hz", _by_agent, PROMISED)]
    if shutil.which("py-spy"):
        for mode, options in (("--nonblocking", ["--nonblocking"]), ("its usual mode", [])):
            by_hand = _by_command(options)
            rows.append(_lost(f"throughput lost to py-spy's own command, {mode}", by_hand, None))
    return rows


Profiled = Callable[[Counting, list[float]], Rate]


def _lost(what: str, profiled: Profiled, promised: float | None) -> Row:
    own: list[float] = []
    with ended(Counting([sys.executable, str(ROUNDS)])) as program:
        assert isinstance(program, Counting)
        profiled(program, own)
        own.clear()
        compared = pairs_of(lambda: _rate(program), lambda: profiled(program, own))
    more = f" and {100 * statistics.fmean(own):.1f} % of a CPU for the profiler itself"
    return lost_row(what, compared, more, promised)


def _rate(program: Counting) -> Rate:
    return rate_of(program.outer.pid, lambda: program.counters()["rounds"])


def _by_agent(program: Counting, own: list[float]) -> Rate:
    with recording(program, WINDOW + 1, frequency=FREQUENCY) as (run, _):
        before, begin = run.cpu(), time.monotonic()
        rate = _rate(program)
        own.append((run.cpu() - before) / (time.monotonic() - begin))
        run.result()
        return rate


def _by_command(options: list[str]) -> Profiled:
    def profiled(program: Counting, own: list[float]) -> Rate:
        with tempfile.TemporaryDirectory() as folder:
            words = f"-p {program.outer.pid} -r {FREQUENCY} -d 60 -f raw -o {folder}/out".split()
            with subprocess.Popen(
                ["py-spy", "record", *words, *options], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            ) as command:
                time.sleep(SETTLED)
                before, begin = _cpu(command.pid), time.monotonic()
                rate = _rate(program)
                own.append((_cpu(command.pid) - before) / (time.monotonic() - begin))
                command.terminate()
        return rate

    return profiled


def _cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
