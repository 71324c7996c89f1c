"""Malicious compact profiles (flamegraph/FORMAT.md): few bytes that need much memory or time."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence

MAGIC = b"HPT1"
CPU = (("samples", "count"), ("cpu", "nanoseconds"))
JIT = 3
_CHUNK = 1 << 20


def compact(
    names: Sequence[bytes],
    children: Iterable[int],
    callees: Iterable[int],
    new_callees: Iterable[int],
    selves: Sequence[Iterable[int]],
    labels: dict[str, str] = {},  # noqa: B006 (nobody changes it)
) -> bytes:
    """A profile of CPU time. `names` are in byte order; the other arguments are the tree's columns."""
    return packed(
        _values()
        + number(len(labels))
        + b"".join(text(key) + text(value) for key, value in labels.items())
        + _names(names)
        + b"".join(map(_numbers, (children, callees, new_callees, *selves)))
    )


def packed(body: bytes) -> bytes:
    return MAGIC + zlib.compress(body, 9)


def flat(names: Sequence[str], value: int = 1) -> bytes:
    """One stack for each name, with `value` samples and nanoseconds."""
    found = sorted({name.encode("utf-8", "surrogatepass") for name in names})
    count = len(found)
    frames = [index << 3 | JIT for index in range(count)]
    selves = [0] + [value] * count
    return compact(found, [count] + [0] * count, [0] * count, frames, [selves, selves])


def deep(depth: int) -> bytes:
    """One stack of a method that calls itself `depth` times."""
    selves = b"\0" * depth + b"\1"
    columns = (b"\1" * depth + b"\0", b"\0\0" + b"\1" * (depth - 2), bytes((JIT, JIT)), selves, selves)
    return packed(_values() + number(0) + _names([b"a.B.c"]) + b"".join(map(piece, columns)))


def zeros(size: int) -> bytes:
    """`size` zero bytes, compressed."""
    packer, pieces = zlib.compressobj(9), [MAGIC]
    for left in range(size, 0, -_CHUNK):
        pieces.append(packer.compress(bytes(min(_CHUNK, left))))
    return b"".join((*pieces, packer.flush()))


def claims(names: int) -> bytes:
    """A profile that announces names, and ends."""
    return packed(_values() + number(0) + number(names) + piece(b"") * 3)


def number(value: int) -> bytes:
    """Unsigned LEB128."""
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def piece(data: bytes) -> bytes:
    return number(len(data)) + data


def text(words: str) -> bytes:
    return piece(words.encode("utf-8", "surrogatepass"))


def _values() -> bytes:
    return number(len(CPU)) + b"".join(text(name) + text(unit) for name, unit in CPU)


def _numbers(values: Iterable[int]) -> bytes:
    return piece(b"".join(map(number, values)))


def _names(names: Sequence[bytes]) -> bytes:
    lengths = [len(name) for name in names]
    return number(len(names)) + _numbers([0] * len(names)) + _numbers(lengths) + piece(b"".join(names))
