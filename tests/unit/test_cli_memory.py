"""Freed memory is used again, where the system's allocator can be told so."""

from __future__ import annotations

import ctypes
import os
import resource
import subprocess
import sys

import pytest

ROUNDS, MEGABYTES = 6, 24
PROGRAM = f"""
import ctypes, resource, sys, threading
from hprofiler.cli import memory

ctypes.CDLL(None).prctl(41, 1, 0, 0, 0)  # PR_SET_THP_DISABLE: a large page would be one fault
if sys.argv[1] == "kept":
    memory.keep()

def work():
    for _ in range({ROUNDS}):
        pieces = [bytearray(b"x") * (4 << 20) for _ in range({MEGABYTES} // 4)]

thread = threading.Thread(target=work)
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
thread.start()
thread.join()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def faults(how: str) -> int:
    """How many pages a thread asked the kernel for that took the same memory again and again."""
    own = {name: text for name, text in os.environ.items() if not name.startswith(("MALLOC_", "GLIBC_"))}
    command = [sys.executable, "-c", PROGRAM, how]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=own)
    return int(done.stdout)


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallopt"), reason="the system's allocator is not glibc's")
def test_freed_memory_is_used_again() -> None:
    once = (MEGABYTES << 20) // resource.getpagesize()
    assert faults("kept") < 3 * once < 4 * once < faults("as it is")
