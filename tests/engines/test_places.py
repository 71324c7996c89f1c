"""JVMs of other users and in containers: each is recorded, and nothing stays with it."""

from __future__ import annotations

import pytest

from tests.burners.counting import Truth
from tests.contract.conftest import OTHER_USER, as_user, open_classes
from tests.contract.test_agent_namespaces import OWN_TMP, contained
from tests.engines.conftest import Zoo
from tests.engines.measured import Run, Runner, Stacks, near, points

pytestmark = pytest.mark.nightly

READ_ONLY = f"{OWN_TMP} && mount -o remount,bind,ro /"
NOEXEC = "mount -t tmpfs -o mode=1777,noexec tmpfs /tmp && mount -t tmpfs -o mode=1777 tmpfs /var/tmp"
PLACES = (
    "root, here",
    "another user",
    "own namespaces",
    "own namespaces, another user",
    "read-only root",
    "noexec /tmp",
    "user namespace",
)


@pytest.fixture(scope="module")
def jvms(zoo: Zoo) -> dict[str, Truth]:
    """A JVM in each place, all at once."""
    works = ("cpu=0.18", "alloc=30")
    open_to_all = [f"-Xbootclasspath/a:{open_classes()}"]
    return {
        "root, here": zoo.jvm(*works),
        "another user": zoo.jvm(*works, prefix=as_user(OTHER_USER), options=open_to_all),
        "own namespaces": zoo.jvm(*works, wrap=contained()),
        "own namespaces, another user": zoo.jvm(*works, wrap=contained(user=OTHER_USER)),
        "read-only root": zoo.jvm(*works, wrap=contained(READ_ONLY)),
        "noexec /tmp": zoo.jvm(*works, wrap=contained(NOEXEC, user=OTHER_USER)),
        "user namespace": zoo.jvm(*works, wrap=contained(user=OTHER_USER, mapped=True)),
    }


@pytest.fixture(scope="module")
def run(record: Runner, jvms: dict[str, Truth]) -> Run:
    """So many samples that 10 % are five standard deviations of a third of what they allocate."""
    options = ["-e", "cpu,alloc", "--alloc-interval", "32k", "--keep-raw"]
    return record(list(jvms.values()), *options, seconds=6)


@pytest.fixture(params=PLACES)
def jvm(request: pytest.FixtureRequest, jvms: dict[str, Truth]) -> Truth:
    return jvms[request.param]


def test_it_is_recorded_by_async_profiler(run: Run, jvm: Truth) -> None:
    events = run.recordings(jvm)
    assert {event: one["engine"] for event, one in events.items()} == {
        "cpu": "async-profiler",
        "alloc": "async-profiler",
    }, run.told(jvm)


def test_cpu_seconds_are_right_whatever_was_used(run: Run, jvm: Truth) -> None:
    """The kernel may keep its own frames, and its time, from a profiler inside another user's JVM."""
    assert run.cpu_seconds_agree(jvm), (run.recording(jvm), run.grown(jvm))


def test_shares_of_java_and_native_code(run: Run, jvm: Truth) -> None:
    counted = run.grown(jvm)
    samples = run.stacks(jvm, "cpu", "samples")
    java, native = samples.of("Cpu.inJava"), samples.of("Cpu.inNative")
    truth = counted["cpu.java.ns"] / (counted["cpu.java.ns"] + counted["cpu.native.ns"])
    assert java / (java + native) == pytest.approx(truth, abs=points(java + native, truth))


def test_allocated_bytes(run: Run, jvm: Truth) -> None:
    space = run.stacks(jvm, "alloc", "alloc_space").total
    counted = run.grown(jvm, "alloc")["alloc.everywhere.bytes"]
    assert near(space, counted, 0.10), (space, counted)


def test_what_was_used_instead_of_perf_events_is_said(run: Run, jvms: dict[str, Truth]) -> None:
    for jvm in jvms.values():
        source = run.recording(jvm)["source"]
        assert source == "perf_events" or "kernel" in run.told(jvm), run.outcome(jvm)
    if run.recording(jvms["root, here"])["source"] == "perf_events":
        assert _kernel(run.stacks(jvms["root, here"], "cpu", "samples")) > 0


def _kernel(samples: Stacks) -> int:
    return samples.of_leaf("k")


def test_perf_sees_other_users_and_containers(record: Runner, jvms: dict[str, Truth]) -> None:
    programs = [jvms[place] for place in ("another user", "own namespaces", "noexec /tmp")]
    run = record(programs, "--engine", "perf", seconds=4)
    for jvm in programs:
        assert run.recording(jvm)["engine"] == "perf"
        assert run.cpu_seconds_agree(jvm)
        samples = run.stacks(jvm, "cpu", "samples")
        assert samples.of("Cpu.inJava") > 0.35 * samples.of("[truth-cpu-"), run.told(jvm)
