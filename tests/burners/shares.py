"""A program for any CPython from 3.8: its thread python-worker-1 spends CPU time in known shares.

70 % in the function `hot`, 20 % in the method `Warm.burn` below four calls of `deeper`, 10 % in `cool`,
whose work is native code that runs without the GIL: NumPy's, or zlib's where there is no NumPy. The first
argument is the load, 0.5 of a core; the rest of the time it waits for input. Others, such as `cool=60`, are
the percentages. Protocol as in Burner.java;
`waited` and `turned` are times by the clock, of these waits and of all.
"""

import os
import select
import sys
import threading
import time
import zlib

try:
    import numpy
except ImportError:
    numpy = None

PERCENT = {"hot": 70, "warm": 20, "cool": 10}
PERCENT.update((name, int(part)) for name, _, part in (word.partition("=") for word in sys.argv[2:]))
ROUND = 0.02
USED = dict.fromkeys(PERCENT, 0)
CLOCK = {"waited": 0, "turned": 0}
TEXT = bytes(1 << 18)
NUMBERS = numpy and numpy.ones(1 << 16)
NO_INPUT, _ = os.pipe()


def hot(until):
    x = 1
    while time.thread_time_ns() < until:
        for i in range(2000):
            x = (x * 1103515245 + i) & 0x7FFFFFFF


class Warm:
    def burn(self, until):
        x = 1
        while time.thread_time_ns() < until:
            for i in range(2000):
                x = (x ^ i) + (x >> 3)


def deeper(depth, until):
    if depth:
        deeper(depth - 1, until)
    else:
        Warm().burn(until)


def cool(until):
    while time.thread_time_ns() < until:
        if numpy:
            numpy.sin(NUMBERS, out=NUMBERS)
        else:
            zlib.crc32(TEXT)


def wait_for_input(seconds):
    select.select([NO_INPUT], [], [], seconds)


def work(load):
    burns = {"hot": hot, "warm": lambda until: deeper(3, until), "cool": cool}
    while True:
        begin = time.monotonic_ns()
        for name, burn in burns.items():
            # What one took too much of a round, it gets less of the next.
            share = PERCENT[name] * sum(USED.values()) // 100 - USED[name] + int(PERCENT[name] * ROUND * 1e7)
            before = time.thread_time_ns()
            burn(before + max(0, share))
            USED[name] += time.thread_time_ns() - before
        worked = time.monotonic_ns()
        wait_for_input((worked - begin) / 1e9 * (1 - load) / load)
        end = time.monotonic_ns()
        CLOCK["waited"] += end - worked
        CLOCK["turned"] += end - begin


def print_counters():
    print("counters", *(f"{name}={time}" for name, time in [*USED.items(), *CLOCK.items()]), flush=True)


if __name__ == "__main__":
    worker = threading.Thread(target=work, args=(float(sys.argv[1]),), name="python-worker-1", daemon=True)
    worker.start()
    print(f"ready pid={os.getpid()}", flush=True)
    for _ in sys.stdin:
        print_counters()
    print_counters()
