"""The picture options of `hprofiler convert` work like flamegraph.pl's; both run as commands."""

from __future__ import annotations

import gzip
import subprocess
import sys
from pathlib import Path

import pytest

from tests.exact.pictures import Picture, made_up, parse

FOLDED = made_up(21)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "in.folded").write_bytes(FOLDED)
    return tmp_path


def convert(folder: Path, *words: str, fails: bool = False) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "hprofiler", "convert", *words]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert (done.returncode != 0) == fails, done.stderr
    return done


def picture(folder: Path, *words: str) -> Picture:
    convert(folder, "in.folded", "-o", "out.svg", "--minwidth", "0", *words)
    return parse((folder / "out.svg").read_bytes())


def test_a_flame_chart_from_a_compressed_pipe(folder: Path) -> None:
    text = gzip.compress(b"a;b 1\nc 2\na;b 3\nno count\n")
    command = [sys.executable, "-m", "hprofiler", "convert", "-", "-o", "c.svg", "--flamechart"]
    done = subprocess.run(command, cwd=folder, input=text, capture_output=True)
    assert done.returncode == 0, done.stderr
    assert b"1 malformed line or record was left out" in done.stderr
    bars = parse((folder / "c.svg").read_bytes()).bars
    assert [(bar.name, bar.amount) for bar in bars if bar.level == 1] == [("a", 3), ("c", 2), ("a", 1)]
