"""Real runs on the lab's hosts with random faults; docs/internals/chaos.md says what is promised."""

from __future__ import annotations

import argparse
import contextlib
import random
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from tests.lab import hosts
from tests.lab.chaos import ground as grounds
from tests.lab.chaos import report
from tests.lab.chaos.fault import Fault
from tests.lab.chaos.faults import ALL
from tests.lab.chaos.faults.interrupts import STAGES, InterruptIn
from tests.lab.chaos.ground import Ground
from tests.lab.chaos.trial import Verdict, take

TWO_AT_ONCE = 0.25
_TRIES = 10
_SHOWN = 600
"""Characters of a complaint; the report has all of it."""


def alone(seed: int, name: str, ground: Ground) -> tuple[Fault, ...]:
    """A fault by itself, at a moment that is sure to come."""
    chance = random.Random(f"{seed} {name}")
    while True:
        fault = ALL[name](ground, chance)
        if fault.moment is None or fault.moment.sure:
            return (fault,)


def drawn(seed: int, number: int, only: Sequence[str], ground: Ground) -> tuple[Fault, ...]:
    """The faults of the trial of this number: one, or two of different kinds. Always the same ones."""
    chance = random.Random(f"{seed} {number}")
    names = sorted(only or ALL)
    weights = [ALL[name].weight for name in names]
    first = ALL[chance.choices(names, weights)[0]](ground, chance)
    others = [name for name in names if name != first.name and not ALL[name].alone]
    if chance.random() >= TWO_AT_ONCE or first.alone or not others:
        return (first,)
    second = chance.choices(others, [ALL[name].weight for name in others])[0]
    return (first, ALL[second](ground, chance))


def interrupted(stage: str, chance: random.Random, ground: Ground) -> tuple[Fault, ...]:
    """Ctrl-C in this part of a run, at another moment each time that it is asked for."""
    return (InterruptIn(stage, ground, chance),)


def trials(options: argparse.Namespace) -> Iterator[tuple[int, Callable[[Ground], Sequence[Fault]]]]:
    """Each trial's number, and what makes its faults."""
    if options.interrupts:
        for number, stage in enumerate(STAGES, 1):
            yield number, partial(interrupted, stage, random.Random(f"{options.seed} {stage}"))
        return
    if options.each:
        for number, name in enumerate(options.only or ALL, 1):
            yield number, partial(alone, options.seed, name)
        return
    for number in range(options.first, options.first + options.runs):
        yield number, partial(drawn, options.seed, number, options.only)


def main(words: Sequence[str]) -> int:
    options = _options(words)
    reason = hosts.why_not()
    if reason:
        print(reason, file=sys.stderr)
        return 2
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _unwind)
    lines: list[report.Line] = []
    with contextlib.ExitStack() as stack:
        ground = stack.enter_context(grounds.made())
        for number, faults in trials(options):
            verdict = _taken(ground, faults, sure=options.interrupts)
            lines.append(report.Line(options.seed, number, verdict))
            _tell(number, verdict)
            if options.report:
                report.write(options.report, lines)
            if verdict.spoilt:
                stack.close()
                ground = stack.enter_context(grounds.made())
    failed = [line for line in lines if not line.verdict.passed]
    print(f"{len(lines)} runs, {len(failed)} failed: {', '.join(str(line.number) for line in failed)}")
    return 1 if failed else 0


def _unwind(number: int, frame: object) -> None:
    """End, and take away what was made."""
    sys.exit(128 + number)


def _taken(ground: Ground, faults: Callable[[Ground], Sequence[Fault]], sure: bool) -> Verdict:
    """How a trial went; where that has to be `sure`, one that was not over before its faults' moments."""
    for _ in range(_TRIES if sure else 1):
        verdict = take(ground, faults(ground))
        if verdict.came or not verdict.passed:
            break
    if sure and not verdict.came:
        verdict.complaints.append(f"it was over before that moment, {_TRIES} times")
    return verdict


def _tell(number: int, verdict: Verdict) -> None:
    word = "ok" if verdict.passed else "FAILED"
    print(f"{number:4} {word} {verdict.seconds:5.1f} s  {' + '.join(verdict.faults)}", flush=True)
    for complaint in verdict.complaints:
        print(f"     {complaint[:_SHOWN]}", flush=True)


def _options(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.lab.chaos", description=__doc__)
    parser.add_argument("--runs", type=int, default=200, help="how many (200)")
    parser.add_argument("--seed", type=int, default=1, help="what chance begins with (1)")
    parser.add_argument("--from", dest="first", type=int, default=1, help="number of the first run (1)")
    parser.add_argument("--only", action="append", default=[], choices=sorted(ALL), help="nothing but this")
    parser.add_argument("--each", action="store_true", help="instead of random runs each fault once, alone")
    parser.add_argument("--interrupts", action="store_true", help="Ctrl-C in each of ten parts of a run")
    parser.add_argument("--report", type=Path, help="FILE.md, and FILE.json beside it")
    return parser.parse_args(words)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
