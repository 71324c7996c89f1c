"""A program for any CPython from 3.8 that counts the signals it gets while its native code works.

`got` counts SIGRTMIN, which the kernel queues: each one that is sent arrives once. `native` is the CPU time
of zlib, in nanoseconds, which is nearly all of it. Protocol as in Burner.java.
"""

import os
import select
import signal
import sys
import time
import zlib

TEXT = bytes(1 << 20)
USED = {"got": 0, "native": 0}


def checksum():
    before = time.thread_time_ns()
    zlib.crc32(TEXT)
    USED["native"] += time.thread_time_ns() - before


def work(signals):
    while True:
        for _ in range(20):
            checksum()
        if select.select([signals], [], [], 0)[0]:
            USED["got"] += len(os.read(signals, 1 << 16))
        if select.select([sys.stdin], [], [], 0)[0]:
            line = sys.stdin.readline()
            print("counters", *(f"{name}={value}" for name, value in USED.items()), flush=True)
            if not line:
                break


if __name__ == "__main__":
    read_end, write_end = os.pipe()
    os.set_blocking(write_end, False)
    # Python's handlers run once for several signals; a byte is written for each.
    signal.set_wakeup_fd(write_end)
    signal.signal(signal.SIGRTMIN, lambda *_: None)
    print(f"ready pid={os.getpid()}", flush=True)
    work(read_end)
