"""A strict reader of agents/jvmti/THREADNAMES.md, independent of the product's."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class Names:
    """`names` are (number of the poll, Java thread id, name); `polls` (wall, begin, end) in nanoseconds.

    `forgotten` are numbers of polls before which names were forgotten; `crowded` is whether there were more
    threads than can be followed.
    """

    milliseconds: int
    names: list[tuple[int, int, str]] = field(default_factory=list)
    polls: list[tuple[int, int, int]] = field(default_factory=list)
    forgotten: list[int] = field(default_factory=list)
    crowded: bool = False
    ended: bool = False

    def of_threads(self) -> dict[int, list[str]]:
        """The names of each thread, in order."""
        found: dict[int, list[str]] = {}
        for _, thread, name in self.names:
            found.setdefault(thread, []).append(name)
        return found


def read(path: Path) -> Names:
    """Whole records only; the JVM may be writing the next."""
    content = path.read_bytes()
    assert content[:8] == b"HPROFTHR"
    version, milliseconds = struct.unpack_from("<II", content, 8)
    assert version == 1
    found, at = Names(milliseconds), 16
    while at < len(content):
        assert not found.ended
        kind = content[at]
        if kind == 1:
            thread, size = struct.unpack_from("<qH", content, at + 1)
            name = content[at + 11 : at + 11 + size].decode()
            found.names.append((len(found.polls), thread, name))
            at += 11 + size
        elif kind == 2:
            found.polls.append(struct.unpack_from("<qqq", content, at + 1))
            at += 25
        else:
            assert kind in (3, 4, 5), f"record {kind}"
            if kind == 3:
                found.forgotten.append(len(found.polls))
            found.ended = kind == 4
            found.crowded = found.crowded or kind == 5
            at += 1
    return found
