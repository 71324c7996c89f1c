"""A PySpark application with Python workers: `python_jobs.py LOGS NAME[,SETTING=VALUE]...`."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from pyspark.conf import SparkConf
from pyspark.sql import SparkSession
from pyspark.sql.functions import col, udf


def expand(rows: Iterator[int]) -> Iterator[tuple[int, str]]:
    kept = [str(row) * 20 for row in rows]
    for number, row in enumerate(kept):
        yield number % 5, row


def main(logs: str, *applications: str) -> None:
    for application in applications:
        name, *settings = application.split(",")
        conf = SparkConf().setAppName(name).setMaster("local[2]").set("spark.ui.enabled", "false")
        conf.setAll([("spark.eventLog.enabled", "true"), ("spark.eventLog.dir", f"file://{logs}")])
        conf.setAll([tuple(setting.split("=", 1)) for setting in settings])
        spark = SparkSession.builder.config(conf=conf).getOrCreate()
        context = spark.sparkContext
        print(name, context.applicationId, flush=True)
        context.parallelize(range(20_000), 4).mapPartitions(expand).groupByKey(3).mapValues(len).collect()
        twice = udf(lambda number: number * 2, "long")
        table = spark.range(5_000).withColumn("twice", twice(col("id")))
        table.groupBy((col("twice") % 7).alias("rest")).count().collect()
        spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
