"""Fifty maps and more of a JVM that loads, compiles and throws away classes all the time."""

from __future__ import annotations

import time

import pytest

from tests.perfmap.program import Holdings

pytestmark = pytest.mark.nightly

MAPS = 50
LONGEST_SECONDS = 240
"""A loaded machine gives the storm little time between the maps; then there are more of them."""
ROOM = ["-Xmx256m", "-XX:CICompilerCount=2", "-XX:TieredStopAtLevel=1", "-XX:ReservedCodeCacheSize=8m"]


def test_the_jvm_survives_and_every_map_is_whole(java, start, take):
    program = start(java, "Storm", ROOM)
    for _ in range(5):
        take(program.pid)
    before, loaded = Holdings.of(program.pid), program.ask()
    maps, named, thrown_away, end = 0, 0, 0, time.monotonic() + LONGEST_SECONDS
    while maps < MAPS or not (named and thrown_away and program.ask() > loaded + MAPS):
        assert time.monotonic() < end, (maps, named, thrown_away, program.ask() - loaded)
        found = take(program.pid)
        maps += 1
        thrown_away += len(found.unloads)
        named += len(found.methods("Storm$Leaf.twice"))
    after = Holdings.of(program.pid)
    assert after.threads <= before.threads and after.files <= before.files
    assert after.library_pieces == before.library_pieces
    status, errors = program.finish()
    assert (status, "fatal" in errors) == (0, False), errors
