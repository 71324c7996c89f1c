"""Real runs on the lab's hosts with random faults; docs/internals/chaos.md says what is promised."""

from __future__ import annotations

import argparse
import contextlib
import random
import signal
import sys
from collections.abc import Callable, Iterator, Sequence

from tests.lab import hosts
from tests.lab.chaos import ground as grounds
from tests.lab.chaos.fault import Fault
from tests.lab.chaos.faults import ALL, STAGES
from tests.lab.chaos.ground import Ground
from tests.lab.chaos.trial import Verdict, take

TWO_AT_ONCE = 0.25
_TRIES = 10

Drawn = Callable[[Ground], Sequence[Fault]]


def alone(seed: int, name: str) -> Drawn:
    """A single fault, at a moment that every run reaches."""

    def draw(ground: Ground) -> Sequence[Fault]:
        chance = random.Random(f"{seed} {name}")
        while True:
            fault = Fault(name, ALL[name], ground, chance)
            if fault.moment is None or fault.moment.sure:
                return (fault,)

    return draw


def at_random(seed: int, number: int, only: Sequence[str]) -> Drawn:
    """The faults of the trial with this number: one, or two different ones. Deterministic."""

    def draw(ground: Ground) -> Sequence[Fault]:
        chance = random.Random(f"{seed} {number}")

        def one_of(names: Sequence[str]) -> Fault:
            (name,) = chance.choices(names, [ALL[name].weight for name in names])
            return Fault(name, ALL[name], ground, chance)

        first = one_of(sorted(only or ALL))
        others = [name for name in sorted(only or ALL) if name != first.name and not ALL[name].alone]
        two = chance.random() < TWO_AT_ONCE and others and not first.kind.alone
        return (first, one_of(others)) if two else (first,)

    return draw


def interrupted(seed: int, stage: str) -> Drawn:
    """Ctrl-C in this stage of a run, at a different moment for each call."""
    chance = random.Random(f"{seed} {stage}")
    return lambda ground: (Fault(f"Ctrl-C when {stage}", STAGES[stage], ground, chance),)


def trials(options: argparse.Namespace) -> Iterator[tuple[int, Drawn]]:
    """Each trial's number, and the function that draws its faults."""
    if options.interrupts:
        yield from enumerate((interrupted(options.seed, stage) for stage in STAGES), 1)
    elif options.each:
        yield from enumerate((alone(options.seed, name) for name in options.only or ALL), 1)
    else:
        for number in range(options.first, options.first + options.runs):
            yield number, at_random(options.seed, number, options.only)


def main(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.lab.chaos", description=__doc__)
    parser.add_argument("--runs", type=int, default=200, help="how many (200)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the random numbers (1)")
    parser.add_argument("--from", dest="first", type=int, default=1, help="number of the first run (1)")
    parser.add_argument("--only", action="append", default=[], choices=sorted(ALL), help="nothing but this")
    parser.add_argument("--each", action="store_true", help="instead of random runs each fault once, alone")
    parser.add_argument("--interrupts", action="store_true", help="Ctrl-C in each of ten parts of a run")
    options = parser.parse_args(words)
    if reason := hosts.why_not():
        print(reason, file=sys.stderr)
        return 2
    for number in (signal.SIGTERM, signal.SIGHUP):  # end, and clean up
        signal.signal(number, lambda number, frame: sys.exit(128 + number))
    verdicts: dict[int, Verdict] = {}
    with contextlib.ExitStack() as stack:
        ground = stack.enter_context(grounds.made())
        for number, draw in trials(options):
            verdict = verdicts[number] = _take(ground, draw, _TRIES if options.interrupts else 1)
            print(f"{number:4} {verdict}", flush=True)
            if verdict.spoilt:
                stack.close()
                ground = stack.enter_context(grounds.made())
    failed = [number for number, verdict in verdicts.items() if not verdict.passed]
    print(f"{len(verdicts)} runs, {len(failed)} failed: {', '.join(map(str, failed))}")
    return 1 if failed else 0


def _take(ground: Ground, draw: Drawn, tries: int) -> Verdict:
    """The verdict of a trial, repeated up to `tries` times until all faults struck."""
    for _ in range(tries):
        verdict = take(ground, draw(ground))
        if verdict.happened or not verdict.passed:
            break
    if tries > 1 and not verdict.happened:
        verdict.complaints.append(f"it was over before that moment, {tries} times")
    return verdict


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
