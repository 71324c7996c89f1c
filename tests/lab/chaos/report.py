"""What became of the trials, for people (Markdown) and programs (JSON)."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.lab.chaos.trial import Verdict


@dataclass(frozen=True)
class Line:
    """One trial, which can be repeated by its seed and number."""

    seed: int
    number: int
    verdict: Verdict


def write(path: Path, lines: Sequence[Line]) -> None:
    """`path` as Markdown, and the same with the suffix .json."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in _markdown(lines)))
    path.with_suffix(".json").write_text(json.dumps([asdict(line) for line in lines], indent=1))


def _markdown(lines: Sequence[Line]) -> Iterator[str]:
    failed = sum(not line.verdict.passed for line in lines)
    seconds = sum(line.verdict.seconds for line in lines)
    yield "# Chaos runs\n"
    yield f"{len(lines)} runs with random faults in {seconds / 60:.0f} min; {failed} failed.\n"
    yield from _kinds(lines)
    yield "\n| seed | run | faults | excused | exit | seconds | quiet after | verdict |"
    yield "|---|---|---|---|---|---|---|---|"
    for line in lines:
        verdict = line.verdict
        word = "ok" if verdict.passed else "**" + "; ".join(verdict.complaints).replace("\n", " ") + "**"
        faults = " + ".join(verdict.faults)
        numbers = f"{verdict.code} | {verdict.seconds:.1f} | {verdict.quiet_after:.1f}"
        yield f"| {line.seed} | {line.number} | {faults} | {verdict.excused} | {numbers} | {word} |"


def _kinds(lines: Sequence[Line]) -> Iterator[str]:
    drawn: Counter[str] = Counter()
    failed: Counter[str] = Counter()
    for line in lines:
        for name in line.verdict.names:
            drawn[name] += 1
            failed[name] += not line.verdict.passed
    yield "| fault | runs | of them failed |"
    yield "|---|---|---|"
    for name in sorted(drawn):
        yield f"| {name} | {drawn[name]} | {failed[name]} |"
