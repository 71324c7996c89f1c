"""Options of questions to an archive: `history`, `grew`, `cost` and `where`."""

from __future__ import annotations

import argparse
import os
import re
from datetime import datetime, timezone

from hprofiler.cli.options.diff import share
from hprofiler.cli.options.numbers import age, named
from hprofiler.model.event_names import known_as

# A date, perhaps with a time and its zone.
_MOMENT = re.compile(r"(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d)?))?\s?(Z|UTC|[+-]\d\d:\d\d)?")
_ZONE = {None: "+00:00", "Z": "+00:00", "UTC": "+00:00"}
_STATUS = "exit status:\n  0  done\n"
_BAD = "  2  bad usage, or no such method, application or event\n"
_NO_RUN = "  4  no run in the archive, or in the time\n"
_UNSURE = "  3  with --fail-over: it is not certain whether a method grew\n"
_MORE = "\ndocs/archive-questions.md explains the numbers."


def add_history_to(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("method", metavar="METHOD", help="a method, or the end of its name")
    _add_common(parser)
    parser.epilog = (
        "examples:\n  hprofiler history Pattern.compile --app nightly-etl --in /srv/archive\n"
        "  hprofiler history java/util/HashMap.resize -e alloc --since 30d -o resize.html\n\n"
        f"{_STATUS}{_BAD}{_NO_RUN}{_MORE}"
    )


def add_grew_to(parser: argparse.ArgumentParser) -> None:
    _add_common(parser, since="7d")
    parser.add_argument(
        "--fail-over",
        type=share,
        metavar="P%",
        help="exit with status 1 if a method's share on the newest day is over P percentage points above "
        "that before, and by more than chance explains",
    )
    parser.epilog = (
        "examples:\n  hprofiler grew --app nightly-etl --in /srv/archive\n"
        "  hprofiler grew --since 1d --fail-over 2%           in CI\n\n"
        f"{_STATUS}  1  a method grew by more than --fail-over (needs 3 processes of one role on each side)\n"
        f"{_BAD}{_UNSURE}{_NO_RUN}{_MORE}"
    )


def add_cost_to(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--by",
        choices=["category", "application", "user", "method"],
        help="what to divide the cost by (default: category of work; of events that have none, method)",
    )
    _add_common(parser)
    parser.epilog = (
        "examples:\n  hprofiler cost --in /srv/archive\n"
        "  hprofiler cost --by method --app nightly-etl --since 30d -o cost.html\n\n"
        f"{_STATUS}{_BAD}{_NO_RUN}{_MORE}"
    )


def add_where_to(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("frame", metavar="FRAME", help="a method, or a part of its name")
    _add_common(parser, event="all")
    parser.epilog = (
        "examples:\n  hprofiler where JndiLookup.lookup --in /srv/archive\n"
        "  hprofiler where org/apache/parquet --since 7d\n\n"
        f"{_STATUS}{_BAD}{_NO_RUN}{_MORE}"
    )


def _add_common(
    parser: argparse.ArgumentParser, since: str | None = None, event: str = "cpu, else what most runs have"
) -> None:
    parser.add_argument(
        "--in",
        dest="place",
        type=named,
        default=os.environ.get("HPROFILER_ARCHIVE"),
        metavar="PLACE",
        help="the archive: a folder, or an address such as s3://bucket/archive (default: $HPROFILER_ARCHIVE)",
    )
    parser.add_argument(
        "--app", type=named, metavar="NAME", help="only runs of this application, by its name"
    )
    parser.add_argument(
        "-e",
        "--event",
        type=known_as,
        metavar="EVENT",
        help=f"the event, such as cpu or alloc (default: {event})",
    )
    before = (
        "compare runs that started since then, day by day, with those before" if since else "only later runs"
    )
    parser.add_argument(
        "--since",
        type=moment,
        default=since,
        metavar="TIME",
        help=f"{before}: 30m, 12h, 7d or 4w ago, or a date or date and time (UTC)"
        + (f" (default {since})" if since else ""),
    )
    group = parser.add_argument_group("output")
    group.add_argument(
        "-o", "--output", type=named, metavar="FILE.html", help="also write a page with a plot"
    )
    group.add_argument("--json", action="store_true", help="print the answer as JSON")


def moment(text: str) -> datetime:
    """The time (UTC) of "7d" ago, of a date, or of "2026-11-20 17:12"."""
    try:
        if found := _MOMENT.fullmatch(text.strip()):
            time = datetime.fromisoformat(f"{found[1]}T{found[2] or '00:00'}{_ZONE.get(found[3], found[3])}")
            return time.astimezone(timezone.utc).replace(tzinfo=None)
        return datetime.now(timezone.utc).replace(tzinfo=None) - age(text)
    except (argparse.ArgumentTypeError, ValueError, OverflowError):
        reason = f"{text!r} is not a time such as 30m, 12h, 7d, 2026-11-20 or 2026-11-20 17:12"
        raise argparse.ArgumentTypeError(reason) from None
