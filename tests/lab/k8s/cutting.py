"""Ends the connections of a program from outside, as a network that breaks does; the program is not asked."""

from __future__ import annotations

import ctypes
import os
import socket
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

_PIDFD_GETFD = 438
"""The system call's number, the same on all machines."""
_ESTABLISHED = "01"


def cut(pid: int, port: int) -> int:
    """End every TCP connection of a process to that port of whichever host; how many there were."""
    inodes = set(_connections(pid, port))
    return sum(_end(pid, entry) for entry in Path(f"/proc/{pid}/fd").iterdir() if _inode(entry) in inodes)


def _connections(pid: int, port: int) -> Iterator[str]:
    """Inodes of the sockets in its network namespace."""
    for family in ("tcp", "tcp6"):
        for line in Path(f"/proc/{pid}/net/{family}").read_text().splitlines()[1:]:
            fields = line.split()
            remote, state = fields[2:4]
            if state == _ESTABLISHED and int(remote.rpartition(":")[2], 16) == port:
                yield fields[9]


def _inode(entry: Path) -> str:
    try:
        return os.readlink(entry).partition("socket:[")[2].rstrip("]")
    except FileNotFoundError:
        return ""  # closed meanwhile


def _end(pid: int, entry: Path) -> int:
    handle = os.pidfd_open(pid)
    try:
        copied = ctypes.CDLL(None, use_errno=True).syscall(_PIDFD_GETFD, handle, int(entry.name), 0)
    finally:
        os.close(handle)
    if copied < 0:
        return 0  # closed meanwhile
    with closing(socket.socket(fileno=copied)) as connection, suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
    return 1
