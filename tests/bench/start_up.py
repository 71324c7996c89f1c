"""How long `hprofiler --help` takes, beside the interpreter doing nothing."""

from __future__ import annotations

import statistics
import sys

from tests.bench.commands import COMMAND, measure
from tests.bench.table import Row

ROUNDS = 21
LIMIT = 0.150


def rows() -> list[Row]:
    nothing, helped = [], []
    for _ in range(ROUNDS):
        nothing.append(measure([sys.executable, "-c", "pass"]).seconds)
        helped.append(measure([*COMMAND, "--help"]).seconds)
    median, floor = statistics.median(helped), statistics.median(nothing)
    measured = f"{1000 * median:.0f} ms ({median / floor:.1f} × `python -c pass`, median of {ROUNDS})"
    return [Row("`hprofiler --help`", measured, f"under {1000 * LIMIT:.0f} ms", median < LIMIT)]
