"""What goes into git: the inputs that are there, and short ones that fuzzing found to reach more."""

from __future__ import annotations

import platform
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.fuzz import coordinator, kept
from tests.fuzz.crates import CHECKOUT
from tests.fuzz.running import Target
from tests.fuzz.targets import inputs_of

_LONGEST = dict.fromkeys(("jfr", "recording", "perf_data", "perf_live"), 16 << 10)
"""In bytes. A recording is of use as a whole."""
_USUALLY = 2000
_OF_MACHINE = (str(Path.home()), str(CHECKOUT), platform.node(), platform.release())


def keep(target: Target, cache: Path) -> int:
    """Adds to the target's file in git. Returns how many inputs it has."""
    before = kept.read(target.corpus, target.name)
    found = _short(target.name, inputs_of(target.name, cache))
    if target.name in coordinator.TARGETS:
        found = _reaching(target.name, before, found)
    elif target.name != "block":
        found = _merged(target, before, cache)
    return kept.write(target.corpus, target.name, before, filter(_is_anybodys, found))


def _is_anybodys(data: bytes) -> bool:
    """Whether it does not tell on which machine it was found; what is short may stand anywhere."""
    return not any(len(words) > 3 and words.encode() in data for words in _OF_MACHINE)


def _short(name: str, folder: Path) -> list[bytes]:
    everything = (file.read_bytes() for file in folder.iterdir())
    short = (data for data in everything if len(data) <= _longest(name))
    return sorted(short, key=lambda data: (len(data), data))


def _longest(name: str) -> int:
    return _LONGEST.get(name, _USUALLY)


def _merged(target: Target, before: list[bytes], cache: Path) -> list[bytes]:
    """What libFuzzer adds to the inputs that are there."""
    program = target.command(1)[0]
    with tempfile.TemporaryDirectory() as folder:
        for number, data in enumerate(before):
            (Path(folder) / str(number)).write_bytes(data)
        options = ["-set_cover_merge=1", "-use_counters=0", f"-max_len={_longest(target.name)}"]
        command = [program, *options, folder, str(inputs_of(target.name, cache))]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return _short(target.name, Path(folder))


def _reaching(name: str, before: list[bytes], found: list[bytes]) -> list[bytes]:
    """Those that reach a line of the coordinator which no other reached."""
    reached: set[tuple[str, int]] = set()
    added = []
    for data in (*before, *found):
        count = len(reached)
        with _Lines(reached):
            coordinator.run(name, data)
        if len(reached) > count:
            added.append(data)
    return added


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
