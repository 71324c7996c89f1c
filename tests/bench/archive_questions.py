"""How fast an archive of 1,000 runs of 100 hosts answers, and how much memory that takes.

The last day is of another made-up cluster, so that most methods grew or shrank beyond chance.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from datetime import datetime, timedelta
from multiprocessing import get_context
from pathlib import Path

from hprofiler.archive.add import add
from tests.bench.commands import BenchError
from tests.bench.table import Row, under
from tests.bench.viewer_cluster import Size, cluster_run
from tests.lab import cache
from tests.viewer.made_run import content_of, rewrite

_RUNS, _FEW = 1000, 100
_LATER = 24
_START = datetime(2026, 9, 1)
# 100 hosts with 200 stacks of all and 200 of their own: 20,200 distinct ones.
_CLUSTER, _CHANGED = Size("first", 100, 400), Size("changed", 100, 402)
_LIMIT = 2
_MOST_MEMORY = 400
# A method of both clusters.
_METHOD = "merge_5179::call"
_QUESTIONS = {
    "history": ["history", _METHOD],
    "grew": ["grew"],
    "cost --by category": ["cost"],
    "cost --by method": ["cost", "--by", "method"],
    "where": ["where", _METHOD],
}


def rows() -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "archive"
        # A process of its own: what it needs at most would count as that of each command started by this one.
        with ProcessPoolExecutor(1, get_context("spawn")) as adding:
            adding.submit(_add, Path(folder), place, range(_FEW)).result()
            memory_of_few = max(mb for _, mb in _answers(place, _FEW).values())
            adding.submit(_add, Path(folder), place, range(_FEW, _RUNS)).result()
        answers = _answers(place, _RUNS)
    memory = max(mb for _, mb in answers.values())
    return [
        *(
            under(_LIMIT, f"`{name}` over {_RUNS:,} runs of 100 hosts", seconds, f"({mb:,.0f} MB)")
            for name, (seconds, mb) in answers.items()
        ),
        Row(
            f"memory of the largest answer (over {_FEW} runs: {memory_of_few:,.0f} MB)",
            f"{memory:,.0f} MB",
            f"under {_MOST_MEMORY:,} MB",
            memory < _MOST_MEMORY,
        ),
    ]


def _add(folder: Path, place: Path, numbers: range) -> None:
    """Add a run an hour, the last day's of the changed cluster, and compact."""
    clusters = [cluster_run(folder / size.name, size) for size in (_CLUSTER, _CHANGED)]
    for number in numbers:
        cluster = clusters[number >= numbers.stop - _LATER]
        started = {"started": f"{(_START + timedelta(hours=number)).isoformat()}+00:00"}
        target = {"target": {"kind": "yarn", "name": "nightly-etl"}}
        rewrite(cluster, {**content_of(cluster), **started, **target})
        (added,) = add([cluster.path], str(place))
        if added.failure or added.problems:
            raise BenchError(str(added))
    _command(["archive", "compact", str(place)])


def _answers(place: Path, runs: int) -> dict[str, tuple[float, float]]:
    """Seconds, start-up and all, and MB of each question."""
    since = f"{_START + timedelta(hours=runs - _LATER):%Y-%m-%d}"
    given = {"grew": ["--since", since]}
    return {
        name: min(_command([*words, *given.get(name, ()), "--in", str(place)]) for _ in range(3))
        for name, words in _QUESTIONS.items()
    }


def _command(words: Sequence[str]) -> tuple[float, float]:
    """Seconds and MB of a command that succeeds."""
    begin = time.monotonic()
    null = os.open(os.devnull, os.O_WRONLY)
    pid = os.posix_spawn(
        sys.executable,
        [sys.executable, "-m", "hprofiler", *words],
        {**os.environ, "PYTHONPATH": str(cache.CHECKOUT)},
        file_actions=[(os.POSIX_SPAWN_DUP2, null, 1)],
    )
    os.close(null)
    _, status, used = os.wait4(pid, 0)
    if status:
        raise BenchError(f"hprofiler {' '.join(words)}: status {os.waitstatus_to_exitcode(status)}")
    return time.monotonic() - begin, used.ru_maxrss / 1024
