"""The archive: how fast runs are added, and what compacting takes. `archive_questions` has the answers.

Runs are folders as a real run writes them: 100 hosts, 20,000 distinct stacks, about 100,000 rows of samples.
The hosts of the first run are dealt out anew in each of the others.
"""

from __future__ import annotations

import json
import os
import random
import tempfile
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path

from tests.bench.commands import COMMAND, Measured, measure
from tests.bench.table import Row
from tests.timed_profile import Row as SampleRow
from tests.timed_profile import timed_profile
from tests.viewer.made_run import MadeHost, content_of, make_run

RUNS = 200
HOSTS = 100
STACKS = 20_000
ROWS_OF_HOST = 1000
HOT = 200
APPLICATIONS = 4
_MOST_TO_COMPACT = 600
_START = 1_790_000_000_000_000
_FIRST = datetime(2026, 11, 1)
_EACH = timedelta(minutes=40)
_STAGES = [("stage 1.0", True), ("stage 2.0", True)]
_GROUP = "[Executor task launch worker]"
_ROOT = [
    "java/lang/Thread.run",
    "java/util/concurrent/ThreadPoolExecutor$Worker.run",
    "org/apache/spark/executor/Executor$TaskRunner.run",
    "org/apache/spark/scheduler/Task.run",
]
_NAMES = [
    *(f"com/example/part{number % 40}/Class{number % 400}.method{number}" for number in range(2000)),
    *(f"org/apache/spark/sql/execution/Exec{number % 200}.step{number}" for number in range(1000)),
]


def rows(runs: int = RUNS) -> list[Row]:
    with tempfile.TemporaryDirectory(prefix="hprofiler-bench-archive-") as folder:
        return _measured(Path(folder), runs)


def _measured(folder: Path, runs: int) -> list[Row]:
    made = made_runs(folder, runs)
    place, small = folder / "archive", folder / "small"
    few = made[: max(2, runs // 5)]
    added, of_few = (
        _hprofiler("archive", "add", *these, "--to", to) for these, to in ((made, place), (few, small))
    )
    size = _size(place) / runs / 2**20
    compacted, small_compacted = (_hprofiler("archive", "compact", to) for to in (place, small))
    compact_size = _size(place) / runs / 2**20
    rate, growth = runs / added.seconds, added.peak_bytes / of_few.peak_bytes
    what = f"{runs:,} runs of {HOSTS} hosts"
    return [
        Row(
            f"`archive add`, {what}",
            f"{rate:.1f} runs/s, {added.cpu_seconds / runs:.2f} s of CPU time each",
            "5 runs/s on 2 cores",
            rate >= 5,
        ),
        Row(
            f"its memory (of {len(few)} runs: {of_few.peak_bytes / 2**20:.0f} MiB)",
            f"{added.peak_bytes / 2**20:.0f} MiB",
            "flat (under 1.5 ×)",
            growth < 1.5,
        ),
        Row(
            f"`archive compact`, {what} (of {len(few)}: {small_compacted.peak_bytes / 2**20:.0f} MiB)",
            f"{compacted.seconds:.0f} s, {compacted.peak_bytes / 2**20:.0f} MiB",
            f"under {_MOST_TO_COMPACT} MiB",
            compacted.peak_bytes < _MOST_TO_COMPACT << 20,
        ),
        Row("size of a run, added / compacted", f"{size:.2f} / {compact_size:.2f} MiB", "", None),
    ]


def made_runs(folder: Path, runs: int) -> list[Path]:
    """Run folders whose files are links to those of the first."""
    dice = random.Random(1)
    stacks = _stacks(dice)
    hosts = [MadeHost(f"node{host:03}", {4000 + host: _profile(stacks, dice)}) for host in range(HOSTS)]
    first = make_run(folder / "made", hosts)
    content = content_of(first)
    made = []
    for number in range(runs):
        path = folder / f"run{number}"
        dealt = dice.sample(content["hosts"], HOSTS)
        records = [
            _linked(first.path, path, host, source)
            for host, source in zip(content["hosts"], dealt, strict=True)
        ]
        started = (_FIRST + number * _EACH).isoformat() + "+00:00"
        target = {"kind": "yarn", "name": f"job{number % APPLICATIONS}"}
        record = {**content, "hosts": records, "started": started, "target": target}
        (path / "run.json").write_text(json.dumps(record))
        made.append(path)
    return made


def _linked(first: Path, run: Path, host: dict[str, object], source: dict[str, object]) -> dict[str, object]:
    """A host of a run with the profile of a host of the first."""
    (own,), (other,) = host["recordings"], source["recordings"]  # type: ignore[misc]
    folder = run / "hosts" / str(host["name"]) / str(own["process"]["pid"])
    folder.mkdir(parents=True)
    for name in ("cpu.pb.gz", "cpu.time"):
        os.link(first / "hosts" / str(source["name"]) / str(other["process"]["pid"]) / name, folder / name)
    return {**host, "recordings": [{**other, "process": own["process"]}]}


def _stacks(dice: random.Random) -> list[list[str]]:
    """Stacks of some 20 frames that share most of them with others."""
    found = [[*_ROOT, *dice.choices(_NAMES, k=10)] for _ in range(20)]
    while len(found) < STACKS:
        other = dice.choice(found)
        kept = dice.randint(min(6, len(other) - 1), len(other))
        found.append([*other[:kept], *dice.choices(_NAMES, k=dice.randint(1, 3))][:50])
    return found


def _profile(stacks: Sequence[list[str]], dice: random.Random) -> bytes:
    """Half of the samples are of stacks that every host has."""
    made = []
    for number in range(ROWS_OF_HOST):
        stack = dice.choice(stacks[:HOT] if number % 2 else stacks)
        samples = dice.randint(1, 4)
        amounts = (samples, samples * 20_408_163)
        made.append(SampleRow([_GROUP, *stack], dice.randrange(3000), samples, amounts, dice.randint(0, 2)))
    return timed_profile(made, start=_START, slices=_STAGES)


def _hprofiler(*words: object) -> Measured:
    return measure([*COMMAND, *map(str, words)])


def _size(place: Path) -> int:
    return sum(path.stat().st_size for path in place.rglob("*.parquet"))
