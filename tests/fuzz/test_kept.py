"""Runs the kept fuzzing inputs of the coordinator and the viewer; Rust's tests run theirs."""

from __future__ import annotations

import resource
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.fuzz import coordinator, kept
from tests.fuzz.targets import CORPUS, SMALL_HEAP, copy_viewer
from tests.needed import lacking

MOST_MEMORY = 2 << 30
"""The limit of a process's address space, beyond what earlier tests used."""
# The number of a name that becomes -1 in an array of 32 bits.
WRAPPED = b"HPV4\1\0\1a\1\xff\xff\xff\xff\x0f\0\2\1\0\2\1\0\0"


@pytest.mark.timeout(60)
@pytest.mark.parametrize("target", sorted(coordinator.TARGETS))
def test_coordinator(target: str) -> None:
    before = resource.getrlimit(resource.RLIMIT_AS)
    size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size + MOST_MEMORY, before[1]))
    try:
        inputs = kept.read(CORPUS, target)
        assert inputs
        for data in inputs:
            coordinator.run(target, data)
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


@pytest.mark.timeout(120)
def test_viewer(tmp_path: Path) -> None:
    if shutil.which("node") is None:
        lacking("the viewer's reader runs in node here, and there is none")
    viewer, inputs = tmp_path / "viewer", tmp_path / "inputs"
    copy_viewer(viewer)
    inputs.mkdir()
    of_kept = kept.read(CORPUS, "block")
    assert of_kept
    for number, data in enumerate([*of_kept, WRAPPED]):
        (inputs / str(number)).write_bytes(data)
    script = Path(__file__).with_name("block.mjs")
    command = ["node", SMALL_HEAP, str(script), str(viewer), "0", "1", str(inputs), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert f"runs: {len(of_kept) + 1}" in done.stdout
