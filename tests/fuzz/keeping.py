"""What goes into git of the inputs that fuzzing found: few and short ones that reach what was reached."""

from __future__ import annotations

import platform
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Iterable, List, Set, Tuple

from tests.fuzz import coordinator, kept
from tests.fuzz.crates import CHECKOUT
from tests.fuzz.running import Target
from tests.fuzz.targets import inputs_of

_LONGEST = 2000
"""In bytes."""
_OF_MACHINE = (str(Path.home()), str(CHECKOUT), platform.node(), platform.release())


def keep(target: Target, cache: Path) -> int:
    """Write the target's file in git anew. How many inputs it has."""
    if target.name in coordinator.TARGETS:
        inputs = _reaching(target.name, _short(inputs_of(target.name, cache)))
    elif target.name == "block":
        inputs = _short(inputs_of(target.name, cache))
    else:
        inputs = _merged(target, cache)
    return kept.write(target.corpus, target.name, filter(_is_anybodys, inputs))


def _is_anybodys(data: bytes) -> bool:
    """Whether it does not tell on which machine it was found; what is short may stand anywhere."""
    return not any(len(words) > 3 and words.encode() in data for words in _OF_MACHINE)


def _short(folder: Path) -> List[bytes]:
    everything = (file.read_bytes() for file in folder.iterdir())
    return sorted((data for data in everything if len(data) <= _LONGEST), key=lambda data: (len(data), data))


def _merged(target: Target, cache: Path) -> List[bytes]:
    """By libFuzzer's own choice."""
    program = target.command(1)[0]
    with tempfile.TemporaryDirectory() as folder:
        options = ["-set_cover_merge=1", "-use_counters=0", f"-max_len={_LONGEST}"]
        command = [program, *options, folder, str(inputs_of(target.name, cache))]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return _short(Path(folder))


def _reaching(name: str, inputs: Iterable[bytes]) -> List[bytes]:
    """Those that reach a line of the coordinator's which no shorter one reached."""
    reached: Set[Tuple[str, int]] = set()
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

    def __init__(self, reached: Set[Tuple[str, int]]) -> None:
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
