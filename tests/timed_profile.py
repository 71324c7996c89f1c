"""Compact profiles with times (HPT2), written here as flamegraph/FORMAT.md describes them."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

BUCKET = 20_000
CPU = [("samples", "count"), ("cpu", "nanoseconds")]
PLAIN = 0


@dataclass(frozen=True)
class Row:
    """Samples of one stack in one bucket. `amounts`: what they add to each value."""

    stack: Sequence[str]
    bucket: int
    samples: int = 1
    amounts: Sequence[int] = (1, 1_000_000)
    slice: int = 0
    band: int = 0
    amount: int = 0


@dataclass
class _Node:
    values: list[int]
    children: dict[str, _Node] = field(default_factory=dict)
    rows: list[Row] = field(default_factory=list)


def timed_profile(
    rows: Iterable[Row],
    *,
    start: int = 0,
    width: int = BUCKET,
    values: Sequence[tuple[str, str]] = CPU,
    slices: Sequence[tuple[str, bool]] = (),
    labels: dict[str, str] | None = None,
) -> bytes:
    """The profile of these rows, whose buckets begin `start` microseconds after 1970."""
    root = _Node([0] * len(values))
    for row in rows:
        node = root
        for name in row.stack:
            node = node.children.setdefault(name, _Node([0] * len(values)))
        node.values = [sum(pair) for pair in zip(node.values, row.amounts, strict=True)]
        node.rows.append(row)
    nodes: list[tuple[str, _Node]] = []
    _walk("", root, nodes)
    names = sorted({name for name, _ in nodes[1:]}, key=str.encode)
    place_of = {name: place for place, name in enumerate(names)}
    body = numbers([len(values)]) + b"".join(_text(name) + _text(unit) for name, unit in values)
    labels = labels or {}
    body += numbers([len(labels)]) + b"".join(_text(name) + _text(labels[name]) for name in sorted(labels))
    body += numbers([len(names)]) + _piece([0] * len(names)) + _piece([len(name.encode()) for name in names])
    body += _text("".join(names))
    body += _piece([len(node.children) for _, node in nodes]) + _piece([0] * (len(nodes) - 1))
    body += _piece([place_of[name] * 8 + PLAIN for name, _ in nodes[1:]])
    for value in range(len(values)):
        body += _piece([node.values[value] for _, node in nodes])
    no_modules = 0
    body += numbers([no_modules, start << 1, width, len(slices)])
    body += b"".join(_text(name) + numbers([certain]) for name, certain in slices)
    return b"HPT2" + zlib.compress(body + _times([node for _, node in nodes]))


def _walk(name: str, node: _Node, into: list[tuple[str, _Node]]) -> None:
    into.append((name, node))
    for child in sorted(node.children, key=str.encode):
        _walk(child, node.children[child], into)


def _times(nodes: Sequence[_Node]) -> bytes:
    """Flags, number of rows and columns; all of them are written."""
    columns: list[list[int]] = [[] for _ in range(7)]
    before = 0
    for number, node in enumerate(nodes):
        if not node.rows:
            continue
        ordered = sorted(node.rows, key=lambda row: (row.bucket, row.slice, row.band))
        columns[0].append(number - before)
        columns[1].append(len(ordered))
        before, bucket = number, 0
        for row in ordered:
            of_row = (row.bucket - bucket, row.samples, row.slice, row.band, row.amount)
            bucket = row.bucket
            for column, cell in zip(columns[2:], of_row, strict=True):
                column.append(cell)
    return numbers([0b111, len(columns[2])]) + b"".join(map(_piece, columns))


def numbers(values: Iterable[int]) -> bytes:
    """Unsigned LEB128."""
    out = bytearray()
    for number in values:
        while number >= 0x80:
            out.append(number & 0x7F | 0x80)
            number >>= 7
        out.append(number)
    return bytes(out)


def _text(text: str) -> bytes:
    return numbers([len(text.encode())]) + text.encode()


def _piece(column: Iterable[int]) -> bytes:
    packed = numbers(column)
    return numbers([len(packed)]) + packed
