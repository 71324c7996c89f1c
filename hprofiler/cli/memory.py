"""What the system's allocator does with large pieces of memory in a process that is a command of ours.

glibc gives large pieces back as soon as they are freed, and has many heaps of which none can use what another
one let go. Trees grow and are let go again and again: the kernel would clear the same pages many times: a
third of a merge. A library must not decide on this for a program that uses it; a command may.
"""

from __future__ import annotations

import ctypes
import os

# As glibc's malloc.h has them.
_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8
_KEPT = 64 << 20
# More than this is given back at once: the largest that glibc can be told.
_LARGE = 32 << 20
_MOST_HEAPS = 8


def keep() -> None:
    """Let freed memory be used again before it is given back, by as many heaps as there are processors."""
    set_option = getattr(ctypes.CDLL(None), "mallopt", None)  # glibc's own
    if set_option is None:
        return
    heaps = min(max(len(os.sched_getaffinity(0)), 2), _MOST_HEAPS)
    for option, value in ((_MMAP_THRESHOLD, _LARGE), (_TRIM_THRESHOLD, _KEPT), (_ARENA_MAX, heaps)):
        set_option(option, value)
