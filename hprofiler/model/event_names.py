"""Which events there are, and which names only a recording can tell of."""

from __future__ import annotations

import re
from typing import NamedTuple

OWN = ("cpu", "alloc", "live", "lock", "wall", "nativemem", "offcpu")
"""The events with a meaning of hprofiler's; any other is what the engine makes of its name."""
IN_WORDS = f"{', '.join(OWN)} (heap is alloc)"
_OTHER_NAMES = {"heap": "alloc"}
# A method as pictures and tables have it; events of perf's devices (msr/tsc/) have no dot behind all slashes.
_AS_SHOWN = re.compile(r"(?:[\w$]+/)+[\w$]+\.[\w$<>*]+")
# What the kernel counts by itself; of other counters so many make a sample.
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
# Counters that engines call by one plain word.
_USEFUL = ("cycles", "instructions")
_COUNTERS = (*_USEFUL, *_EACH_ONE, "itimer", "ctimer")
# Other names show by their form what they are: tracepoints and the like have colons, methods and events of
# processors dots, those of perf's devices slashes. Those with a hyphen the agent tries or refuses beforehand.
_WORD = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*[*]?")
_RAW = re.compile(r"r[0-9a-fA-F]+")
_LIKE = 0.7
# A method of Java; events of processors have names such as MEM_LOAD_RETIRED.L3_MISS.
_METHOD = re.compile(r"(?:[\w$]+\.)*[A-Z][\w$]*\.[a-z_$*<][\w$*<>]*")
# Behind a colon may also stand how a counter of the processor counts: cycles:u.
_TRACEPOINT = re.compile(r"(?!mem:)[a-z_]\w*:(?![ukhIGHpPSDWeb]+$)[a-z_]\w*")


class Caution(NamedTuple):
    """What there is to know of an event before it is recorded, and what to do."""

    text: str
    remedy: str


def known_as(event: str) -> str:
    """The event's own name: alloc of "heap", and of a method as it is shown, a/b/C.m, the one with dots."""
    name = event.strip()
    return name.replace("/", ".") if _AS_SHOWN.fullmatch(name) else _OTHER_NAMES.get(name, name)


def caution_of(event: str) -> Caution | None:
    """Of an event that async-profiler may not have, or that leaves something in a JVM; else None."""
    return trace_of(event) if is_method(event) else doubt_of(event)


def trace_of(method: str) -> Caution:
    """What counting a method of Java leaves in a JVM: frames of old code keep no name."""
    return Caution(
        f"to count {method}, async-profiler changes its class during the recording: a method of that class "
        "that runs then and never returns, and its callers, are missing from later recordings of the JVM",
        "choose another event, or restart the JVM afterwards",
    )


def is_method(event: str) -> bool:
    """Whether an event is a Java method, whose calls are counted."""
    return bool(_METHOD.fullmatch(event))


def is_tracepoint(event: str) -> bool:
    """Whether an event is a place in the kernel that tells when it is passed, such as sched:sched_switch."""
    return bool(_TRACEPOINT.fullmatch(event))


def is_each_one(event: str) -> bool:
    """Whether each event is recorded: methods' calls, tracepoints, what the kernel counts by itself."""
    plain, _, _ = event.partition(":")  # page-faults:u
    return is_method(event) or is_tracepoint(event) or plain in _EACH_ONE


def has_frequency(event: str) -> bool:
    """Whether perf samples an event as often a second as a run asks for."""
    its_own = "period=" in event or "freq=" in event
    return event != "offcpu" and not its_own and not is_each_one(event)


def is_function(event: str) -> bool:
    """Whether async-profiler takes an event for a function in native code."""
    return event not in OWN + _COUNTERS and bool(_WORD.fullmatch(event)) and not _RAW.fullmatch(event)


def doubt_of(event: str) -> Caution | None:
    """Of a word that async-profiler takes for a function in native code, such as `malloc`; else None.

    A typo is such a word too. It is not refused: it may be a function's name.
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
