"""Which events there are, and which names only a recording can tell of."""

from __future__ import annotations

import re
from typing import NamedTuple, Optional

OWN = ("cpu", "alloc", "live", "lock", "wall", "nativemem", "offcpu")
"""The events with a meaning of hprofiler's; any other is what the engine makes of its name."""
# Counters that engines call by one plain word.
_USEFUL = ("cycles", "instructions")
_COUNTERS = (*_USEFUL, "cs", "faults", "migrations", "itimer", "ctimer")
# Other names show by their form what they are: tracepoints and the like have colons, methods and events of
# processors dots, those of perf's devices slashes. Those with a hyphen the agent tries or refuses beforehand.
_WORD = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*[*]?")
_RAW = re.compile(r"r[0-9a-fA-F]+")
_LIKE = 0.7


class Doubt(NamedTuple):
    """Why nobody can say of an event before the recording whether it can be had, and what to do."""

    text: str
    remedy: str


def doubt_of(event: str) -> Optional[Doubt]:
    """Of a word that async-profiler takes for a function in native code, such as `malloc`; else None.

    A typo is such a word too. It is not refused: it may be a function's name.
    """
    if event in OWN + _COUNTERS or not _WORD.fullmatch(event) or _RAW.fullmatch(event):
        return None
    from difflib import get_close_matches

    near = get_close_matches(event.lower(), OWN + _USEFUL, n=2, cutoff=_LIKE)
    meant = (
        f"if you mean {' or '.join(near)}, ask for that"
        if near
        else f"if it is none, choose of {', '.join(OWN)}"
    )
    return Doubt(
        f"{event} is none of the events known: async-profiler takes it for a function in native code, and "
        "whether there is one shows as the recording begins",
        meant,
    )
