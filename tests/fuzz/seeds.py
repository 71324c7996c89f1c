"""Where the fuzzers start: what is kept, what is made by hand, and what the tools on this machine write."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from pathlib import Path

from hprofiler._flamegraph import Profile, ViewerData
from tests.fuzz import agent_seeds, coordinator_seeds, kept, recorded_seeds

Seed = tuple[str, str, bytes]
"""Of which target, a name, the bytes."""


def plant(corpora: Path, corpus_of: dict[str, Path]) -> None:
    """Write all seeds into folders of `corpora`; `corpus_of` tells where what is kept of each target lies."""
    for target, corpus in corpus_of.items():
        (corpora / target).mkdir(parents=True, exist_ok=True)
        for number, data in enumerate(kept.read(corpus, target)):
            (corpora / target / f"kept-{number}").write_bytes(data)
    for target, name, data in made():
        (corpora / target / name).write_bytes(data)


def made() -> Iterator[Seed]:
    yield from by_hand()
    yield from recorded_seeds.by_tools()
    yield from agent_seeds.by_tools()


def by_hand() -> Iterator[Seed]:
    """The same on every machine."""
    yield from recorded_seeds.by_hand()
    yield from agent_seeds.by_hand()
    yield from coordinator_seeds.seeds()
    yield from blocks()


def blocks() -> Iterator[Seed]:
    """What pages carry, unpacked."""
    data = ViewerData()
    yield "block", "empty", zlib.decompress(data.to_bytes())
    text = "main;a.B.c_[j];read_[k] 3\nmain;a.B.c_[0] 4\nmain;\u00e9;\u00fc 7\n[x];y 900\n"
    profile = Profile.from_bytes(text.encode(), "folded")
    data.add(profile)
    data.add_threads(profile)
    yield "block", "small", zlib.decompress(data.to_bytes())
