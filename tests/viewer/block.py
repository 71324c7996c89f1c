"""A page's data and description, read as `flamegraph/viewer/FORMAT.md` describes it."""

from __future__ import annotations

import base64
import json
import re
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Stacks = dict[tuple[str, ...], int]


@dataclass
class Times:
    """When a column's samples were taken: (bucket, stack, band) → samples, amount; in microseconds."""

    start: int
    width: int
    rows: dict[tuple[int, tuple[str, ...], int], tuple[int, int]]


@dataclass
class Block:
    """How many nodes the tree has, self values by stack and times of columns, modules of native and kernel
    names."""

    nodes: int
    columns: list[Stacks]
    times: dict[int, Times]
    modules: dict[str, str]
    kernel: dict[str, str]


def described(page: Path) -> dict[str, Any]:
    """The page's description."""
    found = re.search(r'<script type="application/json" id="hprofiler-page">(.*?)</script>', page.read_text())
    assert found is not None
    record = json.loads(found.group(1))
    assert isinstance(record, dict)
    return record


def blocks(content: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    """The blocks of a kind in sections of tables and charts."""
    return [one for section in content["sections"] for one in section["blocks"] if one["kind"] == kind]


def words(record: Any) -> str:
    """All text and numbers in a part of the description, in their order, with plain spaces."""
    if isinstance(record, dict):
        record = list(record.values())
    if isinstance(record, list):
        return " ".join(filter(None, map(words, record)))
    return "" if record is None or isinstance(record, bool) else str(record).replace("\u202f", " ")


def summaries(page: Path) -> dict[str, Any]:
    """What the page says of each event."""
    record = described(page)
    return {
        event["name"]: summary for event, summary in zip(record["events"], record["summaries"], strict=True)
    }


def facts(page: Path) -> dict[str, str]:
    """How the run was made, by label."""
    return {label: words(lines) for label, _, lines in described(page)["run"]["facts"]}


def carried(page: Path) -> Block:
    """The page's data."""
    ident = described(page)["data"]
    found = re.search(
        rf'<script type="application/octet-stream" id="{ident}">(.*?)</script>', page.read_text()
    )
    assert found is not None
    return read_block(base64.b64decode(found.group(1), validate=True))


def read_block(packed: bytes) -> Block:
    reader = _Reader(zlib.decompress(packed))
    assert reader.take(4) == b"HPV4"
    names = _names(reader)
    stacks = _stacks(reader, names)
    columns = [_column(reader, stacks) for _ in range(reader.number())]
    times = dict(_times(reader, stacks) for _ in range(reader.number()))
    modules = _modules(reader, names) if reader.at < len(reader.data) else [{}, {}]
    if reader.at < len(reader.data):  # what threads do that wait
        count = reader.number()
        assert [len(reader.numbers()) for _ in range(3)] == [count] * 3
    assert reader.at == len(reader.data)
    return Block(len(stacks), columns, times, *modules)


class _Reader:
    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def number(self) -> int:
        value = shift = 0
        while True:
            byte = self.data[self.at]
            self.at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    def take(self, length: int) -> bytes:
        self.at += length
        return self.data[self.at - length : self.at]

    def numbers(self) -> list[int]:
        """The numbers that a piece is made of."""
        piece = _Reader(self.take(self.number()))
        found = []
        while piece.at < len(piece.data):
            found.append(piece.number())
        return found


def _names(reader: _Reader) -> list[str]:
    names: list[bytes] = []
    for _ in range(reader.number()):
        shared = reader.number()
        names.append((names[-1][:shared] if shared else b"") + reader.take(reader.number()))
    assert names == sorted(set(names))
    return [name.decode() for name in names]


def _modules(reader: _Reader, names: list[str]) -> list[dict[str, str]]:
    texts = [reader.take(reader.number()).decode() for _ in range(reader.number())]
    if not texts:
        return [{}, {}]
    pieces = [reader.numbers(), reader.numbers()]
    assert all(len(numbers) == len(names) for numbers in pieces)
    return [
        {name: texts[number - 1] for name, number in zip(names, numbers, strict=False) if number}
        for numbers in pieces
    ]


def _stacks(reader: _Reader, names: list[str]) -> list[tuple[str, ...]]:
    """Each node's stack."""
    frames = [(names[reader.number()], reader.number()) for _ in range(reader.number())]
    count = reader.number()
    frame_of, children = reader.numbers(), reader.numbers()
    assert (len(frame_of), len(children)) == (count - 1, count)
    stacks: list[tuple[str, ...]] = [()]
    waiting = [[0, children[0]]]
    for node, frame in enumerate(frame_of, 1):
        while waiting[-1][1] == 0:
            waiting.pop()
        waiting[-1][1] -= 1
        stacks.append((*stacks[waiting[-1][0]], frames[frame][0]))
        waiting.append([node, children[node]])
    assert not any(left for _, left in waiting)
    return stacks


def _column(reader: _Reader, stacks: list[tuple[str, ...]]) -> Stacks:
    entries = reader.number()
    steps, values = reader.numbers(), reader.numbers()
    assert len(steps) == len(values) == entries and all(values)
    node = 0
    column: Stacks = {}
    for step, value in zip(steps, values, strict=False):
        node += step
        # Tiers of one method are nodes of their own.
        column[stacks[node]] = column.get(stacks[node], 0) + value
    return column


def _times(reader: _Reader, stacks: list[tuple[str, ...]]) -> tuple[int, Times]:
    column, start, width, flags, count = (reader.number() for _ in range(5))
    steps, nodes, samples = reader.numbers(), reader.numbers(), reader.numbers()
    amounts, bands = (reader.numbers() if flags & flag else [0] * count for flag in (1, 2))
    assert {len(piece) for piece in (steps, nodes, samples, amounts, bands)} == {count} and all(samples)
    times = Times(start, width, {})
    bucket = node = 0
    for step, distance, band, count, amount in zip(steps, nodes, bands, samples, amounts, strict=True):
        bucket += step
        node = distance if step else node + distance
        # As in columns, tiers are added up.
        key = (bucket, stacks[node], band)
        before = times.rows.get(key, (0, 0))
        times.rows[key] = (before[0] + count, before[1] + amount)
    return column, times
