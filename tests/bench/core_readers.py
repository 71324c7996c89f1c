"""The core's readers of recordings beside their peers: perf script text, perf.data, JFR, each to folded text.

"Command" is the whole command, start-up included. "Core" is the same work timed inside a process that runs
already: ours in Python's, jfr-converter in a JVM that has done it before, so that its code is compiled.
`perf script` is a command and has no such form; it is the peer of both.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.bench import core_recordings
from tests.bench.commands import COMMAND
from tests.bench.core import ROUNDS, beside, in_turns
from tests.bench.table import Row
from tests.exact import jfr_recordings
from tests.exact.peers import inferno

TIMES = [sys.executable, "-m", "tests.bench.core_times", str(ROUNDS)]
WARM_UPS = 10
# As a user types it: what is inlined is looked for, too.
PERF_SCRIPT = ["perf", "script", "-i"]


def perf_script() -> list[Row]:
    """The text that `perf script` prints of a recording."""
    script = core_recordings.perf_script(core_recordings.perf_data())
    collapse = shell(f"{inferno('inferno-collapse-perf')} --all {script} > stacks.folded")
    runs = in_turns({"ours": _convert(script, "--all"), "inferno": collapse})
    ours, peer = runs["ours"], runs["inferno"]
    return [
        Row(
            f"perf script text ({_megabytes(script)}) → folded",
            beside(ours, {"inferno-collapse-perf": peer}),
            "no slower than inferno-collapse-perf",
            ours.seconds <= peer.seconds,
        )
    ]


def perf_data() -> list[Row]:
    """A perf.data file, which the peers can only read as text."""
    recording = core_recordings.perf_data()
    text = core_recordings.perf_script(recording)
    peers = f"{' '.join(PERF_SCRIPT)} {recording} 2>/dev/null | {inferno('inferno-collapse-perf')} --all"
    with core_recordings.perf_map(recording):
        runs = in_turns({"ours": _convert(recording, "--all"), "perf": shell(f"{peers} > stacks.folded")})
        core = _inside([*TIMES, str(recording), "kernel", "jit"])
    ours, peer = runs["ours"], runs["perf"]
    what = f"perf.data ({_samples(text):,} Java samples, {_megabytes(recording)})"
    named = {f"perf script ({_megabytes(text)} of text) and inferno-collapse-perf": peer}
    return [
        Row(f"{what} → folded, command", beside(ours, named), "5 × faster", peer.seconds / ours.seconds >= 5),
        Row(
            "the same, core",
            f"{core:.3f} s: {peer.seconds / core:.1f} ×",
            "10 × faster",
            peer.seconds / core >= 10,
        ),
    ]


def jfr() -> list[Row]:
    """async-profiler's recording; its converter with a JVM's start, and warm."""
    recording = core_recordings.jfr()
    jar, arguments = jfr_recordings.artifact(jfr_recordings.CONVERTER), ["--cpu", "-o", "collapsed"]
    theirs = ["java", "-jar", str(jar), *arguments, str(recording), "stacks.folded"]
    runs = in_turns({"ours": _convert(recording, "--value", "samples"), "converter": theirs})
    ours, peer = runs["ours"], runs["converter"]
    core = _inside([*TIMES, str(recording)])
    warm = _inside(_warm_converter(jar, [*arguments, str(recording), "/dev/null"]))
    return [
        Row(
            f"JFR ({_megabytes(recording)}) → folded, cpu, command",
            beside(ours, {"jfr-converter 4.2": peer}),
            "3 × faster",
            peer.seconds / ours.seconds >= 3,
        ),
        Row(
            "the same, core",
            f"{core:.3f} s; jfr-converter in a JVM warmed up {WARM_UPS} × {warm:.3f} s: {warm / core:.1f} ×",
            "1.5 × faster",
            warm / core >= 1.5,
        ),
    ]


def shell(line: str) -> list[str]:
    """A line as a user types it."""
    return ["sh", "-c", line]


def _convert(recording: Path, *options: str) -> list[str]:
    return [*COMMAND, "convert", str(recording), *options, "-o", "stacks.folded"]


def _warm_converter(jar: Path, arguments: Sequence[str]) -> list[str]:
    places = f"{jar}:{core_recordings.classes()}"
    return ["java", "-cp", places, "ConvertTimes", str(WARM_UPS), str(ROUNDS), *arguments]


def _inside(command: Sequence[str]) -> float:
    """The median of the seconds that a program prints."""
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return statistics.median(map(float, printed.split()))


def _samples(script: Path) -> int:
    """How many samples the text has: an empty line stands behind each."""
    with script.open("rb") as lines:
        return sum(line == b"\n" for line in lines)


def _megabytes(path: Path) -> str:
    return f"{path.stat().st_size / 1e6:.0f} MB"
