"""Reserves disk space for run.json, because profiles may take all the rest."""

from __future__ import annotations

import errno
import logging
import os
import tempfile
from pathlib import Path
from typing import BinaryIO

_ROOM = 8 << 20
_SHARE = 8
"""Reserve only if this many times as much is free."""
_BLOCK = bytes(1 << 20)

_log = logging.getLogger(__name__)


class Room:
    """An unnamed file that holds the space until `free`, or until the process ends."""

    def __init__(self, folder: Path) -> None:
        self._file: BinaryIO | None = None
        try:
            if _free_in(folder) >= _SHARE * _ROOM:
                self._take(folder)
        except OSError as error:  # the run works without it
            _log.info("cannot reserve space in %s: %s", folder, error.strerror)
            self.free()

    def _take(self, folder: Path) -> None:
        self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115
        try:
            os.posix_fallocate(self._file.fileno(), 0, _ROOM)
        except (AttributeError, OSError) as error:
            if isinstance(error, OSError) and error.errno not in (errno.EINVAL, errno.EOPNOTSUPP):
                raise
            for _ in range(_ROOM // len(_BLOCK)):
                self._file.write(_BLOCK)
            self._file.flush()

    def free(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


def _free_in(folder: Path) -> int:
    found = os.statvfs(folder)
    return found.f_bavail * found.f_frsize
