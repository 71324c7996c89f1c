"""A strict reader of agents/jvmti/PERFMAP.md, independent of the product's."""

from __future__ import annotations

import bisect
import struct
from dataclasses import dataclass, field
from pathlib import Path

NAME, CODE, STUB, UNLOAD, END = range(1, 6)
LARGEST_RECORD = 16 << 20
MOST_FRAMES = 1024
Frames = tuple[str, ...]


@dataclass(frozen=True)
class Code:
    """A compiled method (`ranges`: offset behind each, and its frames, outermost first) or a stub (none)."""

    start: int
    length: int
    name: str
    ranges: tuple[tuple[int, Frames], ...] = ()
    stub: bool = False

    def frames(self, address: int) -> Frames:
        """The frames at an address inside."""
        offset = address - self.start
        at = bisect.bisect_right([end for end, _ in self.ranges], offset)
        return self.ranges[at][1] if at < len(self.ranges) else (self.name,)


@dataclass
class Map:
    """All of a map; `codes` in the file's order."""

    codes: list[Code] = field(default_factory=list)
    unloads: list[int] = field(default_factory=list)
    without_inlining: int = 0

    def methods(self, name: str) -> list[Code]:
        """Compiled methods of that name."""
        return [code for code in self.codes if code.name == name and not code.stub]

    def stacks(self) -> dict[Frames, int]:
        """Bytes of code by frames."""
        found: dict[Frames, int] = {}
        for code in self.codes:
            begin = 0
            for end, frames in [*code.ranges, (code.length, (code.name,))]:
                found[frames] = found.get(frames, 0) + end - begin
                begin = end
        return found

    def at(self, address: int) -> Frames | None:
        """The frames of the first record that covers an address."""
        for code in self.codes:
            if code.start <= address < code.start + code.length:
                return code.frames(address)
        return None


def read(path: Path, machine: int = 62) -> Map:
    """The map in a file. Raises AssertionError with a reason for everything that FORMAT.md does not allow."""
    content = path.read_bytes()
    assert content[:8] == b"HPROFMAP", content[:80]
    assert struct.unpack_from("<II", content, 8) == (1, machine)
    found, names, counts, at = Map(), [], [0] * 6, 16
    while True:
        assert at + 8 <= len(content), "no end record"
        kind, size = struct.unpack_from("<II", content, at)
        body = content[at + 8 : at + 8 + size]
        assert size <= LARGEST_RECORD and len(body) == size
        at += 8 + size
        if kind == END:
            break
        counts[kind] += 1
        _take(found, names, kind, body)
    assert at == len(content), "something follows the end record"
    *told, found.without_inlining = struct.unpack("<5Q", body)
    assert told == counts[NAME:END]
    return found


def _take(found: Map, names: list[str], kind: int, body: bytes) -> None:
    if kind == NAME:
        assert 1 <= len(body) <= 4096
        names.append(body.decode("utf-8", "replace"))
    elif kind == CODE:
        found.codes.append(_code(body, names))
    elif kind == STUB:
        start, length, name = struct.unpack("<QII", body)
        assert length > 0
        found.codes.append(Code(start, length, names[name], stub=True))
    else:
        assert kind == UNLOAD
        found.unloads.append(struct.unpack("<Q", body)[0])


def _code(body: bytes, names: list[str]) -> Code:
    start, length, method, count = struct.unpack_from("<QIII", body)
    assert length > 0
    ranges: list[tuple[int, Frames]] = []
    frames: Frames = ()
    at, reached = 20, 0
    for _ in range(count):
        end, keep, add = struct.unpack_from("<IHH", body, at)
        added = struct.unpack_from(f"<{add}I", body, at + 8)
        at += 8 + 4 * add
        assert reached < end <= length and keep <= len(frames) and 0 < keep + add <= MOST_FRAMES
        frames = frames[:keep] + tuple(names[name] for name in added)
        assert keep > 0 or added[0] == method
        ranges.append((end, frames))
        reached = end
    assert at == len(body)
    return Code(start, length, names[method], tuple(ranges))
