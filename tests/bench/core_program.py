"""What the core does, as programs to measure.

python -m tests.bench.core_program report FOLDER PROFILE...      profiles → cluster SVG, pprof, viewer data
python -m tests.bench.core_program read ROUNDS FILE [OPTION...]  prints each round's seconds
python -m tests.bench.core_program work ROUNDS PROFILE...        prints seconds of merges and categories
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from hprofiler._flamegraph import Profile, ViewerData, WorkTable
from hprofiler.cli import memory


def report(folder: Path, profiles: list[str]) -> None:
    memory.keep()  # as every command does
    merged = Profile.open(profiles)

    def write(name: str, output: Callable[[], bytes]) -> None:
        (folder / name).write_bytes(output())

    def viewer_data() -> bytes:
        data = ViewerData()
        data.add(merged)
        return data.to_bytes()

    with ThreadPoolExecutor() as pool:
        outputs = [("cluster.pb.gz", merged.to_pprof), ("cluster.data", viewer_data)]
        outputs += [("cluster.svg", merged.to_svg)]
        for done in [pool.submit(write, name, output) for name, output in outputs]:
            done.result()


def read(rounds: int, path: str, options: list[str]) -> None:
    """Read a file and write folded text to nowhere, once to warm up."""
    for turn in range(rounds + 1):
        begin = time.perf_counter()
        Profile.open(path, **dict.fromkeys(options, True)).write(os.devnull, format="folded")
        if turn:
            print(time.perf_counter() - begin)


def work(rounds: int, profiles: list[str]) -> None:
    """Merge, then sum up by category; once to warm up."""
    for turn in range(rounds + 1):
        begin = time.perf_counter()
        merged = Profile.open(profiles)
        middle = time.perf_counter()
        WorkTable().sums(merged)
        if turn:
            print(middle - begin, time.perf_counter() - middle)


if __name__ == "__main__":
    verb, first, *rest = sys.argv[1:]
    if verb == "report":
        report(Path(first), rest)
    elif verb == "work":
        work(int(first), rest)
    else:
        read(int(first), rest[0], rest[1:])
