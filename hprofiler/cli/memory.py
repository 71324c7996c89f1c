"""What the system's allocator does with large pieces of memory in a process that is a command of ours.

glibc gives large pieces back as soon as they are freed, and has many heaps of which none can use what another
one let go. As trees grow and are let go again and again, the kernel would clear the same pages many times,
which is a third of a merge. A library must not decide on this for a program that uses it; a command may.
"""

from __future__ import annotations

import os

# As glibc's malloc.h has them, and the environment.
_TRIM_THRESHOLD = (-1, "MALLOC_TRIM_THRESHOLD_", "glibc.malloc.trim_threshold")
_MMAP_THRESHOLD = (-3, "MALLOC_MMAP_THRESHOLD_", "glibc.malloc.mmap_threshold")
_ARENA_MAX = (-8, "MALLOC_ARENA_MAX", "glibc.malloc.arena_max")
_KEPT = 64 << 20
# More than this is given back at once: the largest that glibc can be told.
_LARGE = 32 << 20
_MOST_HEAPS = 8


def keep() -> None:
    """Let freed memory be used again before it is given back: up to `_KEPT` in each heap, of which there are
    as many as processors, 2 to 8. What the user's environment says of malloc stands."""
    try:
        import ctypes

        set_option = getattr(ctypes.CDLL(None), "mallopt", None)  # glibc's own
    except (ImportError, OSError, MemoryError):  # without it all is slower, and right
        return
    if set_option is None:
        return
    heaps = min(max(len(os.sched_getaffinity(0)), 2), _MOST_HEAPS)
    tunables = os.environ.get("GLIBC_TUNABLES", "")
    for (option, variable, tunable), value in (
        (_MMAP_THRESHOLD, _LARGE),
        (_TRIM_THRESHOLD, _KEPT),
        (_ARENA_MAX, heaps),
    ):
        if variable not in os.environ and tunable not in tunables:
            set_option(option, value)
