"""A PySpark application that runs two stages at the same time: 0 with the function `first`, 1 with `second`.

A task of stage 1 sleeps most of its time. `pyspark_stages.py PORT` has the driver's page on this port; it
writes `counters` when both stages have ended a task.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator

from pyspark import SparkContext
from pyspark.sql import SparkSession

ROUND = 20_000_000
"""Nanoseconds."""
ROUNDS = 15
TASKS = 5000


def first(until: int) -> None:
    x = 1
    while time.thread_time_ns() < until:
        for number in range(1000):
            x = (x * 1103515245 + number) & 0x7FFFFFFF


def second(until: int) -> None:
    x = 1
    while time.thread_time_ns() < until:
        for number in range(1000):
            x = (x ^ number) + (x >> 3)


def first_task(rows: Iterator[int]) -> Iterator[int]:
    for _ in range(ROUNDS):
        first(time.thread_time_ns() + ROUND)
    yield len(list(rows))


def second_task(rows: Iterator[int]) -> Iterator[int]:
    for _ in range(ROUNDS // 3):
        second(time.thread_time_ns() + ROUND)
        time.sleep(5 * ROUND / 1e9)
    yield len(list(rows))


def run(context: SparkContext, task: Callable[[Iterator[int]], Iterator[int]]) -> None:
    # Jobs of one pool would run one after the other.
    context.setLocalProperty("spark.scheduler.pool", task.__name__)
    context.parallelize(range(TASKS), TASKS).mapPartitions(task).collect()


def main(port: str) -> None:
    builder = SparkSession.builder.master("local[4]").config("spark.ui.port", port)
    context = builder.config("spark.scheduler.mode", "FAIR").getOrCreate().sparkContext
    status = context.statusTracker()

    jobs = [threading.Thread(target=run, args=(context, task)) for task in (first_task, second_task)]
    for stage, job in enumerate(jobs):
        job.start()
        while not ((info := status.getStageInfo(stage)) and info.numCompletedTasks):
            time.sleep(0.1)
    print("counters", flush=True)
    for job in jobs:
        job.join()


if __name__ == "__main__":
    main(sys.argv[1])
