"""Folded text as other tools write it: differential files, and every way they are compressed."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from hprofiler._flamegraph import Profile
from tests.exact.peers import inferno, lines, needs

BEFORE = b"main;a b;c  d 3\nmain;thread 12] 4\nmain;gone 1\n"
AFTER = b"main;a b;c  d 5\nmain;thread 12] 4\nmain;new 2\n"


@pytest.mark.nightly
def test_a_differential_file_of_inferno(tmp_path: Path) -> None:
    paths = [tmp_path / "before.folded", tmp_path / "after.folded"]
    for path, text in zip(paths, (BEFORE, AFTER), strict=False):
        path.write_bytes(text)
    command = [str(inferno("inferno-diff-folded")), *map(str, paths)]
    text = subprocess.run(command, check=True, capture_output=True).stdout
    profile = Profile.from_bytes(text)
    assert profile.values == [("before", "count"), ("after", "count")]
    assert lines(profile.to_folded(value=0)) == lines(BEFORE)
    assert lines(profile.to_folded(value=1)) == lines(AFTER)


@pytest.mark.parametrize("level", ["-1", "--stream-size=5000000"])
def test_zstd(tmp_path: Path, level: str) -> None:
    text = b"".join(b"main;worker-%d;f%d %d\n" % (n % 97, n, n % 1000 + 1) for n in range(200_000))
    text = text[:5_000_000].rsplit(b"\n", 1)[0] + b"\n"
    if level.startswith("--stream-size"):
        level = f"--stream-size={len(text)}"
    compressed = subprocess.run(
        [needs("zstd"), level, "-c"], input=text, check=True, capture_output=True
    ).stdout
    path = tmp_path / "x.folded.zst"
    path.write_bytes(compressed + compressed)
    once = Profile.from_bytes(text, "folded")
    twice = Profile.read(str(path))
    assert twice.total() == 2 * once.total()
    assert twice.node_count() == once.node_count()
