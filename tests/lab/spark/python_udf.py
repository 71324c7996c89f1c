"""A PySpark application whose CPU time is for 60 % a Python function's, and for 40 % a Java function's.

Each row takes 400 µs in `JavaBurn.burn`, and 600 µs in `python_burn`. `python_udf.py TASKS` has so many tasks
in its only stage; they are short, because the rows of a task are first all in Java, then all in Python.
"""

from __future__ import annotations

import sys
import time

from pyspark.sql import SparkSession
from pyspark.sql.functions import udf

NANOSECONDS = 600_000
ROWS = 1000


def python_burn(row: int) -> int:
    until = time.thread_time_ns() + NANOSECONDS
    x = row & 0xFFFF
    while time.thread_time_ns() < until:
        for number in range(200):
            x = (x * 1103515245 + number) & 0x7FFFFFFF
    return x


def main(tasks: int) -> None:
    spark = SparkSession.builder.getOrCreate()
    spark.udf.registerJavaFunction("java_burn", "JavaBurn", "long")
    spark.udf.register("python_burn", udf(python_burn, "long", useArrow=False))
    rows = spark.range(0, tasks * ROWS, 1, tasks)
    rows.selectExpr("sum(python_burn(java_burn(id)))").collect()


if __name__ == "__main__":
    main(int(sys.argv[1]))
