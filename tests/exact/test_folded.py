"""Folded text that zstd compressed."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from hprofiler._flamegraph import Profile
from tests.exact.peers import needs


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
