"""Waiting for files that exist for a part of a second: the kernel tells of each that is written to."""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
from collections.abc import Callable
from pathlib import Path

_CREATE, _MODIFY = 0x100, 0x2
_LOOK_SECONDS = 1.0


class Folder:
    """A folder whose changes are told (inotify) while it is used as a context."""

    def __init__(self, path: str) -> None:
        self._path = Path(path)
        self._descriptor = -1

    def __enter__(self) -> Folder:
        libc = ctypes.CDLL(None, use_errno=True)
        self._descriptor = libc.inotify_init1(os.O_CLOEXEC)
        path = os.fsencode(self._path)
        if self._descriptor < 0 or libc.inotify_add_watch(self._descriptor, path, _CREATE | _MODIFY) < 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), str(self._path))
        return self

    def __exit__(self, *error: object) -> None:
        os.close(self._descriptor)

    def wait_for(self, pattern: str, size: int, end: Callable[[], int | None]) -> bool:
        """Until a file of such a name is larger than `size`; False once there is an `end`."""
        while not any(found > size for found in self.sizes(pattern)):
            if end() is not None:
                return False
            if select.select([self._descriptor], [], [], _LOOK_SECONDS)[0]:
                os.read(self._descriptor, 1 << 16)
        return True

    def sizes(self, pattern: str) -> list[int]:
        sizes = []
        for path in self._path.glob(pattern):
            with contextlib.suppress(FileNotFoundError):
                sizes.append(path.stat().st_size)
        return sizes
