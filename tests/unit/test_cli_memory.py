"""Freed memory is used again, where the system's allocator can be told so."""

from __future__ import annotations

import ctypes
import subprocess
import sys

import pytest

ROUNDS, MEGABYTES = 6, 24
PROGRAM = f"""
import resource, sys, threading
from hprofiler.cli import memory

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
    done = subprocess.run([sys.executable, "-c", PROGRAM, how], capture_output=True, text=True, check=True)
    return int(done.stdout)


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallopt"), reason="the system's allocator is not glibc's")
def test_freed_memory_is_used_again() -> None:
    once = MEGABYTES << 8
    assert faults("kept") < 3 * once < 4 * once < faults("as it is")
