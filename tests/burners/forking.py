"""A program for CPython that does nothing itself: a line on stdin forks a process, the next waits for it.

The process spends 1.5 s of CPU time in `hot`. Protocol as in Burner.java.
"""

import os
import sys
import time

NANOSECONDS = 1_500_000_000


def hot(until):
    x = 1
    while time.process_time_ns() < until:
        for i in range(2000):
            x = (x * 1103515245 + i) & 0x7FFFFFFF


def main():
    print(f"ready pid={os.getpid()}", flush=True)
    while sys.stdin.readline():
        child = os.fork()
        if not child:
            hot(NANOSECONDS)
            os._exit(0)
        print(f"forked pid={child}", flush=True)
        sys.stdin.readline()
        used = os.wait4(child, 0)[2]
        print(f"counters hot={int((used.ru_utime + used.ru_stime) * 1e9)}", flush=True)


main()
