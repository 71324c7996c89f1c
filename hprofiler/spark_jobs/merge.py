"""One profile of many archived runs, as a Spark job.

    spark-submit … merge.py PLACE -o FILE [--app NAME] [--event EVENT] [--since DATE]

PLACE is the archive as Spark names it (a folder that all hosts see, hdfs://…, s3a://…). FILE is on the
driver's machine: .pb.gz, .hpt, .svg or another format of `hprofiler convert`. docs/archive.md says how the
executors get hprofiler's core. Spark adds up the samples of each stack. Every partition then makes a profile
of its stacks (first round), some tasks merge these (second round), and the driver merges what is left.
"""

from __future__ import annotations

import argparse
import io
import json
import math
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING
from urllib.parse import unquote

import pyarrow
import pyarrow.compute

from hprofiler._flamegraph import Profile

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from hprofiler.archive.reading import LiveFile

_STACK = ["stack_high", "stack_low"]
_PROFILE = "profile binary"


# What executors do. These functions need no other module of hprofiler.


def profiles_of_stacks(
    batches: Iterable[pyarrow.RecordBatch], column: tuple[str, str]
) -> Iterator[pyarrow.RecordBatch]:
    """First round: one compact profile of rows (frames, value). `column` is the value's name and unit."""
    profiles = (_profile(batch, column) for batch in batches if batch.num_rows)
    yield from _merged(profiles)


def merged_profiles(batches: Iterable[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
    """Second round: one compact profile of several."""
    contents = (content.as_py() for batch in batches for content in batch.column("profile"))
    yield from _merged(Profile.from_bytes(content, "compact") for content in contents)


def _merged(profiles: Iterator[Profile]) -> Iterator[pyarrow.RecordBatch]:
    first = next(profiles, None)
    if first is None:  # an empty partition
        return
    for profile in profiles:
        first.merge(profile)
    content = io.BytesIO()
    first.write(content, "compact")
    yield pyarrow.RecordBatch.from_arrays([pyarrow.array([content.getvalue()])], ["profile"])


def _profile(batch: pyarrow.RecordBatch, column: tuple[str, str]) -> Profile:
    """As a file of speedscope, which names the value and allows any text as a frame."""
    frames = batch.column("frames")
    encoded = frames.flatten().dictionary_encode()
    offsets = pyarrow.compute.subtract(frames.offsets, frames.offsets[0])  # a batch may be a part of another
    samples = pyarrow.ListArray.from_arrays(offsets, encoded.indices).to_pylist()
    weights = batch.column("value").to_pylist()
    profile = {
        "type": "sampled",
        "name": column[0],
        "unit": "none",
        "value": {"name": column[0], "unit": column[1]},
        "startValue": 0,
        "endValue": sum(weights),
        "samples": samples,
        "weights": weights,
    }
    file = {
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "shared": {"frames": [{"name": name} for name in encoded.dictionary.to_pylist()]},
        "profiles": [profile],
    }
    return Profile.from_bytes(json.dumps(file).encode(), "speedscope")


# What the driver does


def merge(
    spark: SparkSession, place: str, event: str = "cpu", application: str = "", since: datetime | None = None
) -> Profile | None:
    """The profile of the event in these runs, below groups of threads; None without samples."""
    from pyspark.sql import functions

    from hprofiler.model.measures import measure_of

    place = place.rstrip("/")
    files = _live_files(spark, place)
    if not any("samples" in one.tables for one in files):
        return None
    runs = _read(spark, place, "runs", files)
    if application:
        runs = runs.where(functions.col("application") == application)
    if since:
        runs = runs.where(functions.col("started") >= functions.lit(since))
    samples = _read(spark, place, "samples", files).where(functions.col("event") == event)
    samples = samples.join(functions.broadcast(runs.select("run")), "run", "left_semi")
    sums = samples.groupBy("thread_group", *_STACK).agg(functions.sum("value").alias("value"))
    stacks = _read(spark, place, "stacks", files).select(*_STACK, "frames").dropDuplicates(_STACK)
    thread = functions.concat(functions.lit("["), "thread_group", functions.lit("]"))
    frames = functions.when(functions.col("thread_group").isNull(), functions.col("frames")).otherwise(
        functions.concat(functions.array(thread), "frames")
    )
    rows = sums.where("value > 0").join(stacks, _STACK).select(frames.alias("frames"), "value")
    column = measure_of(event).column
    made = rows.mapInArrow(lambda batches: profiles_of_stacks(batches, column), _PROFILE)
    tasks = math.isqrt(int(spark.conf.get("spark.sql.shuffle.partitions") or 200)) + 1
    made = made.repartition(tasks).mapInArrow(merged_profiles, _PROFILE)
    contents = (bytes(row.profile) for row in made.toLocalIterator())
    found = [Profile.from_bytes(content, "compact") for content in contents]
    return Profile.merged(found) if found else None


def _live_files(spark: SparkSession, place: str) -> list[LiveFile]:
    """The files that readers look at, as `hprofiler.archive.reading` chooses them."""
    from pyspark.sql import functions

    from hprofiler.archive.place import File
    from hprofiler.archive.reading import LiveFile, live_of

    runs = spark.read.option("recursiveFileLookup", "true").option("pathGlobFilter", "*.parquet")
    rows = (
        runs.parquet(f"{place}/runs")
        .select("run", "tables", functions.col("_metadata.file_path").alias("path"))
        .groupBy("path")
        .agg(
            functions.collect_list("run").alias("runs"),
            functions.flatten(functions.collect_list("tables")).alias("tables"),
        )
    )
    found = []
    for row in rows.collect():
        match = re.search(r"runs/month=[^/]*/[^/]*/[^/]*$", unquote(row.path))
        file = File.parse(match.group()) if match else None
        if file:
            found.append(LiveFile(file, frozenset(row.runs), frozenset(row.tables)))
    live: list[LiveFile] = live_of(found)
    if any(one.elsewhere for one in live):
        raise SystemExit(f"files of {place} have runs in common: hprofiler archive compact {place}")
    return live


def _read(spark: SparkSession, place: str, table: str, files: Sequence[LiveFile]) -> DataFrame:
    paths = [f"{place}/{one.file.path(table)}" for one in files if table in one.tables]
    return spark.read.parquet(*paths)


def main(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="merge.py", description="One profile of many archived runs.")
    parser.add_argument("place", metavar="PLACE", help="the archive")
    parser.add_argument("-o", "--output", metavar="FILE", required=True, help="such as cluster.pb.gz")
    parser.add_argument("--app", metavar="NAME", default="", help="runs of this application only")
    parser.add_argument("--event", metavar="EVENT", default="cpu", help="cpu by default")
    parser.add_argument(
        "--since", metavar="DATE", type=datetime.fromisoformat, help="runs from then on (UTC)"
    )
    options = parser.parse_args(words)
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.appName("hprofiler merge").getOrCreate()
    try:
        profile = merge(spark, options.place, options.event, options.app, options.since)
    finally:
        spark.stop()
    if profile is None:
        print(f"{options.place} has no such samples", file=sys.stderr)
        return 1
    profile.write(options.output, thread_label=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
