"""What fuzzing kept of the coordinator's and the viewer's readers is read again; Rust's tests do so too."""

from __future__ import annotations

import resource
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.fuzz import coordinator, kept, seeds
from tests.fuzz.crates import CRATES
from tests.fuzz.targets import CORPUS, SMALL_HEAP, copy_viewer, corpora
from tests.needed import lacking

MOST_MEMORY = 2 << 30
"""Of a process's addresses, beyond what the tests before took."""
# The number of a name that becomes -1 in an array of 32 bits.
WRAPPED = b"HPV3\1\0\1a\1\xff\xff\xff\xff\x0f\0\2\1\0\2\1\0\0"


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


def test_an_input_comes_back(tmp_path: Path) -> None:
    everything = bytes(range(256))
    for inputs in ([b"a;b 1\n", b"\\ \x00\t\xff", b""], [everything, b"\0"]):
        assert kept.write(tmp_path, "x", inputs[:1], inputs) == len(inputs)
        assert sorted(kept.read(tmp_path, "x")) == sorted(inputs)
    assert len(list(tmp_path.iterdir())) == 1


def test_what_was_made_by_hand_is_kept_however_long_it_is(tmp_path: Path) -> None:
    long, short = bytes(kept.MOST_BYTES + 1), b"short"
    assert kept.write(tmp_path, "x", [long], [short, long + b"found"]) == 2
    assert kept.read(tmp_path, "x") == [long, short]


@pytest.mark.parametrize("target", ["jfr", "recording", "perf_live"])
def test_whole_recordings_are_kept(target: str) -> None:
    whole = {data for name, _, data in seeds.by_hand() if name == target}
    assert whole and whole <= set(kept.read(corpora()[target], target))


def test_something_is_kept_of_each_target_and_little_of_all() -> None:
    assert all(kept.read(corpus, target) for target, corpus in corpora().items())
    folders = [CORPUS, *(crate.corpus for crate in CRATES)]
    assert sum(file.stat().st_size for folder in folders for file in folder.iterdir()) < 1 << 20
