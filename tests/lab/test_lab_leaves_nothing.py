"""However a run ends, hosts are left with nothing of ours running, lying about or switched on."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from tests.burners.burner import Burner
from tests.lab import attach, procs
from tests.lab.conftest import JOB
from tests.lab.coordinator import ALL, Coordinator
from tests.lab.hosts import Lab
from tests.lab.witness import Witness, active_profilers

LEASE = 30
"""Seconds for which an agent keeps what its coordinator may come back for."""
RUN = ["-j", JOB, "-h", ALL]


def test_after_success(coordinator: Coordinator, job: dict[str, Burner], witness: Witness) -> None:
    result = coordinator.run("-t", "1", *RUN, "--user", "root")
    assert result.code == 0, str(result)
    witness.wait_until_clean()
    assert all(attach.profiler_libraries(burner.outer.pid) for burner in job.values())
    assert active_profilers(job.values()) == []


@pytest.mark.nightly
def test_after_the_coordinator_was_killed(
    coordinator: Coordinator, job: dict[str, Burner], witness: Witness
) -> None:
    """The JVMs are let go at once; what was recorded waits for a lease."""
    running = coordinator.start("-t", "60", *RUN, "--user", "prof", "--become", "sudo")
    running.wait_until_recording()
    procs.wait_for("profilers at work", lambda: len(active_profilers(job.values())) == len(job))
    running.signal(signal.SIGKILL)
    running.result()
    procs.wait_for("JVMs that are let go", lambda: not active_profilers(job.values()), LEASE / 2)
    witness.wait_until_clean(LEASE + procs.PATIENCE)


@pytest.fixture
def unplugged(lab: Lab) -> Iterator[str]:
    """A host whose cable is out."""
    lab.plug("host3", False)
    yield "host3"
    lab.plug("host3", True)


def test_a_host_that_does_not_answer_is_one_line_in_the_ledger(
    coordinator: Coordinator, job: dict[str, Burner], unplugged: str
) -> None:
    result = coordinator.run("-t", "1", *RUN, "--user", "root", "--timeout", "10")
    assert result.code == 3, str(result)
    assert [result.pids(name) for name in ("host1", "host2")] == [[job["host1"].pid], [job["host2"].pid]]
    (outcome,) = result.host(unplugged)["outcomes"]
    assert (outcome["status"], outcome["stage"], outcome["pid"]) == ("failed", "connect", None)
    assert outcome["reason"] and outcome["remedy"]
    assert result.run["coverage"]["hosts"] == {"all": 3, "reached": 2, "recorded": 2, "idle": 0, "failed": 1}
    assert unplugged in result.err
