"""Options of `hprofiler convert`. Only argparse is imported here, as in `parser`."""

from __future__ import annotations

import argparse

from hprofiler.cli.commands.convert import svg as convert_svg

EXAMPLES = """\
examples:
  hprofiler convert a.folded b.jfr.gz -o both.svg               merge, draw
  hprofiler convert results/hosts/*/cpu.pb.gz -o cluster.html   a page
  hprofiler convert --mean --canonical hosts/*.pb.gz -o mean.pb.gz
  hprofiler convert app.jfr --value alloc_space -o alloc.svg    one of a recording's values
  hprofiler convert new.pb.gz --diff old.pb.gz -o changed.svg   red grew, blue shrank
  hprofiler convert cpu.pb.gz --colors java --inverted -o icicle.svg
  hprofiler convert cpu.pb.gz --focus 'Regex|Pattern' --trim '\\.main$' -o regex.svg
  perf script | hprofiler convert - --all -o - --to folded | head

options in depth: docs/convert.md
"""


def add_to(parser: argparse.ArgumentParser) -> None:
    """Add the options, in groups."""
    parser.add_argument("-h", "--help", action="help", help="this help")
    parser.add_argument(
        "inputs", nargs="+", metavar="IN", help="profiles of any known format, compressed or not; - is stdin"
    )
    _writing(parser)
    _reading(parser)
    _merging(parser)
    _stacks(parser)
    _shape(parser)
    convert_svg.add_to(parser)
    parser.usage = "hprofiler convert IN… -o OUT [option …]\n       hprofiler convert --help"
    parser.epilog = EXAMPLES


def _writing(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("what to write")
    group.add_argument(
        "-o",
        "--output",
        required=True,
        metavar="OUT",
        help="by extension: .folded .svg .html .pb.gz .speedscope.json .json .hpt (compact, as hosts send); "
        "- is stdout",
    )
    group.add_argument(
        "--to",
        metavar="FORMAT",
        help="the format, whatever OUT is called: folded svg html pprof speedscope json compact",
    )
    group.add_argument(
        "--value",
        metavar="NAME",
        help="write this value only, e.g. samples, cpu, alloc_space (default: all where the format has room, "
        "else the first with samples)",
    )
    group.add_argument("--title", help="title of the picture (default: the name of the first input)")


def _reading(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("how to read")
    group.add_argument(
        "--from",
        dest="from_format",
        metavar="FORMAT",
        help="the inputs' format (default: by content): folded pprof speedscope compact jfr perf-data "
        "perf-script",
    )
    group.add_argument(
        "--threads",
        action="store_true",
        help="group stacks by thread name, numbers stripped: [pool-N-thread-N]",
    )
    group.add_argument(
        "--time",
        type=_time,
        metavar="FROM-TO",
        help="of a JFR recording the samples of this time, in seconds from its start; 10- is all from 10 on",
    )
    group = parser.add_argument_group("perf.data and perf script, as stackcollapse-perf.pl")
    group.add_argument("--pid", action="store_true", help="root frames are COMM-PID")
    group.add_argument("--tid", action="store_true", help="root frames are COMM-PID/TID")
    group.add_argument("--kernel", action="store_true", help="annotate kernel frames with _[k]")
    group.add_argument("--jit", action="store_true", help="annotate frames of JIT code with _[j]")
    group.add_argument("--all", action="store_true", help="both --kernel and --jit")
    group.add_argument("--addrs", action="store_true", help="show addresses where there is no symbol")
    group.add_argument("--event-filter", metavar="EVENT", help="samples of this event only")


def _merging(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("how to put together")
    group.add_argument(
        "--mean", action="store_true", help="every input weighs the same (default: they add up)"
    )
    group.add_argument(
        "--canonical",
        action="store_true",
        help="one name for what every JVM numbers anew: lambdas, accessors, proxies, hidden classes, threads",
    )
    group.add_argument("--diff", metavar="BEFORE", help="what changed from this profile to the inputs")
    group.add_argument(
        "--absolute", action="store_true", help="with --diff: compare counts, not shares of the total"
    )


def _stacks(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("which stacks (RE is found anywhere in a frame's name)")
    group.add_argument(
        "--include", action="append", metavar="RE", help="stacks with such a frame; again: with either"
    )
    group.add_argument(
        "--exclude",
        action="append",
        metavar="RE",
        help="no stacks with such a frame; again: nor with this one",
    )
    group.add_argument(
        "--focus",
        action="append",
        metavar="RE",
        help="stacks through such a frame; again: through this one too",
    )
    group.add_argument("--trim", metavar="RE", help="drop what is above the outermost such frame of a stack")


def _shape(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("what it looks like")
    group.add_argument("--invert", action="store_true", help="reverse call tree: from the leaf to the root")
    group.add_argument(
        "--merge-tiers", action="store_true", help="one frame for a method, interpreted, compiled and inlined"
    )
    group.add_argument(
        "--prune",
        type=_pruning,
        metavar="N|P%",
        help="the N largest frames, or those with P%% of the whole; the rest is one frame under each parent",
    )


def _time(text: str) -> tuple[float, float]:
    """Seconds, the first and the last: `5-12.5`, `10-`."""
    first, dash, last = text.partition("-")
    try:
        time = (float(first), float(last or "inf"))
    except ValueError:
        time = (-1.0, -1.0)
    if not dash or not 0 <= time[0] < time[1] or first.strip() != first:
        raise argparse.ArgumentTypeError(f"{text!r} is not FROM-TO in seconds, such as 5-12.5 or 10-")
    return time


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
