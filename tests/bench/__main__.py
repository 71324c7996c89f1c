"""Runs the benches asked for (all of them by default), prints their table and writes it to a file."""

from __future__ import annotations

import argparse
import os
import platform
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from tests.bench import __doc__ as usage
from tests.bench import (
    archive,
    archive_questions,
    clusters,
    core,
    fan_out,
    following,
    one_jvm,
    one_python,
    parts,
    spark_log,
    spark_replay,
    viewer,
)
from tests.bench.table import Row, markdown
from tests.lab import cache, hosts

BENCHES: dict[str, Callable[[], Iterable[Row]]] = {
    "help": clusters.start_up,
    "three-hosts": clusters.three_hosts,
    "fifty-hosts": clusters.fifty_hosts,
    "fan-out": fan_out.rows,
    "yarn": clusters.on_yarn,
    "spark-stages": clusters.spark_stages,
    "kubernetes": clusters.on_kubernetes,
    "engine-overhead": one_jvm.overhead,
    "engine-agent": one_jvm.agent_cost,
    "engine-timeline": one_jvm.timeline,
    "engine-metrics": one_jvm.metrics,
    "engine-follow": following.rows,
    "engine-parts": parts.rows,
    "engine-counters": one_jvm.counters,
    "engine-thread-names": one_jvm.thread_names,
    "engine-latency": one_jvm.latency,
    "engine-attach": one_jvm.attach,
    "engine-python": one_python.overhead,
    "engine-unknown": one_jvm.unknown_frames,
    "core-merge": core.merge,
    "core-merge-many": core.merge_many,
    "core-categories": core.categories,
    "core-folded": core.folded,
    "core-svg": core.svg,
    "core-wire": core.wire,
    "core-perf-script": core.perf_script,
    "core-perf-data": core.perf_data,
    "core-jfr": core.jfr,
    "spark-log": spark_log.rows,
    "spark-replay": spark_replay.rows,
    "archive": archive.rows,
    "archive-questions": archive_questions.rows,
    "viewer": viewer.rows,
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=usage)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of {', '.join(BENCHES)}")
    parser.add_argument("--output", type=Path, default=cache.CHECKOUT / "build/bench.md")
    options = parser.parse_args()
    unknown = set(options.names) - set(BENCHES)
    if unknown:
        parser.error(f"unknown: {', '.join(sorted(unknown))}; known: {', '.join(BENCHES)}")
    reason = hosts.why_not()
    if reason:
        parser.error(reason)
    machine = f"{platform.machine()}, {os.cpu_count()} CPUs, Linux {platform.release()}"
    options.output.parent.mkdir(parents=True, exist_ok=True)
    rows: list[Row] = []
    for name in options.names or BENCHES:
        print(f"{name} …", file=sys.stderr, flush=True)
        for row in measured(name, BENCHES[name]):
            rows.append(row)
            options.output.write_text(markdown(rows, machine), encoding="utf-8")
    print(markdown(rows, machine))
    untold = [row.what for row in rows if row.promised and row.holds is None]
    if untold:
        print(f"without a verdict (not measured, or too noisy to tell): {', '.join(untold)}")
    return 0 if all(row.holds is not False for row in rows) else 1


def measured(name: str, bench: Callable[[], Iterable[Row]]) -> Iterator[Row]:
    """The rows of a bench as they are measured. Whatever fails costs this bench's further rows alone."""
    try:
        yield from bench()
    except Exception as failure:
        traceback.print_exc()
        reason = str(failure).partition("\n")[0] or type(failure).__name__
        yield Row(name, f"not measured: {reason[:200]}", "", False)


if __name__ == "__main__":
    sys.exit(main())
