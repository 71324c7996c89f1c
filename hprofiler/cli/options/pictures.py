"""Options of pictures in `hprofiler convert`, named as in flamegraph.pl. Imports only argparse."""

from __future__ import annotations

import argparse
from functools import partial
from typing import Any

from hprofiler.base.errors import UsageError
from hprofiler.cli.options.numbers import whole_number

# fmt: off
PALETTES = [
    "hot", "mem", "io", "wakeup", "chain", "java",
    "red", "green", "blue", "aqua", "yellow", "purple", "orange",
]
# fmt: on

_pixels = partial(whole_number, least=0, most=1_000_000, meaning="a number of pixels")

# Name in the options -> keyword of Profile.to_svg.
KEYWORDS = {
    "subtitle": "subtitle",
    "width": "width",
    "height": "height",
    "minwidth": "min_width",
    "fonttype": "font_type",
    "fontsize": "font_size",
    "fontwidth": "font_width",
    "countname": "count_name",
    "nametype": "name_type",
    "colors": "colors",
    "bgcolors": "bgcolors",
    "hash": "hash",
    "reverse": "reverse",
    "inverted": "inverted",
    "negate": "negate",
    "width_from": "width_from",
    "factor": "factor",
}


# Options of convert that a flame chart may have, and what the parser adds.
_OF_A_CHART = {"inputs", "output", "to", "title", "from_format", "flamechart", "command", "words", *KEYWORDS}
_OF_A_CHART -= {"negate", "width_from"}


def add_to(parser: argparse.ArgumentParser) -> None:
    _words(parser.add_argument_group("pictures (.svg): words"))
    _sizes(parser.add_argument_group("pictures (.svg): sizes"))
    _colors(parser.add_argument_group("pictures (.svg): colours"))
    _kinds(parser.add_argument_group("pictures (.svg): kinds"))


def _words(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--subtitle", metavar="TEXT", help="line under the title")
    group.add_argument("--countname", metavar="TEXT", help="name of the counts (default: the value's name)")
    group.add_argument("--nametype", metavar="TEXT", help="word before a frame's details, such as Function:")
    group.add_argument("--factor", type=float, metavar="X", help="multiply the counts shown")


def _sizes(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--width", type=_pixels, metavar="PX", help="width of the picture (default 1200)")
    group.add_argument("--height", type=_pixels, metavar="PX", help="height of a frame (default 16)")
    group.add_argument(
        "--minwidth",
        metavar="PX|P%",
        help="omit narrower frames: pixels, or %% of the total (default 0.1)",
    )
    group.add_argument("--fonttype", metavar="FONT", help="font family (default Verdana)")
    group.add_argument("--fontsize", type=float, metavar="PX", help="font size (default 12)")
    group.add_argument(
        "--fontwidth",
        type=float,
        metavar="X",
        help="width of a character / font size (default 0.59)",
    )


def _colors(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--colors",
        choices=PALETTES,
        metavar="PALETTE",
        help=f"palette of flamegraph.pl: {', '.join(PALETTES)}",
    )
    group.add_argument("--bgcolors", metavar="COLOR", help="background: yellow, blue, green, grey or #rrggbb")
    group.add_argument(
        "--hash",
        action="store_true",
        help="shade by the first letters of a name (default: by the whole name)",
    )
    group.add_argument("--negate", action="store_true", help="differences: blue grew, red shrank")


def _kinds(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--inverted", action="store_true", help="icicle graph: root at the top")
    group.add_argument("--reverse", action="store_true", help="merge the stacks from the leaves")
    group.add_argument(
        "--flamechart",
        action="store_true",
        help="draw the lines of one folded file in time order",
    )
    group.add_argument(
        "--width-from",
        choices=["before", "after"],
        help="differences: the side that sets the widths (default after; before shows what vanished)",
    )


def keywords(options: argparse.Namespace) -> dict[str, Any]:
    """Keywords of Profile.to_svg; UsageError if the output is not a picture."""
    given = {name: getattr(options, name) for name in KEYWORDS}
    asked = [name for name, value in given.items() if value is not None and value is not False]
    format = _format(options)
    if format != "svg" and (asked or options.flamechart):
        option = _option(asked[0] if asked else "flamechart")
        raise UsageError(f"{option} is for pictures, but {_output(options)} is not a picture", "write a .svg")
    if format not in ("svg", "html") and options.title is not None:
        reason = f"--title is for pictures and pages, but {_output(options)} is neither"
        raise UsageError(reason, "write a .svg or a .html")
    return {KEYWORDS[name]: given[name] for name in asked}


def _format(options: argparse.Namespace) -> str:
    for ending in ("svg", "html"):
        if options.to == ending or (not options.to and options.output.endswith(f".{ending}")):
            return ending
    return "other"


def _output(options: argparse.Namespace) -> str:
    return f"{options.to} text" if options.output == "-" else str(options.output)


def _option(name: str) -> str:
    return "--" + name.replace("_", "-")


def check(options: argparse.Namespace) -> None:
    """Checks the options by drawing a tiny picture, before anything is read."""
    from hprofiler._flamegraph import OptionError, Profile

    try:
        Profile.from_bytes(b"all 1", "folded").to_svg(**keywords(options))
    except OptionError as error:
        raise UsageError(str(error), "see hprofiler convert --help") from error
    if options.flamechart:
        _check_chart(options)


def _check_chart(options: argparse.Namespace) -> None:
    """A flame chart is drawn from the lines as they are."""
    if len(options.inputs) > 1 or options.diff:
        raise UsageError("--flamechart draws one file", "give one folded file with its lines in time order")
    if options.from_format not in (None, "folded"):
        reason = f"--from {options.from_format} cannot be combined with --flamechart, which reads folded text"
        raise UsageError(reason)
    without = next((name for name, value in vars(options).items() if value and name not in _OF_A_CHART), None)
    if without is not None:
        why = "a flame chart draws the lines of a folded file as they are"
        raise UsageError(f"{_option(without)} cannot be combined with --flamechart: {why}")


def check_one_sided(options: argparse.Namespace) -> None:
    """Refuses options for differences if nothing is compared."""
    for name in ("negate", "width_from"):
        if getattr(options, name):
            reason = f"{_option(name)} is for differences, but nothing is compared"
            raise UsageError(reason, "give --diff BEFORE, or a file with two counts a line")
