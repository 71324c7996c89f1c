"""Samples of waiting threads, locks and allocations, against programs with known behaviour."""

from __future__ import annotations

import subprocess
from collections import Counter, defaultdict
from pathlib import Path

import pytest

from hprofiler._flamegraph import Profile
from tests.exact import jfr_recordings as jfr

pytestmark = pytest.mark.nightly

WAITS = {
    "[sleep in monitor]": "[sleep]",
    "[sleep in lock]": "[sleep]",
    "[sleep in pool]": "[sleep]",
    "[sleep]": "[sleep]",
    "[lock]": "[lock]",
    "[park]": "[park]",
    "[park for lock]": "[park]",
    "[park for latch]": "[park]",
    "[wait]": "[wait]",
    "[wait for condition]": "[wait]",
    "[wait for queue]": "[wait]",
    "[network read]": "[network]",
    "[network accept]": "[network]",
    "[network select]": "[network]",
    "[network channel]": "[network]",
    "[disk]": "[disk]",
    "[idle fixed]": "[idle pool thread]",
    "[idle scheduled]": "[idle pool thread]",
    "[idle timer]": "[idle pool thread]",
    "[ForkJoinPool-N-worker-N]": "[idle pool thread]",
    "[Reference Handler]": "[idle pool thread]",
}
THE_JVMS_OWN = {
    "[VM Thread]": {"[idle pool thread]", "[sleep]"},
    "[C2 CompilerThre]": {"[idle pool thread]", "[lock]"},
}
"""On a busy machine they may wait longer for other things than for work."""


def record(jdk: int, burner: str, recording: Path, options: str, *arguments: str) -> str:
    """Runs a burner to its end with async-profiler 4.4; returns its last output."""
    command = jfr.command(jdk, recording, burner, agent="4.4", options=options)
    run = subprocess.run([*command, *arguments], check=True, capture_output=True, text=True, timeout=120)
    return run.stdout.strip().splitlines()[-1]


def waits(profile: Profile) -> dict[str, Counter[str]]:
    """For each group of threads the samples of each wait."""
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for stack, count in jfr.stacks(profile.to_folded("offcpu_samples")).items():
        group, wait = stack.split(";")[:2]
        found[group][wait] += count
    return found


@pytest.mark.parametrize("jdk", [8, 11, 17, 21, 25])
def test_each_kind_of_wait_is_told_apart(jdk: int, tmp_path: Path) -> None:
    recording = tmp_path / "wall.jfr"
    record(jdk, "WaitBurner", recording, "event=wall,interval=10ms", "3000")
    profile = Profile.open(recording, threads="groups", off_cpu=True)
    found = waits(profile)
    assert {group: found[group].most_common(1)[0][0] for group in WAITS} == WAITS
    for group, wait in WAITS.items():
        assert found[group][wait] > 0.9 * sum(found[group].values()), (group, found[group])
    for group, known in THE_JVMS_OWN.items():
        assert found[group]["[idle pool thread]"] > 0, (group, found[group])
        assert sum(found[group][wait] for wait in known) > 0.9 * sum(found[group].values()), found[group]
    run = sum(found["[run]"].values())
    alone = Profile.open(recording, threads="groups").filter(include=r"^\[run\]$")
    assert run < 0.2 * alone.total("wall_samples")
    assert profile.total("wall") > profile.total("offcpu") == profile.total("offcpu_samples") * 10_000_000


@pytest.mark.parametrize(("interval", "hold"), [("10us", "2000"), ("10us", "20")])
@pytest.mark.parametrize("jdk", [8, 17, 25])
def test_lock_delay_is_what_threads_waited(jdk: int, interval: str, hold: str, tmp_path: Path) -> None:
    recording = tmp_path / "lock.jfr"
    truth = record(jdk, "LockBurner", recording, f"event=lock,lock={interval}", "2000", hold)
    profile = Profile.open(recording, estimate=True)
    for method, waited in zip(("enterMonitor", "takeLock"), map(int, truth.split()), strict=False):
        delay = profile.focus(f"^LockBurner.{method}$").total("delay")
        assert delay == pytest.approx(waited, rel=0.15), method


@pytest.fixture(scope="module", params=[11, 17, 25])
def allocations(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, dict[str, tuple[int, int]]]:
    """A recording, and the allocated bytes and objects by method."""
    recording = tmp_path_factory.mktemp("jfr") / f"alloc-{request.param}.jfr"
    line = record(request.param, "AllocationBurner", recording, "event=alloc,alloc=128k,live", "3000")
    words = line.split()
    truth = {name: (int(n), int(m)) for name, n, m in zip(words[::3], words[1::3], words[2::3], strict=False)}
    return recording, truth


def jdk_of(recording: Path) -> int:
    return int(recording.stem.split("-")[1])


def test_allocations_are_estimated(allocations: tuple[Path, dict[str, tuple[int, int]]]) -> None:
    recording, truth = allocations
    profile = Profile.open(recording, estimate=True)
    total = sum(space for name, (space, _) in truth.items() if name != "kept")
    found = 0
    for name, (space, objects) in truth.items():
        if name == "kept":
            continue
        part = profile.focus(rf"^AllocationBurner\.{name}$")
        found += part.total("alloc_space")
        # Up to JDK 21 the JVM's sampler may take a small object instead of a larger one.
        near = 0.15 if jdk_of(recording) == 25 else 0.35
        assert part.total("alloc_space") == pytest.approx(space, rel=near), name
        assert part.total("alloc_objects") == pytest.approx(objects, rel=near), name
    assert found == pytest.approx(total, rel=0.1)
