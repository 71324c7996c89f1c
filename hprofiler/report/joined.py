"""Processes that joined a recording, as text."""

from __future__ import annotations

from collections.abc import Sequence

from hprofiler.analysis.presence import CUT, PROCESS, RUN, Presence, presences
from hprofiler.analysis.words import and_more
from hprofiler.base.text import printable
from hprofiler.base.text_table import table_lines
from hprofiler.model import HostRecord
from hprofiler.model.measures import counted, duration

_SHOWN = 8
_WHY = {RUN: "the recording ended", PROCESS: "it ended", CUT: "it was cut short"}


def joined_text(hosts: Sequence[HostRecord]) -> str:
    """Those that joined, the first of them in a table; "" if none did."""
    found = presences(hosts)
    joined = [one for one in found if one.joined]
    if not joined:
        return ""
    several = len({one.host for one in joined}) > 1
    rows = [("joined after", "recorded for", "until", "process")]
    rows += [
        (
            duration(one.joined),
            duration(one.ended - one.joined),
            _WHY[one.ended_by],
            printable(f"{one.host}: {_name(one)}" if several else _name(one)),
        )
        for one in joined[:_SHOWN]
    ]
    lines = [f"{len(joined):,} of {counted(len(found), 'processes')} joined during the recording:"]
    lines += table_lines(rows, right=(0, 1), indent=2)
    return "\n".join([*lines, *and_more(len(joined) - _SHOWN, "processes")])


def _name(one: Presence) -> str:
    return f"{one.process.label} (pid {one.process.pid})"
