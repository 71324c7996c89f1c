"""perf's pipe as a stream gives what the same samples give one by one, and waits as long as they are."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.exact import perf_recordings as recordings
from tests.exact.perf_recordings import CLOCK, DD, GCC, RUSTC

pytestmark = pytest.mark.nightly

OFF_CPU = ["-e", "context-switches/period=1/", "--switch-events", "-m", "8M"]
"""With room for all that comes while a busy machine gives perf no time to write."""


@pytest.mark.parametrize("kind", ["c", "rust", "kernel"])
def test_the_stream_is_what_the_file_is(kind: str, tmp_path: Path) -> None:
    command = DD
    if kind != "kernel":
        compiler, source = {"c": (GCC, "burn.c"), "rust": (RUSTC, "traits.rs")}[kind]
        command = [str(recordings.compiled(tmp_path, compiler, source))]
    recording = recordings.record(tmp_path / "data", CLOCK, command, piped=True)
    live, said = recordings.live(recording, "cpu-clock", "cpu")
    samples = recordings.parsed(recordings.our_script(recording))
    assert sum(live.values()) == sum(period for _, period in recordings.periods(recording))
    assert said["taken"] == len(samples) > 20
    assert depths_and_leaves(live, recordings.periods(recording)[0][1]) == depths_and_leaves_of(samples)


def depths_and_leaves(stacks: dict[str, int], period: int) -> Counter:
    """How often each leaf was seen at each depth; the thread's group is not a frame of the sample."""
    counts: Counter = Counter()
    for stack, total in stacks.items():
        _, *frames = stack.split(";")
        leaf = re.sub(r"_\[.\]$", "", frames[-1]) if frames else ""
        counts[(len(frames), leaf)] += total // period
    return counts


def depths_and_leaves_of(samples: Sequence[recordings.Sample]) -> Counter:
    """The same of the samples one by one."""
    counts: Counter = Counter()
    for sample in samples:
        counts[(len(sample.frames), plain_name(sample.frames[0]) if sample.frames else "")] += 1
    return counts


def plain_name(frame: str) -> str:
    """The folded name of `address symbol (module)`."""
    found = re.match(r"\S+ (.*) \((.*)\)$", frame)
    assert found, frame
    symbol, module = found.groups()
    if symbol == "[unknown]":
        return "[" + module.rsplit("/", 1)[-1].strip("[]") + "]"
    symbol = re.sub(r"::h[0-9a-f]{16}$", "", symbol)
    return re.sub(r"\((?!anonymous).*$", "", symbol)


def test_waits_are_as_long_as_the_program_says(tmp_path):
    program = recordings.compiled(tmp_path, [*GCC, "-pthread"], "waits.c")
    told = tmp_path / "told"
    recording = recordings.record(tmp_path / "data", OFF_CPU, [str(program), str(told)], piped=True)
    truth = {name: int(nanoseconds) for name, nanoseconds in map(str.split, told.read_text().splitlines())}
    stacks, said = recordings.live(recording, "context-switches", "off-cpu")
    assert said["lost"] == 0
    measured = {
        "sleeps": waited(stacks, "[sleep]", "sleeps"),
        "contends": waited(stacks, "[lock]"),
        "receives": waited(stacks, "[network]"),
    }
    for name, nanoseconds in truth.items():
        assert measured[name] == pytest.approx(nanoseconds, rel=0.1), (name, measured, truth)


def waited(stacks: dict[str, int], kind: str, function: str | None = None) -> int:
    """Nanoseconds of one kind of wait, in stacks with a function."""
    total = 0
    for stack, nanoseconds in stacks.items():
        frames = stack.split(";")
        if frames[1] == kind and (function is None or function in frames):
            total += nanoseconds
    return total


Java = tuple[str, dict[str, int], dict[str, int]]
"""Whether the JVM kept frame pointers, its stacks, and the numbers printed beside them."""


@pytest.fixture(params=["+", "-"], ids=["with frame pointers", "without"])
def java(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Java]:
    recording, pid = recordings.record_java(tmp_path, f"-XX:{request.param}PreserveFramePointer", piped=True)
    perf_map = Path(f"/tmp/perf-{pid}.map")
    try:
        yield (request.param, *recordings.live(recording, "cpu-clock", "cpu", pid, perf_map))
    finally:
        perf_map.unlink(missing_ok=True)


def test_java_is_named_by_its_map(java: Java) -> None:
    pointers, stacks, numbers = java
    if pointers == "-":
        assert numbers["broken"] > 0.3 * numbers["taken"]
        return
    java_time = sum(time for stack, time in stacks.items() if re.search(r"Deep\.\w+_\[j\]", stack))
    assert java_time > 0.8 * sum(stacks.values())
    assert numbers["unknown_frames"] < 0.02 * numbers["frames"]
    assert numbers["broken"] < 0.05 * numbers["taken"]
