"""Holds single threads of a process still, as a debugger does; to all who look at the process it runs on."""

from __future__ import annotations

import contextlib
import ctypes
import os
from collections.abc import Iterator
from pathlib import Path

_LIBC = ctypes.CDLL(None, use_errno=True)
_LIBC.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
_LIBC.ptrace.restype = ctypes.c_long
_SEIZE, _INTERRUPT, _DETACH = 0x4206, 0x4207, 17
_ALL = 0x40000000  # __WALL: of threads as well


@contextlib.contextmanager
def still(pid: int, thread: str) -> Iterator[None]:
    """The threads called so stand still until the end, which has to come on the same thread of ours."""
    held = _called(pid, thread)
    assert held, f"process {pid} has no thread called {thread}"
    seized: list[int] = []
    try:
        for tid in held:
            _ptrace(_SEIZE, tid)
            seized.append(tid)
            _ptrace(_INTERRUPT, tid)
            os.waitpid(tid, _ALL)
        yield
    finally:
        for tid in seized:
            with contextlib.suppress(OSError):  # it has ended
                _ptrace(_DETACH, tid)


def _called(pid: int, thread: str) -> list[int]:
    found = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(OSError):  # it has ended by now
            if (task / "comm").read_text().strip() == thread:
                found.append(int(task.name))
    return found


def _ptrace(request: int, tid: int) -> None:
    if _LIBC.ptrace(request, tid, None, None) < 0:
        error = ctypes.get_errno()
        raise OSError(error, f"ptrace {request:#x} of thread {tid}: {os.strerror(error)}")
