"""How fast an archive of 1,000 runs of 100 hosts answers, and how much memory that takes.

The last day is of another made-up cluster, so that most methods grew or shrank beyond chance.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from datetime import datetime, timedelta
from multiprocessing import get_context
from pathlib import Path

from hprofiler.archive.add import add
from tests.bench.commands import COMMAND, BenchError, Measured, measure
from tests.bench.table import Row, under
from tests.bench.viewer_cluster import Size, cluster_run
from tests.viewer.made_run import content_of, rewrite

_RUNS, _FEW = 1000, 100
_LATER = 24
_START = datetime(2026, 9, 1)
# 100 hosts with 200 stacks of all and 200 of their own: 20,200 distinct ones.
_CLUSTER, _CHANGED = Size("first", 100, 400), Size("changed", 100, 402)
_LIMIT = 2
_MB = 1 << 20
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
            memory_of_few = _most_memory(_answers(place, _FEW))
            adding.submit(_add, Path(folder), place, range(_FEW, _RUNS)).result()
        answers = _answers(place, _RUNS)
    memory = _most_memory(answers)
    return [
        *(
            under(
                _LIMIT,
                f"`{name}` over {_RUNS:,} runs of 100 hosts",
                answer.seconds,
                f"({answer.peak_bytes / _MB:,.0f} MB)",
            )
            for name, answer in answers.items()
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
    measure([*COMMAND, "archive", "compact", str(place)])


def _answers(place: Path, runs: int) -> dict[str, Measured]:
    """The fastest of three answers to each question."""
    since = f"{_START + timedelta(hours=runs - _LATER):%Y-%m-%d}"
    given = {"grew": ["--since", since]}
    answers = {}
    for name, words in _QUESTIONS.items():
        command = [*COMMAND, *words, *given.get(name, ()), "--in", str(place)]
        answers[name] = min((measure(command) for _ in range(3)), key=lambda answer: answer.seconds)
    return answers


def _most_memory(answers: Mapping[str, Measured]) -> float:
    """Of the largest answer, in MB."""
    return max(answer.peak_bytes for answer in answers.values()) / _MB
