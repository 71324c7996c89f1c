"""Names of events."""

from __future__ import annotations

import re
from typing import NamedTuple

OWN = ("cpu", "alloc", "live", "lock", "wall", "nativemem", "offcpu")
"""hprofiler's own events; any other name goes to the engine."""
IN_WORDS = f"{', '.join(OWN)} (heap is alloc)"
_OTHER_NAMES = {"heap": "alloc"}
# A method as reports show it (a/b/C.m); perf's device events (msr/tsc/) have no dot after the last slash.
_AS_SHOWN = re.compile(r"(?:[\w$]+/)+[\w$]+\.[\w$<>*]+")
# Software events of which each one is a sample.
_EACH_ONE = (
    "alignment-faults",
    "context-switches",
    "cpu-migrations",
    "cs",
    "emulation-faults",
    "faults",
    "major-faults",
    "migrations",
    "minor-faults",
    "page-faults",
)
# Counters with a one-word name.
_USEFUL = ("cycles", "instructions")
_COUNTERS = (*_USEFUL, *_EACH_ONE, "itimer", "ctimer")
# Other names show their kind: tracepoints have colons, methods and processor events have dots, perf's device
# events have slashes. The agent tries names with a hyphen.
_WORD = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*[*]?")
_RAW = re.compile(r"r[0-9a-fA-F]+")
_LIKE = 0.7
# A Java method, unlike processor events such as MEM_LOAD_RETIRED.L3_MISS.
_METHOD = re.compile(r"(?:[\w$]+\.)*[A-Z][\w$]*\.[a-z_$*<][\w$*<>]*")
# A colon may also start a modifier: cycles:u.
_TRACEPOINT = re.compile(r"(?!mem:)[a-z_]\w*:(?![ukhIGHpPSDWeb]+$)[a-z_]\w*")


class Caution(NamedTuple):
    """A warning about an event, and a remedy."""

    text: str
    remedy: str


def known_as(event: str) -> str:
    """The canonical name: alloc for "heap", a.b.C.m for a method written as a/b/C.m."""
    name = event.strip()
    return name.replace("/", ".") if _AS_SHOWN.fullmatch(name) else _OTHER_NAMES.get(name, name)


def caution_of(event: str) -> Caution | None:
    """A warning about an event that may not exist or that changes the JVM; else None."""
    if not is_method(event):
        return doubt_of(event)
    return Caution(
        f"to count {event}, async-profiler changes its class during the recording: a method of that class "
        "that runs then and never returns, and its callers, are missing from later recordings of the JVM",
        "choose another event, or restart the JVM afterwards",
    )


def is_method(event: str) -> bool:
    """Whether an event is a Java method, whose calls are counted."""
    return bool(_METHOD.fullmatch(event))


def is_tracepoint(event: str) -> bool:
    """Whether an event is a tracepoint, such as sched:sched_switch."""
    return bool(_TRACEPOINT.fullmatch(event))


def is_each_one(event: str) -> bool:
    """Whether every occurrence is a sample: method calls, tracepoints, software events."""
    plain, _, _ = event.partition(":")  # page-faults:u
    return is_method(event) or is_tracepoint(event) or plain in _EACH_ONE


def is_function(event: str) -> bool:
    """Whether async-profiler takes an event for a function in native code."""
    return event not in OWN + _COUNTERS and bool(_WORD.fullmatch(event)) and not _RAW.fullmatch(event)


def doubt_of(event: str) -> Caution | None:
    """A warning if async-profiler takes the word for a native function, such as `malloc`; else None.

    A typo looks the same. It is not refused, because such a function may exist.
    """
    if not is_function(event):
        return None
    from difflib import get_close_matches

    near = get_close_matches(event.lower(), OWN + _USEFUL, n=2, cutoff=_LIKE)
    meant = (
        f"did you mean {' or '.join(near)}?"
        if near
        else f"if it is not a function, choose one of {', '.join(OWN)}"
    )
    return Caution(
        f"{event} is not a known event: async-profiler takes it for a function in native code, and "
        "the recording fails if there is no such function",
        meant,
    )
