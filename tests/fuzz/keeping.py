"""What goes into git: all inputs that were made by hand, and of those that fuzzing found few and short ones.

These reach together what was reached. What was made by hand is kept whatever it reaches: it may differ from a
shorter one by a value alone.
"""

from __future__ import annotations

import platform
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.fuzz import coordinator, kept, seeds
from tests.fuzz.crates import CHECKOUT
from tests.fuzz.running import Target
from tests.fuzz.targets import inputs_of

_LONGEST = dict.fromkeys(("jfr", "recording", "perf_data", "perf_live"), 16 << 10)
"""In bytes. A recording is of use as a whole."""
_USUALLY = 2000
_OF_MACHINE = (str(Path.home()), str(CHECKOUT), platform.node(), platform.release())


def keep(target: Target, cache: Path) -> int:
    """Write the target's file in git anew. How many inputs it has."""
    if target.name in coordinator.TARGETS:
        inputs = _reaching(target.name, _short(target.name, inputs_of(target.name, cache)))
    elif target.name == "block":
        inputs = _short(target.name, inputs_of(target.name, cache))
    else:
        inputs = _merged(target, cache)
    by_hand = [data for name, _, data in seeds.by_hand() if name == target.name]
    return kept.write(target.corpus, target.name, by_hand, filter(_is_anybodys, inputs))


def _is_anybodys(data: bytes) -> bool:
    """Whether it does not tell on which machine it was found; what is short may stand anywhere."""
    return not any(len(words) > 3 and words.encode() in data for words in _OF_MACHINE)


def _short(name: str, folder: Path) -> list[bytes]:
    everything = (file.read_bytes() for file in folder.iterdir())
    short = (data for data in everything if len(data) <= _longest(name))
    return sorted(short, key=lambda data: (len(data), data))


def _longest(name: str) -> int:
    return _LONGEST.get(name, _USUALLY)


def _merged(target: Target, cache: Path) -> list[bytes]:
    """By libFuzzer's own choice."""
    program = target.command(1)[0]
    with tempfile.TemporaryDirectory() as folder:
        options = ["-set_cover_merge=1", "-use_counters=0", f"-max_len={_longest(target.name)}"]
        command = [program, *options, folder, str(inputs_of(target.name, cache))]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return _short(target.name, Path(folder))


def _reaching(name: str, inputs: Iterable[bytes]) -> list[bytes]:
    """Those that reach a line of the coordinator's which no shorter one reached."""
    reached: set[tuple[str, int]] = set()
    taken = []
    for data in inputs:
        before = len(reached)
        with _Lines(reached):
            coordinator.run(name, data)
        if len(reached) > before:
            taken.append(data)
    return taken


class _Lines:
    """Collects the lines of hprofiler that are run within it."""

    def __init__(self, reached: set[tuple[str, int]]) -> None:
        self._reached = reached

    def __enter__(self) -> None:
        sys.settrace(self._called)

    def __exit__(self, *_: object) -> None:
        sys.settrace(None)

    def _called(self, frame: Any, event: str, argument: object) -> Any:
        return self._line if "/hprofiler/" in frame.f_code.co_filename else None

    def _line(self, frame: Any, event: str, argument: object) -> Any:
        self._reached.add((frame.f_code.co_filename, frame.f_lineno))
        return self._line
