"""Fifty maps of a JVM that loads, compiles and throws away classes all the time."""

from __future__ import annotations

from tests.perfmap.program import Holdings

MAPS = 50
ROOM = ["-Xmx256m", "-XX:CICompilerCount=2", "-XX:TieredStopAtLevel=1", "-XX:ReservedCodeCacheSize=8m"]


def test_the_jvm_survives_and_every_map_is_whole(java, start, take):
    program = start(java, "Storm", ROOM)
    for _ in range(5):
        take(program.pid)
    before, loaded = Holdings.of(program.pid), program.ask()
    named, thrown_away = set(), 0
    for _ in range(MAPS):
        found = take(program.pid)
        thrown_away += len(found.unloads)
        named |= {code.name for code in found.methods("Storm$Leaf.twice")}
    after = Holdings.of(program.pid)
    assert program.ask() > loaded + MAPS, "the storm went on"
    assert named, "the storm's own methods were in a map"
    assert thrown_away, "code was thrown away while a map was written"
    assert after.threads <= before.threads and after.files <= before.files
    assert after.library_pieces == before.library_pieces
    status, errors = program.finish()
    assert (status, "fatal" in errors) == (0, False), errors
