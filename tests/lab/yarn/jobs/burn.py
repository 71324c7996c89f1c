"""A PySpark job, `burn.py SECONDS TASKS`: each task makes text in the JVM and counts it in Python."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from typing import Any

from pyspark.sql import SparkSession


def count(rows: Iterable[Any]) -> Iterator[int]:
    end = time.monotonic() + SECONDS
    letters = 0
    for row in rows:
        letters += sum(letter > "8" for letter in row.text)
        if time.monotonic() > end:
            break
    yield letters


if __name__ == "__main__":
    SECONDS, tasks = int(sys.argv[1]), int(sys.argv[2])
    spark = SparkSession.builder.appName("burn-python").getOrCreate()
    rows = spark.range(0, 1 << 60, 1, tasks).selectExpr("sha2(cast(id as string), 512) as text")
    print("result", rows.rdd.mapPartitions(count).sum())
