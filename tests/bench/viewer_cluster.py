"""A made-up run whose page is large: the same on every machine, from one seed.

Hosts are those of `core_cluster`, with fewer stacks: half of a host's stacks stand on every host, half on
this one alone. A host has four processes, which share the common stacks and divide its own; every process has
a dozen groups of threads.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from hprofiler.runfolder import RunFolder
from tests.bench.core_cluster import SEED, Maker
from tests.timed_profile import Row, timed_profile
from tests.viewer.made_run import MadeHost, make_run

PROCESSES = 4
THREADS = (
    *("Executor task launch worker for task N",) * 6,
    *("shuffle-client-N-N", "shuffle-server-N-N", "dispatcher-Executor", "netty-rpc-connection-N"),
    *(
        "GC Thread#N",
        "G1 Refine#N",
        "C2 CompilerThreadN",
        "C1 CompilerThreadN",
        "VM Thread",
        "task-result-getter-N",
    ),
)
_NANOSECONDS = 10**9 // 300


@dataclass(frozen=True)
class Size:
    """How many hosts, and how many stacks each has."""

    name: str
    hosts: int
    stacks: int
    timed: bool = False


# Of about 8 nodes a stack.
LARGE = Size("1,000,000 nodes", 100, 3_030)
SMALL = Size("50,000 nodes", 10, 1_040)
TIMED = Size("1,000,000 nodes with times", 100, 3_030, timed=True)
_SECONDS = 60
# In how many buckets a stack is, at most.
_MOST_BUCKETS = 64


def cluster_run(path: Path, size: Size) -> RunFolder:
    """The run folder of such a cluster, without a report; one that is there is made anew."""
    shutil.rmtree(path, ignore_errors=True)
    maker = Maker(size.stacks)
    common = {text[1:] for text, _, _ in maker.common}
    return make_run(path, [_host(maker, common, n, size.timed) for n in range(1, size.hosts + 1)])


def _host(maker: Maker, common: set[bytes], host: int, timed: bool) -> MadeHost:
    """A host whose processes have their own share of its samples."""
    dice = random.Random(f"{SEED} processes {host}")
    parts: list[list[tuple[bytes, int]]] = [[] for _ in range(PROCESSES)]
    for place, line in enumerate(maker.host(host)):
        stack, count = line.rsplit(b" ", 1)
        owners = parts if stack in common else [parts[place % PROCESSES]]
        for part in owners:
            part.append((stack, max(1, round(int(count) * dice.uniform(0.5, 1.5) / len(owners)))))
    pids = (1000 * host + process for process in range(1, PROCESSES + 1))
    content = [_timed(part, dice) if timed else _folded(part) for part in parts]
    return MadeHost(f"node{host:03}.example", dict(zip(pids, content, strict=False)))


def _folded(stacks: Iterable[tuple[bytes, int]]) -> str:
    return "\n".join(f"[{_thread_of(stack)}];{stack.decode()} {count}" for stack, count in stacks)


def _timed(stacks: Iterable[tuple[bytes, int]], dice: random.Random) -> bytes:
    """Stacks whose samples are spread over the recording."""
    rows = []
    for stack, count in stacks:
        frames = [f"[{_thread_of(stack)}]", *stack.decode().split(";")]
        buckets = [dice.randrange(_SECONDS * 50) for _ in range(min(count, _MOST_BUCKETS))]
        for place, bucket in enumerate(buckets):
            samples = count // len(buckets) + (place < count % len(buckets))
            rows.append(Row(frames, bucket, samples, (samples, samples * _NANOSECONDS)))
    return timed_profile(rows)


def _thread_of(stack: bytes) -> str:
    return THREADS[sum(stack[-9:]) % len(THREADS)]
