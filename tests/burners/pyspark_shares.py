"""A PySpark application whose Python workers spend 60 % of their CPU time in `hot` and the rest in `warm`.

It writes `counters hot=N warm=N`, the CPU nanoseconds of all tasks so far, each time they are done.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

from pyspark.sql import SparkSession

ROUND = 20_000_000
"""Nanoseconds."""


def hot(until: int) -> None:
    x = 1
    while time.thread_time_ns() < until:
        for number in range(1000):
            x = (x * 1103515245 + number) & 0x7FFFFFFF


def warm(until: int) -> None:
    x = 1
    while time.thread_time_ns() < until:
        for number in range(1000):
            x = (x ^ number) + (x >> 3)


def burn(rows: Iterator[int]) -> Iterator[tuple[int, int]]:
    for _ in rows:
        begin = time.thread_time_ns()
        hot(begin + ROUND * 6 // 10)
        between = time.thread_time_ns()
        warm(between + ROUND * 4 // 10)
        yield between - begin, time.thread_time_ns() - between


def main() -> None:
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    context = builder.getOrCreate().sparkContext
    totals = (0, 0)
    while True:
        pairs = context.parallelize(range(60), 2).mapPartitions(burn).collect()
        totals = tuple(
            total + sum(column) for total, column in zip(totals, zip(*pairs, strict=True), strict=True)
        )
        print(f"counters hot={totals[0]} warm={totals[1]}", flush=True)


if __name__ == "__main__":
    main()
