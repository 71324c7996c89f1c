"""Invariants of all targets: shown texts are printable, and no outside file is opened."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import msgspec

from hprofiler.base.errors import HostError, HprofilerError
from hprofiler.base.text import printable

LONGEST = 4096
"""The longest text from a host, in characters."""
_LONGEST_ERROR = 8 * LONGEST
_READ_ONLY = (str(Path(__file__).resolve().parents[2]), sys.prefix, sys.base_prefix, os.devnull)
_ELSEWHERE = ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "socket.connect")


def check_texts(parsed: object, longest: int = LONGEST) -> None:
    """All texts in it are printable, encodable, and bounded."""
    for text in _texts(parsed):
        check_text(text, longest)


def check_text(text: str, longest: int = LONGEST) -> None:
    assert text == printable(text) and len(text) <= longest, ascii(text[:longest])
    text.encode()


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from _texts(list(value.items()))
    elif isinstance(value, (tuple, list, set, frozenset)):
        for item in value:
            yield from _texts(item)
    elif isinstance(value, msgspec.Struct):
        yield from _texts(msgspec.structs.asdict(value))
    elif is_dataclass(value):
        for field in fields(value):
            yield from _texts(getattr(value, field.name))


def ours(work: Callable[[], object]) -> None:
    """Our own errors are fine, but a HostError must have no control characters."""
    try:
        work()
    except HprofilerError as error:
        assert error.reason and len(error.reason) + len(error.remedy) <= _LONGEST_ERROR
        if isinstance(error, HostError):
            check_texts((error.reason, error.remedy))


def of_file(data: bytes, read: Callable[[Path], Any], name: str = "file") -> Any:
    """The result of `read` for a file in a new folder, to which it is confined."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(data)
        with _confined(path.parent):
            return read(path)


class _Confinement:
    """Audit hooks cannot be removed, so there is one, which is active only while `folder` is set."""

    def __init__(self) -> None:
        self.folder: Path | None = None
        self.broken: list[str] = []
        sys.addaudithook(self._hear)

    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self.folder is None:
            return
        if event in _ELSEWHERE or (event == "open" and not self._may_open(*arguments)):
            self.broken.append(f"{event}: {arguments!r}")
            raise PermissionError(f"{event} within a fuzz target")

    def _may_open(self, path: Any, mode: Any, flags: int) -> bool:
        if isinstance(path, int):
            return True
        roots = [str(self.folder)]
        if not flags & (os.O_WRONLY | os.O_RDWR):
            roots += _READ_ONLY
        return os.fsdecode(path).startswith(tuple(roots))


_confinement = _Confinement()


@contextlib.contextmanager
def _confined(folder: Path) -> Iterator[None]:
    """While it lasts no file outside of the folder is opened, and no program or request is started."""
    _confinement.folder = folder
    try:
        yield
    finally:
        _confinement.folder = None
        broken, _confinement.broken = _confinement.broken, []
        assert not broken, broken
