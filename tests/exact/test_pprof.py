"""Our pprof files open in `go tool pprof` with every stack, value and label; we read its files back."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from hprofiler._flamegraph import Profile
from tests.exact import peers

TEXT = b"main;a.B.c_[j];read_[k] 3\nmain;a.B.c_[0] 4\nmain;operator()(int) 2\nx;x;x 5\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "x.pb.gz"
    labelled = Profile.from_bytes(TEXT).with_labels({"host": "h 1", "pid": "12"})
    labelled.write(str(path), "pprof")
    return path


def go_pprof(file: Path, *options: str) -> str:
    """The output of `go tool pprof`, which must not search for programs and symbols."""
    command = [peers.needs("go"), "tool", "pprof", "-symbolize=none", *options, str(file)]
    environment = {**os.environ, "PPROF_TMPDIR": str(file.parent), "GOFLAGS": "-mod=mod"}
    return subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout


def test_raw_has_every_stack_and_label(file: Path) -> None:
    raw = go_pprof(file, "-raw")
    samples, rest = raw.split("Samples:\n")[1].split("Locations\n")
    names: dict[str, str] = {}
    for number, name, system in re.findall(r"^ +(\d+): 0x0 M=1 (.+) :0:0 s=0(?:\((.*)\))?$", rest, re.M):
        names[number] = system or name
    stacks: dict[tuple[str, ...], int] = {}
    for count, frames in re.findall(r"^ +(\d+): ([\d ]+)$", samples, re.M):
        stacks[tuple(names[frame] for frame in reversed(frames.split()))] = int(count)
    expected = (line.rsplit(" ", 1) for line in TEXT.decode().splitlines())
    assert stacks == {tuple(stack.split(";")): int(count) for stack, count in expected}
    assert samples.count("host:[h 1]") == samples.count("pid:[12]") == 4


def test_what_go_writes_comes_back(file: Path) -> None:
    rewritten = file.with_name("go.pb.gz")
    go_pprof(file, "-proto", f"-output={rewritten}")
    ours, theirs = Profile.read(str(file)), Profile.read(str(rewritten))
    assert (theirs.values, theirs.labels) == (ours.values, ours.labels)
    assert theirs.to_folded() == ours.to_folded()


def test_threads_are_tags(tmp_path: Path) -> None:
    """Thread frames at the root become tags; `-tagroot` makes them frames again."""
    path = tmp_path / "threads.pb.gz"
    text = b"[pool-N-thread-N];run;a 3\n[main];run;a 4\nrun;b 1\n"
    Profile.from_bytes(text).write(str(path), thread_label=True)
    tags = go_pprof(path, "-tags")
    shares = {name: count for count, name in re.findall(r"^ +(\d+) \([^)]*\): (\S+)$", tags, re.M)}
    assert " thread: Total 7" in tags and shares == {"pool-N-thread-N": "3", "main": "4"}
    focused = go_pprof(path, "-top", "-tagfocus", "thread=main")
    assert "Showing nodes accounting for 4" in focused
    rooted = go_pprof(path, "-top", "-tagroot", "thread")
    assert re.search(r" 3 +37.50% +pool-N-thread-N$", rooted, re.M)
    plain = Profile.read(str(path))
    assert plain.to_folded() == b"run;a 7\nrun;b 1\n" and plain.labels == {}
    assert (
        Profile.open(path, threads=True).to_folded()
        == b"[main];run;a 4\n[pool-N-thread-N];run;a 3\nrun;b 1\n"
    )


def test_modules_are_mappings_and_none_is_taken_for_the_program(tmp_path: Path) -> None:
    path = tmp_path / "modules.pb.gz"
    frames = ["read (/lib/libc.so.6)", "a.B.c (/tmp/perf-7.map)", "f (/lib/libx.so)"]
    sample = "x 7/7 1.0: 1 cpu-clock:\n" + "".join(f"\t1 {frame}\n" for frame in frames)
    ours = Profile.from_bytes(sample.encode(), "perf-script")
    ours.write(str(path))
    mappings = go_pprof(path, "-raw").split("Mappings\n")[1]
    assert re.findall(r"^\d+: \S+ (\S*) +\[FN\]$", mappings, re.M) == ["", "libx.so", "libc.so.6"]
    command = [peers.needs("go"), "tool", "pprof", "-top", str(path)]
    run = subprocess.run(command, check=True, capture_output=True, text=True)
    assert "File:" not in run.stdout, "not the program's, but some library"
    assert "read" in run.stdout and "ymboliz" not in run.stderr, "no file is looked for"
    rewritten = tmp_path / "go.pb.gz"
    go_pprof(path, "-proto", f"-output={rewritten}")
    assert Profile.read(rewritten).modules() == ours.modules() == {"read": "libc.so.6", "f": "libx.so"}
