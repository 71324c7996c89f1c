"""A made-up run whose samples were taken at known times."""

from __future__ import annotations

from pathlib import Path

from hprofiler.runfolder import RunFolder
from tests.timed_profile import Row, timed_profile
from tests.viewer.made_run import MadeHost, content_of, make_run, rewrite

START = 1_790_000_000_000_000
SECONDS = 10
# Buckets of a second.
ROWS = 50
LOCK = [("contentions", "count"), ("delay", "nanoseconds")]
# 1.05 to 2.10 s, and 128 to 256 µs.
SLOW, FAST = 21, 8


def timed_run(path: Path) -> RunFolder:
    """n1 runs something else each half second; n2, which began 7 ms later, always the same.

    A GC pause of n1 ends at 4.5 s and lasted 100 ms.
    """
    steady = [Row(("main", "steady"), bucket) for bucket in range(SECONDS * ROWS)]
    hosts = [
        MadeHost(
            "n1",
            {11: timed_profile(half_seconds(), start=START)},
            events={"lock": {11: timed_profile(locks(), start=START, values=LOCK)}},
        ),
        MadeHost("n2", {12: timed_profile(steady, start=START + 7000)}),
    ]
    folder = make_run(path, hosts, events=("cpu", "lock"))
    run = content_of(folder)
    pause = {"collector": [0], "end": [START + 4_500_000], "duration": [100_000]}
    run["hosts"][0]["pauses"] = [{"pid": 11, "collectors": ["G1 Young Generation"], **pause}]
    rewrite(folder, run)
    return folder


def half_seconds() -> list[Row]:
    """A sample in each bucket: of `even` in the first half of each second, of `odd` in the other.

    In one bucket `burst` has 5 more.
    """
    rows = [
        Row(("main", "work", "even" if bucket % ROWS < ROWS // 2 else "odd"), bucket)
        for bucket in range(SECONDS * ROWS)
    ]
    return [*rows, Row(("main", "burst"), 365, samples=5, amounts=(5, 5_000_000))]


def locks() -> list[Row]:
    """A fast wait each second, and slow ones in the third."""
    fast = [
        Row(("main", "Cache.get"), second * ROWS, amounts=(1, 200_000), band=FAST, amount=200_000)
        for second in range(SECONDS)
    ]
    slow = Row(("main", "Pool.take"), 2 * ROWS + 9, 3, (3, 4_500_000_000), band=SLOW, amount=4_500_000_000)
    return [*fast, slow]
