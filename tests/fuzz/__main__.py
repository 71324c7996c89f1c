"""`python -m tests.fuzz SECONDS [TARGET…]`: runs each target for that much CPU time, one per processor.

Inputs grow in the cache. Failing inputs are in build/fuzz, and the exit code is 1: fix it, and add
the input to the target's file in `corpus/` as one more line.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from tests.fuzz import kept
from tests.fuzz.crates import CHECKOUT
from tests.fuzz.running import Target, fuzz
from tests.fuzz.targets import all_targets, corpora, inputs_of
from tests.lab.cache import root


def main(words: Sequence[str]) -> int:
    cache = root()
    found = CHECKOUT / "build/fuzz"
    found.mkdir(parents=True, exist_ok=True)
    targets = _chosen(all_targets(cache, found), words[1:])
    for name, corpus in corpora().items():
        folder = inputs_of(name, cache)
        folder.mkdir(parents=True, exist_ok=True)
        for number, data in enumerate(kept.read(corpus, name)):
            (folder / f"kept-{number}").write_bytes(data)
    return _fuzzed(targets, float(words[0]), found)


def _chosen(targets: list[Target], names: Sequence[str]) -> list[Target]:
    known = {target.name for target in targets}
    if unknown := set(names) - known:
        sys.exit(f"no such target: {', '.join(sorted(unknown))} (there are: {', '.join(sorted(known))})")
    return [target for target in targets if not names or target.name in names]


def _fuzzed(targets: list[Target], seconds: float, found: Path) -> int:
    failed = False
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        running = [pool.submit(fuzz, target, seconds, found) for target in targets]
        for done in as_completed(running):
            result = done.result()
            failed = failed or bool(result.failed)
            told = f"failed; see {found}:\n{result.failed}" if result.failed else "nothing found"
            print(f"{result.target}: {result.runs} inputs in {result.seconds:.0f} s, {told}", flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
