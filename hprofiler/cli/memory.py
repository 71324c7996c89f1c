"""Settings of the memory allocator for the command line.

glibc returns large blocks to the kernel as soon as they are freed, and its heaps do not share memory. Trees
are allocated and freed all the time, so the kernel would clear the same pages again and again: a third of
the time of a merge. Only the command changes this, not the library, because the process belongs to the
caller.
"""

from __future__ import annotations

import os

# From glibc's malloc.h.
_TRIM_THRESHOLD = (-1, "MALLOC_TRIM_THRESHOLD_", "glibc.malloc.trim_threshold")
_MMAP_THRESHOLD = (-3, "MALLOC_MMAP_THRESHOLD_", "glibc.malloc.mmap_threshold")
_ARENA_MAX = (-8, "MALLOC_ARENA_MAX", "glibc.malloc.arena_max")
_KEPT = 64 << 20
# Larger blocks are returned at once; the largest value that glibc accepts.
_LARGE = 32 << 20
_MOST_HEAPS = 8


def keep() -> None:
    """Keep up to `_KEPT` bytes of freed memory in each heap (one per processor, 2 to 8).

    Settings in the environment have priority."""
    try:
        import ctypes

        set_option = getattr(ctypes.CDLL(None), "mallopt", None)
    except (ImportError, OSError, MemoryError):  # slower without it
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
