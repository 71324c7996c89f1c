"""Options of `hprofiler diff`."""

from __future__ import annotations

import argparse
import re
from functools import partial

from hprofiler.cli.options.numbers import time_range, whole_number

EXAMPLES = """\
examples:
  hprofiler diff monday tuesday                          compare two run folders
  hprofiler diff monday tuesday -e alloc -o change.html  compare allocations, write a page
  hprofiler diff before.jfr after.jfr --top 20           compare two files
  hprofiler diff run run --time 0-20 --time 20-40        compare two parts of a run
  hprofiler diff base new --fail-over 5%                 in CI: fail if a share grew by over 5 points
  hprofiler diff old-1,old-2,old-3 new-1,new-2,new-3 --fail-over 5%       three runs a side
  hprofiler diff archive:etl@yesterday tonight           compare with a run in $HPROFILER_ARCHIVE

exit status:
  0  compared; with --fail-over: no method grew by more
  1  a method grew by more than --fail-over (needs 3 processes of one role on each side)
  2  bad usage
  3  compared, but some stored profiles cannot be used, a part of a file was left out, or stacks are broken;
     with --fail-over: it is not certain whether a method grew
  4  nothing to compare

docs/diff.md explains the numbers.
"""


def add_to(parser: argparse.ArgumentParser) -> None:
    both = (
        "run folder, several (A,B,C), profile in any format that `hprofiler convert` reads, or "
        "archive:APP@yesterday"
    )
    parser.add_argument("before", metavar="BEFORE", help=both)
    parser.add_argument("after", metavar="AFTER", help="what to compare with BEFORE")
    parser.add_argument(
        "-e",
        "--event",
        metavar="EVENT",
        help="event to compare, such as cpu or alloc; for files, a value such as alloc_space (default: the "
        "first in both)",
    )
    parser.add_argument(
        "--time",
        type=time_range,
        action="append",
        default=[],
        metavar="FROM-TO",
        help="only samples of these seconds, such as 5-12.5 or 10-, from the start of the run or recording; "
        "if given twice: of BEFORE, then of AFTER",
    )
    parser.add_argument(
        "--top",
        type=partial(whole_number, least=1, most=10_000, meaning="a number of rows from 1 to 10000"),
        default=10,
        metavar="N",
        help="rows per table (default 10)",
    )
    parser.add_argument(
        "--absolute",
        action="store_true",
        help="compare amounts (time, bytes, counts), not shares of the total",
    )
    parser.add_argument(
        "--fail-over",
        type=share,
        metavar="P%",
        help="exit with status 1 if a method's share grew by more than P percentage points, and by more than "
        "chance explains",
    )
    parser.add_argument(
        "-o",
        "--output",
        action="append",
        default=[],
        metavar="FILE",
        help="also write a page (.html) or a differential flame graph (.svg); may be repeated",
    )
    parser.add_argument("--title", default="", metavar="TEXT", help="title of the page and the picture")
    parser.add_argument("--json", action="store_true", help="print the changes as JSON")
    parser.epilog = EXAMPLES


def share(text: str) -> float:
    """A share of "5%" or "5": 0.05."""
    found = re.fullmatch(r"(\d{1,3}(?:\.\d{1,6})?)\s*%?", text.strip())
    if not found or not 0 <= float(found[1]) <= 100:
        raise argparse.ArgumentTypeError(f"{text!r} is not a share from 0% to 100%")
    return float(found[1]) / 100
