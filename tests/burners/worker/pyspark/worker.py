"""A program for any CPython from 3.8 that has tasks as a PySpark worker has them.

Tasks with even ids spend 80 ms of CPU time in `even`, those with odd ones 40 ms in `odd`. Protocol as in
Burner.java.
"""

import itertools
import os
import sys
import threading
import time

from pyspark.taskcontext import TaskContext

COUNTERS = {"even": 0, "odd": 0}


def even(until):
    x = 1
    while time.thread_time_ns() < until:
        for number in range(1000):
            x = (x * 1103515245 + number) & 0x7FFFFFFF


def odd(until):
    x = 1
    while time.thread_time_ns() < until:
        for number in range(1000):
            x = (x ^ number) + (x >> 3)


def main():
    for number in itertools.count():
        # Ints are stored in digits of 30 bits.
        task = number + (1 << 30) * (number // 2 % 2)
        context = TaskContext()
        context._stageId = task % 2
        context._attemptNumber = 0
        context._taskAttemptId = task
        begin = time.thread_time_ns()
        if task % 2:
            odd(begin + 40_000_000)
            COUNTERS["odd"] += time.thread_time_ns() - begin
        else:
            even(begin + 80_000_000)
            COUNTERS["even"] += time.thread_time_ns() - begin


def answer():
    print(f"ready pid={os.getpid()}", flush=True)
    while sys.stdin.readline():
        print("counters " + " ".join(f"{name}={count}" for name, count in COUNTERS.items()), flush=True)
    os._exit(0)


threading.Thread(target=answer, daemon=True).start()
main()
