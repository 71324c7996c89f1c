"""Profiles of any event made from folded text, as hand-written pprof with the event's values."""

from __future__ import annotations

import re
from collections.abc import Sequence

from hprofiler._flamegraph import Profile
from hprofiler.model.measures import measure_of
from tests.timed_profile import numbers

_SUFFIX = re.compile(r"_\[[0-9a-z]\]$")


def made_profile(event: str, folded: str, frequency: int = 300) -> Profile:
    """A profile of the event: the counts are those of the value that pictures show.

    The other value is 1 a stack; of CPU time it is what samples at that frequency stand for. A first frame in
    square brackets is the thread.
    """
    measure = measure_of(event)
    stacks = [line.rsplit(" ", 1) for line in folded.split("\n") if line]
    samples = []
    for stack, count in stacks:
        values = [1] * len(measure.columns)
        if event == "cpu":
            values[1] = int(count) * (10**9 // frequency)
        values[measure.shown] = int(count)
        samples.append((stack.split(";"), values))
    return Profile.from_bytes(_pprof(measure.columns, samples), "pprof", threads="groups")


def counted(event: str, folded: str) -> bytes:
    """A pprof file of the event in which each of its values is the count."""
    columns = measure_of(event).columns
    stacks = (line.rsplit(" ", 1) for line in folded.split("\n") if line)
    return _pprof(columns, [(stack.split(";"), [int(count)] * len(columns)) for stack, count in stacks])


def _pprof(columns: Sequence[tuple[str, str]], samples: Sequence[tuple[list[str], list[int]]]) -> bytes:
    strings: dict[str, int] = {"": 0}
    frames: dict[str, int] = {}
    out = b""
    for name, unit in columns:
        out += message(1, number(1, _id(strings, name)) + number(2, _id(strings, unit)))
    for stack, values in samples:
        label = b""
        if stack[0].startswith("["):
            text = _id(strings, stack[0].strip("[]"))
            label = message(3, number(1, _id(strings, "thread")) + number(2, text))
            stack = stack[1:]
        locations = b"".join(varint(_id(frames, frame) + 1) for frame in reversed(stack))
        out += message(2, message(1, locations) + message(2, b"".join(map(varint, values))) + label)
    for frame, place in frames.items():
        plain = _id(strings, _SUFFIX.sub("", frame))
        out += message(4, number(1, place + 1) + message(4, number(1, place + 1)))
        out += message(5, number(1, place + 1) + number(2, plain) + number(3, _id(strings, frame)))
    return out + b"".join(message(6, text.encode()) for text in strings)


def _id(table: dict[str, int], text: str) -> int:
    return table.setdefault(text, len(table))


def number(field: int, value: int) -> bytes:
    """A field of a protobuf message that is a number."""
    return varint(field << 3) + varint(value)


def message(field: int, content: bytes) -> bytes:
    """A field that is a message, or text."""
    return varint(field << 3 | 2) + varint(len(content)) + content


def varint(value: int) -> bytes:
    """A number in unsigned LEB128."""
    return numbers([value])
