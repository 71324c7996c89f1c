"""Several events in one run, and processes that are no JVMs: from the command line to the run folder."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

import pytest

from tests.burners.counting import Truth
from tests.lab.conftest import StartNative
from tests.lab.coordinator import Coordinator, Result
from tests.lab.hosts import Host, Lab

MARK = "three-events-job"
EVENTS = ["cpu", "alloc", "lock"]
HOSTS = ["host1", "host2"]


def _truth(host: Host) -> Truth:
    def wrap(argv: Sequence[str]) -> list[str]:
        return host.command(argv, "yarn")

    return Truth("cpu=0.2", "alloc=20", "lock=2", wrap=wrap, extra=[MARK])


@pytest.fixture(scope="module")
def jvms(lab: Lab) -> Iterator[list[Truth]]:
    """On two hosts a JVM that burns CPU time, allocates, and waits for locks."""
    made = [_truth(lab.hosts[name]) for name in HOSTS]
    yield made
    for jvm in made:
        jvm.kill()


@pytest.fixture(scope="module")
def run(coordinator: Coordinator, jvms: list[Truth]) -> Result:
    asked = ["-f", "300", "-t", "5", "-e", ",".join(EVENTS), "--threads", "--keep-raw"]
    where = ["-j", MARK, "-h", ",".join(HOSTS), "--user", "root"]
    return coordinator.run(*asked, *where)


def test_every_event_of_every_process_is_recorded_at_once(run: Result, jvms: list[Truth]) -> None:
    assert run.code == 0, str(run)
    assert run.run["coverage"]["recordings"] == {"expected": 6, "made": 6}
    for name in HOSTS:
        recordings = run.host(name)["recordings"]
        assert [one["event"] for one in recordings] == EVENTS
        assert {one["engine"] for one in recordings} == {"async-profiler"}
        assert all(sum(one["timeline"]) == one["samples"]["taken"] > 0 for one in recordings), recordings
        assert recordings[1]["interval"] >= 1 << 19
        assert "allocation interval" in run.line(name, recordings[0]["process"]["pid"])["reason"]


def test_totals_are_the_same_wherever_they_are_told(run: Result) -> None:
    shown = {"cpu": "samples", "alloc": "alloc_space", "lock": "delay"}
    for event, value in shown.items():
        recordings = [one for name in HOSTS for one in run.host(name)["recordings"] if one["event"] == event]
        assert run.stacks(f"cluster/{event}").total == sum(one["totals"][value] for one in recordings)
    for words in ("cpu: ", " of CPU time", "alloc: ", "iB allocated", "lock: ", " waited"):
        assert words in run.out, str(run)


def test_each_event_shows_its_own_methods(run: Result) -> None:
    for event, word in (("cpu", "truth/Cpu"), ("alloc", "truth/Alloc"), ("lock", "truth/Locks")):
        stacks = run.stacks(f"cluster/{event}")
        through = sum(count for frames, count in stacks.stacks if any(word in frame for frame in frames))
        assert through > 0.5 * stacks.total, (event, stacks.stacks[:5])


def test_threads_are_in_the_pictures_only_when_asked_for(run: Result, coordinator: Coordinator) -> None:
    assert all(frames[0].startswith("[") for frames, _ in run.stacks("cluster/cpu").stacks)
    again = coordinator.run("report", str(run.folder))
    assert again.code == 0, str(again)
    without = run.stacks("cluster/cpu")
    assert not any(frames[0].startswith("[") for frames, _ in without.stacks)
    assert without.total == sum(run.host(name)["recordings"][0]["totals"]["samples"] for name in HOSTS)
    assert coordinator.run("report", "--threads", str(run.folder)).code == 0


def test_a_native_daemon_is_found_by_its_program_and_recorded_with_perf(
    lab: Lab, coordinator: Coordinator, native: StartNative
) -> None:
    daemon = native(lab.hosts["host1"], "impalad")
    listed = coordinator.run("ps", "--json", "-j", "impala-daemon", "-h", "host1", "--user", "root")
    (process,) = json.loads(listed.out)[0]["processes"]
    assert (process["pid"], process["label"], process["jvm_version"]) == (daemon.pid, "impalad", "")
    result = coordinator.run("-f", "300", "-t", "4", "-j", "impala-daemon", "-h", "host1", "--user", "root")
    assert result.code == 0, str(result)
    (recording,) = result.host("host1")["recordings"]
    assert recording["engine"] == "perf"
    stacks = result.stacks("hosts/host1/cpu")
    assert stacks.share("hot") == pytest.approx(50, abs=stacks.tolerance())
