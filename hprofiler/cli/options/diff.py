"""The options of `hprofiler diff`."""

from __future__ import annotations

import argparse
import re

from hprofiler.cli.options.numbers import whole_number
from hprofiler.model.event_names import IN_WORDS

EXAMPLES = """\
examples:
  hprofiler diff monday tuesday                          two run folders, by shares of CPU time
  hprofiler diff monday tuesday -e alloc -o change.html  allocations; the page compares any two scopes
  hprofiler diff before.jfr after.jfr --top 20           two files of any format that `convert` reads
  hprofiler diff base new --fail-over 5%                 in CI: exit code 1 if a method grew by 5 points

exit status: 0 compared, 1 a method grew by more than --fail-over (which needs 3 processes of a role on
each side), 2 bad usage, 3 compared without some stored profiles, which cannot be used, 4 nothing to
compare; what the numbers mean: docs/diff.md
"""


def add_to(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-h", "--help", action="help", help="this help")
    both = "a run folder, or a profile in any format that `hprofiler convert` reads"
    parser.add_argument("before", metavar="BEFORE", help=both)
    parser.add_argument("after", metavar="AFTER", help="the same, later")
    parser.add_argument(
        "-e",
        "--event",
        metavar="EVENT",
        help=f"compare this event, such as {IN_WORDS}, or value of a file (default: the first of both)",
    )
    parser.add_argument("--top", type=_rows, default=10, metavar="N", help="rows of each table (default 10)")
    parser.add_argument(
        "--absolute", action="store_true", help="compare amounts, not shares of each side's whole"
    )
    parser.add_argument(
        "--fail-over",
        type=_share,
        metavar="P%",
        help="exit with 1 if a method grew by more than P points of the whole, and by more than noise",
    )
    parser.add_argument(
        "-o",
        "--output",
        action="append",
        default=[],
        metavar="FILE",
        help="write a page (.html) or a differential flame graph (.svg) too; may be given twice",
    )
    parser.add_argument("--title", default="", metavar="TEXT", help="of page and picture")
    parser.add_argument("--json", action="store_true", help="print the changes as JSON")
    parser.epilog = EXAMPLES


def _rows(text: str) -> int:
    return whole_number(text, 1, 10_000, "a number of rows from 1 to 10000")


def _share(text: str) -> float:
    """0.05 of "5%" or "5"."""
    found = re.fullmatch(r"(\d{1,3}(?:\.\d{1,6})?)\s*%?", text.strip())
    if not found or not 0 <= float(found[1]) <= 100:
        raise argparse.ArgumentTypeError(f"{text!r} is not a share from 0% to 100%")
    return float(found[1]) / 100
