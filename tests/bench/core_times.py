"""How long the core takes to read a file and write folded text to nowhere, without the start of a process.

python -m tests.bench.core_times ROUNDS FILE [OPTION...]    prints each round's seconds, after one to warm up
"""

from __future__ import annotations

import os
import sys
import time

from hprofiler._flamegraph import Profile


def main(rounds: int, path: str, options: list[str]) -> None:
    for turn in range(rounds + 1):
        begin = time.perf_counter()
        Profile.open(path, **dict.fromkeys(options, True)).write(os.devnull, format="folded")
        if turn:
            print(time.perf_counter() - begin)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], sys.argv[3:])
