"""Where the memory of a process is, as the agent read it (`agents/PROTOCOL.md`). Amounts are bytes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal, get_args

from msgspec import Meta

from hprofiler.base.text import printable
from hprofiler.model.recording import Count, Seconds
from hprofiler.model.target import Process

Part = Literal[
    "heap",
    "metaspace",
    "code",
    "stacks",
    "malloc",
    "anonymous",
    "shared",
    "libraries",
    "jars",
    "files",
]
PARTS: tuple[Part, ...] = get_args(Part)
"""In the order in which they are shown. `malloc` are the areas from which the C library gives small pieces,
`anonymous` is memory without a name: its large pieces, which direct buffers are, too, and the collector's
tables. `jars` are files with classes."""
_Word = Annotated[str, Meta(pattern=r"^[ -~]{1,255}\Z")]


@dataclass(frozen=True, slots=True)
class Amount:
    resident: Count
    swap: Count = 0


@dataclass(frozen=True, slots=True)
class FileMemory:
    path: str
    resident: Count

    def __post_init__(self) -> None:
        object.__setattr__(self, "path", printable(self.path[:4096]))


@dataclass(frozen=True, slots=True)
class ClassMemory:
    name: str
    objects: Count
    bytes: Count

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", printable(self.name[:1000]))


@dataclass(frozen=True, slots=True)
class Histogram:
    """All objects of a heap, those that are not reachable any more too, and its largest classes.

    The JVM stood still for `seconds`.
    """

    seconds: Seconds
    objects: Count
    bytes: Count
    classes: Annotated[tuple[ClassMemory, ...], Meta(max_length=1000)]


@dataclass(frozen=True, slots=True)
class JvmMemory:
    """A JVM's own account; None is not known. `flags` are those that limit memory.

    `heap_found`: it said where its heap is; if not, the heap is a part of anonymous memory. `native` is what
    each part of the JVM has committed, if it was started with NativeMemoryTracking.
    """

    heap_found: bool
    heap_used: Count | None = None
    heap_committed: Count | None = None
    metaspace_used: Count | None = None
    metaspace_committed: Count | None = None
    flags: Annotated[Mapping[_Word, Count], Meta(max_length=64)] = field(default_factory=dict)
    native: Annotated[Mapping[_Word, Count], Meta(max_length=64)] = field(default_factory=dict)
    histogram: Histogram | None = None

    @property
    def heap_max(self) -> int | None:
        return self.flags.get("MaxHeapSize")


@dataclass(frozen=True, slots=True)
class GroupMemory:
    """The control group with the tightest memory limit, of those that count for a process.

    `file` is its page cache. `out_of_memory`: how often nothing was left below its limit.
    """

    id: _Word
    limit: Count | None = None
    used: Count | None = None
    anonymous: Count | None = None
    file: Count | None = None
    shared: Count | None = None
    out_of_memory: Count | None = None
    oom_kills: Count | None = None


@dataclass(frozen=True, slots=True)
class Memory:
    """`proportional`: a page that N processes have counts 1/N. The kernel took `seconds` to say it."""

    seconds: Seconds
    parts: Mapping[Part, Amount]
    proportional: Count
    mappings: Count
    arenas: Count
    threads: Count
    files: Annotated[tuple[FileMemory, ...], Meta(max_length=100)]
    jvm: JvmMemory | None = None
    group: GroupMemory | None = None

    @property
    def resident(self) -> int:
        return sum(one.resident for one in self.parts.values())

    @property
    def swap(self) -> int:
        return sum(one.swap for one in self.parts.values())

    def of(self, *parts: Part) -> int:
        """Resident bytes of these parts."""
        return sum(self.parts[part].resident for part in parts if part in self.parts)


@dataclass(frozen=True, slots=True)
class MeasuredProcess:
    """A process, and its memory at each look: the time since 1970 on its host's clock, and what was seen.

    Only the last look has `files`.
    """

    process: Process
    looks: tuple[tuple[float, Memory], ...]

    @property
    def last(self) -> Memory:
        return self.looks[-1][1]
