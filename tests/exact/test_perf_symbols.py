"""Symbols of a recording come from the process's own files, and maps only from its user."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from hprofiler._flamegraph import Profile
from tests.exact import perf_recordings as recordings
from tests.exact.peers import needs
from tests.exact.perf_recordings import GCC

pytestmark = pytest.mark.nightly

SOURCE = "int main(void) {{ for (volatile long i = 0; ; i++) {name}(); }}\n"
FUNCTION = "__attribute__((noinline)) void {name}(void) {{ for (volatile int i = 0; i < 999; i++); }}\n"


def burner(folder: Path, name: str) -> Path:
    """A program that spends its time in a function with this name."""
    source = folder / f"{name}.c"
    source.write_text(FUNCTION.format(name=name) + SOURCE.format(name=name))
    program = folder / name
    # Without a build id the files differ only in their inodes.
    subprocess.run([*GCC, "-Wl,--build-id=none", "-o", str(program), str(source)], check=True)
    return program


@pytest.fixture
def contained(tmp_path) -> Iterator[tuple[int, Path]]:
    """A process whose program has the same path as one of the host, and the path."""
    theirs, ours = burner(tmp_path, "theirs"), burner(tmp_path, "ours")
    shared = tmp_path / "program"
    shutil.copy2(ours, shared)
    command = f"mount --bind {theirs} {shared} && echo in && exec {shared}"
    process = subprocess.Popen([needs("unshare"), "-m", "sh", "-c", command], stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        if process.stdout.readline() != b"in\n":
            pytest.skip("mount namespaces are not to be had here")
        yield process.pid, tmp_path
    finally:
        process.kill()
        process.communicate()


def test_a_containers_file_is_not_the_hosts(contained):
    pid, folder = contained
    clock = ["-F", "499", "-e", "cpu-clock", "-p", str(pid)]
    file = recordings.record(folder / "file.data", clock, ["sleep", "0.5"])
    piped = recordings.record(folder / "piped.data", clock, ["sleep", "0.5"], piped=True)
    stacks, _ = recordings.live(piped, "cpu-clock", "cpu", pid)
    for text in (Profile.open(str(file)).to_folded().decode(), "\n".join(stacks)):
        assert "theirs" in text
        assert "ours" not in text


def test_a_file_that_is_gone_is_not_taken_for_the_one_in_its_place(tmp_path):
    theirs, ours = burner(tmp_path, "theirs"), burner(tmp_path, "ours")
    process = subprocess.Popen([str(theirs)])
    try:
        clock = ["-F", "499", "-e", "cpu-clock", "-p", str(process.pid)]
        recording = recordings.record(tmp_path / "data", clock, ["sleep", "0.5"], piped=True)
    finally:
        process.kill()
        process.wait()
    os.replace(ours, theirs)
    stacks, said = recordings.live(recording, "cpu-clock", "cpu", process.pid)
    assert said["taken"] > 0
    assert not any("ours" in stack for stack in stacks)
