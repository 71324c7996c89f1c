"""Names of events."""

from __future__ import annotations

import re
from typing import NamedTuple

OWN = ("cpu", "alloc", "live", "lock", "wall", "nativemem", "nativelive", "offcpu")
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
# Other events of perf, which are sampled.
_SAMPLED = (
    "cpu-clock",
    "task-clock",
    "cpu-cycles",
    "branches",
    "branch-instructions",
    "branch-misses",
    "bus-cycles",
    "cache-references",
    "cache-misses",
    "L1-dcache-load-misses",
    "LLC-load-misses",
    "dTLB-load-misses",
    "ref-cycles",
    "stalled-cycles-frontend",
    "stalled-cycles-backend",
    "slots",
    "duration_time",
    "user_time",
    "system_time",
)
_KNOWN = {name.lower(): name for name in (*OWN, *_OTHER_NAMES, *_COUNTERS, *_SAMPLED)}
# Words that people try; none of them is like the name of the event.
_MEANT = {"memory": ("alloc", "live"), "time": ("cpu", "wall"), "sleep": ("offcpu", "wall")}
_FUNCTION = "native:"
# Other names show their kind: tracepoints have colons, methods and processor events have dots, perf's device
# events have slashes.
_WORD = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*[*]?")
_RAW = re.compile(r"r[0-9a-fA-F]+")
_LIKE = 0.7
# perf has more events with hyphens than these: only one that is very much like a known one is a typo.
_VERY_LIKE = 0.9
_HYPHENED = re.compile(r"\w+(?:-\w+)+")
_OF_CACHES = re.compile(
    r"(?:L1-[di]cache|LLC|[di]TLB|branch|node)-(?:load|store|prefetch(?:e(?=s))?)(?:s|-misses)?"
)
# A Java method, unlike processor events such as MEM_LOAD_RETIRED.L3_MISS.
_METHOD = re.compile(r"(?:[\w$]+\.)*[A-Z][\w$]*\.[a-z_$*<][\w$*<>]*")
# A colon may also start a modifier: cycles:u.
_TRACEPOINT = re.compile(r"(?!mem:)[a-z_]\w*:(?![ukhIGHpPSDWeb]+$)[a-z_]\w*")


class Caution(NamedTuple):
    """A warning about an event, and a remedy."""

    text: str
    remedy: str


def known_as(event: str) -> str:
    """The canonical name.

    That is cpu for "CPU", alloc for "heap", malloc for "native:malloc", and a.b.C.m for a/b/C.m.
    """
    name = event.strip()
    if _AS_SHOWN.fullmatch(name):
        return name.replace("/", ".")
    name = name.removeprefix(_FUNCTION)
    known = _KNOWN.get(name.lower(), name)
    return _OTHER_NAMES.get(known, known)


def unknown(event: str) -> str | None:
    """Why an event cannot be one, and what may be meant; None if it can.

    Functions in native code are named with `native:`, because a typo looks like one, and only a process shows
    which functions there are.
    """
    name = event.strip()
    if name.startswith(_FUNCTION):
        function = name.removeprefix(_FUNCTION)
        is_one = is_function(function) and function.lower() not in _KNOWN
        return None if is_one else f"{name!r} is not a function in native code"
    hyphened = bool(_HYPHENED.fullmatch(name)) and not _OF_CACHES.fullmatch(name)
    if name.lower() in _KNOWN or not (is_function(name) or hyphened):
        return None
    from difflib import get_close_matches

    cutoff = _VERY_LIKE if hyphened else _LIKE
    near = _MEANT.get(name.lower()) or get_close_matches(name.lower(), _KNOWN, n=1, cutoff=cutoff)
    if hyphened and not near:
        return None
    meant = f"did you mean {' or '.join(_KNOWN[one] for one in near)}?" if near else f"events are {IN_WORDS}"
    native = f"; for a function in native code, write {_FUNCTION}{name}" if is_function(name) else ""
    return f"{name!r} is not an event; {meant}{native}"


def caution_of(event: str) -> Caution | None:
    """A warning about an event that changes the JVM; else None."""
    if not is_method(event):
        return None
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
