"""Profiles of any event made from folded text: pprof by hand, as nothing else has room for their values."""

from __future__ import annotations

import re
from typing import Dict, List, Sequence, Tuple

from hprofiler._flamegraph import Profile
from hprofiler.measures import measure_of

_SUFFIX = re.compile(r"_\[[0-9a-z]\]$")


def made_profile(event: str, folded: str) -> Profile:
    """A profile of the event: the counts are those of the value that pictures show.

    The other value is 1 a stack; of CPU time it is what samples at 300 Hz stand for. A first frame in square
    brackets is the thread.
    """
    measure = measure_of(event)
    stacks = [line.rsplit(" ", 1) for line in folded.splitlines() if line]
    samples = []
    for stack, count in stacks:
        values = [1] * len(measure.columns)
        if event == "cpu":
            values[1] = int(count) * (10**9 // 300)
        values[measure.shown] = int(count)
        samples.append((stack.split(";"), values))
    return Profile.from_bytes(_pprof(measure.columns, samples), "pprof", threads="groups")


def _pprof(columns: Sequence[Tuple[str, str]], samples: Sequence[Tuple[List[str], List[int]]]) -> bytes:
    strings: Dict[str, int] = {"": 0}
    frames: Dict[str, int] = {}
    out = b""
    for name, unit in columns:
        out += _message(1, _number(1, _id(strings, name)) + _number(2, _id(strings, unit)))
    for stack, values in samples:
        label = b""
        if stack[0].startswith("["):
            text = _id(strings, stack[0].strip("[]"))
            label = _message(3, _number(1, _id(strings, "thread")) + _number(2, text))
            stack = stack[1:]
        locations = b"".join(_varint(_id(frames, frame) + 1) for frame in reversed(stack))
        out += _message(2, _message(1, locations) + _message(2, b"".join(map(_varint, values))) + label)
    for frame, number in frames.items():
        plain = _id(strings, _SUFFIX.sub("", frame))
        out += _message(4, _number(1, number + 1) + _message(4, _number(1, number + 1)))
        out += _message(5, _number(1, number + 1) + _number(2, plain) + _number(3, _id(strings, frame)))
    return out + b"".join(_message(6, text.encode()) for text in strings)


def _id(table: Dict[str, int], text: str) -> int:
    return table.setdefault(text, len(table))


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _message(field: int, content: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(content)) + content


def _varint(value: int) -> bytes:
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])
