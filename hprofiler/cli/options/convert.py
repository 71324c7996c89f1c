"""Options of `hprofiler convert`. Imports only argparse."""

from __future__ import annotations

import argparse

from hprofiler.cli.options import pictures
from hprofiler.cli.options.numbers import time_range

EXAMPLES = """\
examples:
  hprofiler convert a.folded b.jfr.gz -o both.svg               merge and draw
  hprofiler convert results/hosts/*/cpu.pb.gz -o cluster.html   write a page
  hprofiler convert --mean --canonical hosts/*.pb.gz -o mean.pb.gz
  hprofiler convert app.jfr --value alloc_space -o alloc.svg    one value of a recording
  hprofiler convert new.pb.gz --diff old.pb.gz -o changed.svg   red grew, blue shrank
  hprofiler convert cpu.pb.gz --colors java --inverted -o icicle.svg
  hprofiler convert cpu.pb.gz --focus 'Regex|Pattern' --trim '\\.main$' -o regex.svg
  hprofiler convert results/hosts/*/metrics.json.gz -o hosts.csv
  perf script | hprofiler convert - --all -o - --to folded | head

exit status:
  0  written
  2  bad usage
  3  written, but a part of a file was left out, a text may be no profile, or CPU samples of a JDK up to 24
     lack stubs
  4  a file cannot be read, is not a profile, or has no samples

docs/convert.md explains the options.
"""


def add_to(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "inputs", nargs="+", metavar="IN", help="profiles in any known format, also compressed; - is stdin"
    )
    _writing(parser)
    _reading(parser)
    _merging(parser)
    _stacks(parser)
    _shape(parser)
    pictures.add_to(parser)
    parser.usage = "hprofiler convert IN… -o OUT [OPTION …]"
    parser.epilog = EXAMPLES


def _writing(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("output")
    group.add_argument(
        "-o",
        "--output",
        required=True,
        metavar="OUT",
        help="output file: .folded .svg .html .pb.gz .speedscope.json .json .otlp or .hpt (compact); of "
        "metrics .csv .parquet or .txt (OpenMetrics); - is stdout",
    )
    group.add_argument(
        "--to",
        metavar="FORMAT",
        help="output format (default: by extension): folded svg html pprof speedscope json compact "
        "otlp-1.10; of metrics: csv parquet openmetrics",
    )
    group.add_argument(
        "--value",
        metavar="NAME",
        help="write only this value, such as alloc_space (default: all; the first with samples for folded "
        "and svg, which hold one)",
    )
    group.add_argument("--title", help="title of the picture (default: name of the first input)")


def _reading(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("input")
    group.add_argument(
        "--from",
        dest="from_format",
        metavar="FORMAT",
        help="input format (default: by content): folded pprof speedscope compact jfr perf-data perf-script "
        "async-profiler-html firefox bpftrace bcc otlp "
        "jemalloc thread-dump",
    )
    group.add_argument(
        "--threads",
        action="store_true",
        help="group stacks by thread name; numbers become N: [pool-N-thread-N]",
    )
    group.add_argument(
        "--time",
        type=time_range,
        metavar="FROM-TO",
        help="only samples of these seconds, such as 5-12.5 or 10-, from the start of the run or recording",
    )
    group = parser.add_argument_group("input from perf (as in stackcollapse-perf.pl)")
    group.add_argument("--pid", action="store_true", help="root frames are COMM-PID")
    group.add_argument("--tid", action="store_true", help="root frames are COMM-PID/TID")
    group.add_argument("--kernel", action="store_true", help="annotate kernel frames with _[k]")
    group.add_argument("--jit", action="store_true", help="annotate JIT-compiled frames with _[j]")
    group.add_argument("--all", action="store_true", help="both --kernel and --jit")
    group.add_argument("--addrs", action="store_true", help="show addresses of frames without a symbol")
    group.add_argument("--event-filter", metavar="EVENT", help="only samples of this event")


def _merging(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("merge and compare")
    group.add_argument(
        "--mean", action="store_true", help="give every input the same weight (default: add up)"
    )
    group.add_argument(
        "--canonical",
        action="store_true",
        help="merge generated names that differ from JVM to JVM: lambdas, accessors, proxies, hidden "
        "classes, threads",
    )
    group.add_argument(
        "--diff",
        metavar="BEFORE",
        help="compare: BEFORE is the earlier profile, the merged inputs are the later one",
    )
    group.add_argument("--absolute", action="store_true", help="with --diff: compare counts, not shares")


def _stacks(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("filter (RE matches anywhere in a frame's name)")
    group.add_argument(
        "--include",
        action="append",
        metavar="RE",
        help="keep stacks with a matching frame; if repeated: with any of them",
    )
    group.add_argument(
        "--exclude",
        action="append",
        metavar="RE",
        help="drop stacks with a matching frame; if repeated: with any of them",
    )
    group.add_argument(
        "--focus",
        action="append",
        metavar="RE",
        help="keep stacks with a matching frame; if repeated: with all of them",
    )
    group.add_argument("--trim", metavar="RE", help="start each stack at its outermost matching frame")


def _shape(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("shape")
    group.add_argument(
        "--by",
        choices=["category"],
        help="put each stack below the category of its work, such as [json] (docs/categories.md)",
    )
    group.add_argument(
        "--invert", action="store_true", help="reverse the stacks: hot methods, then their callers"
    )
    group.add_argument(
        "--merge-tiers", action="store_true", help="merge a method's interpreted, compiled and inlined frames"
    )
    group.add_argument(
        "--prune",
        type=_pruning,
        metavar="N|P%",
        help="keep the N largest frames, or those with at least P%% of the total; merge the rest into one "
        "frame under each parent",
    )


def _pruning(text: str) -> dict[str, int | float]:
    """Keyword of Profile.pruned: frames for `5000`, share for `0.5%`."""
    number, percent = (text[:-1], True) if text.endswith("%") else (text, False)
    try:
        amount = float(number) if percent else int(number)
    except ValueError:
        amount = -1
    if amount <= 0 or (percent and amount > 100) or amount > 10**9:
        raise argparse.ArgumentTypeError(
            f"{text!r} is neither a number of frames nor a percentage such as 0.1%"
        )
    return {"share": amount / 100} if percent else {"frames": int(amount)}
