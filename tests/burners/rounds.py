"""A busy Python program that counts its rounds, of ten calls each. Protocol as in Burner.java."""

import os
import sys
import threading

DONE = [0]


def leaf(x):
    for i in range(100):
        x = (x * 1103515245 + i) & 0x7FFFFFFF
    return x


def call(depth, x):
    return call(depth - 1, x) if depth else leaf(x)


def burn():
    x = 1
    while True:
        x = call(10, x)
        DONE[0] += 1


def main():
    threading.Thread(target=burn, daemon=True).start()
    print(f"ready pid={os.getpid()}", flush=True)
    while sys.stdin.readline():
        print(f"counters rounds={DONE[0]}", flush=True)


main()
