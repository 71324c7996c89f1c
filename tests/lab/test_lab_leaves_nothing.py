"""However a run ends, hosts are left with nothing of ours running, lying about or switched on."""

from __future__ import annotations

import re
import signal

import pytest

from tests.burners.burner import HOT, Burner
from tests.lab import attach, procs
from tests.lab.conftest import JOB
from tests.lab.coordinator import ALL, Coordinator
from tests.lab.hosts import Lab
from tests.lab.witness import Witness, active_profilers

ROOT = ["--user", "root"]
LEASE = 30
"""Seconds for which an agent keeps what its coordinator may come back for."""
LONG = ["-t", "60", "-j", JOB, "-h", ALL, *ROOT]
"""A run that cannot end by itself while a test looks."""
AGENT = re.compile(r"^\S*/agent-[0-9a-f]{64}\b")


def profiled(job: dict[str, Burner]) -> bool:
    """Whether every JVM of the job has an active profiler: proof that there is one to stop."""
    return len(active_profilers(job.values())) == len(job)


def test_after_success(coordinator: Coordinator, job: dict[str, Burner], witness: Witness) -> None:
    result = coordinator.run("-t", "2", "-j", JOB, "-h", ALL, *ROOT)
    assert result.code == 0, str(result)
    witness.wait_until_clean()
    assert all(attach.profiler_libraries(burner.outer.pid) for burner in job.values())
    assert active_profilers(job.values()) == []


def test_ctrl_c_keeps_and_reports_what_was_recorded(
    coordinator: Coordinator, job: dict[str, Burner], witness: Witness
) -> None:
    running = coordinator.start("-f", "200", *LONG)
    running.wait_until_recording()
    before = job["host1"].counters()
    procs.wait_for("CPU time while recorded", lambda: (job["host1"].counters() - before).nanos > 1e9)
    running.signal(signal.SIGINT)
    result = running.result()
    assert result.code == 130, str(result)
    assert "Traceback" not in result.err
    assert result.run["interrupted"] is True
    assert {name: result.pids(name) for name in job} == {name: [burner.pid] for name, burner in job.items()}
    stacks = result.stacks("hosts/host1/cpu")
    assert stacks.share(HOT["alpha"]) == pytest.approx(70, abs=stacks.tolerance())
    assert result.folder
    assert (result.folder / "report.html").stat().st_size > 1000
    witness.wait_until_clean()
    assert active_profilers(job.values()) == []


def test_after_the_coordinator_was_killed(
    coordinator: Coordinator, job: dict[str, Burner], witness: Witness
) -> None:
    """The JVMs are let go at once; what was recorded waits for a lease."""
    running = coordinator.start("-t", "60", "-j", JOB, "-h", ALL, "--user", "prof", "--become", "sudo")
    running.wait_until_recording()
    procs.wait_for("profilers at work", lambda: profiled(job))
    running.signal(signal.SIGKILL)
    running.result()
    procs.wait_for("JVMs that are let go", lambda: not active_profilers(job.values()), LEASE / 2)
    witness.wait_until_clean(LEASE + procs.PATIENCE)


@pytest.mark.nightly
def test_cleanup_stops_a_profiler_whose_agent_was_killed(
    lab: Lab, coordinator: Coordinator, job: dict[str, Burner], witness: Witness
) -> None:
    running = coordinator.start(*LONG)
    running.wait_until_recording()
    procs.wait_for("profilers at work", lambda: profiled(job))
    running.signal(signal.SIGSTOP)  # it would come back, and clean
    for name in job:
        (agent,) = [process for process in lab.hosts[name].processes() if AGENT.search(process.command)]
        identity = procs.Identity.of(agent.pid)
        assert identity
        identity.kill()
    running.signal(signal.SIGKILL)
    running.result()
    assert profiled(job)
    result = coordinator.run("cleanup", "--yes", "-h", ALL, *ROOT)
    assert result.code == 0, str(result)
    assert active_profilers(job.values()) == []
    witness.wait_until_clean()


@pytest.mark.nightly
def test_cleanup_takes_the_private_folder_too(
    lab: Lab, coordinator: Coordinator, job: dict[str, Burner], witness: Witness
) -> None:
    assert coordinator.run("-t", "1", "-j", JOB, "-h", ALL, *ROOT).code == 0
    folders = [lab.hosts[name].path("/tmp/.hprofiler-0") for name in job]
    asked = coordinator.run("cleanup", "-h", ALL, *ROOT)
    assert asked.code == 3 and all(f"{name}: remove /tmp/.hprofiler-0" in asked.out for name in job), str(
        asked
    )
    assert all(folder.is_dir() for folder in folders), "nobody said yes"
    result = coordinator.run("cleanup", "--yes", "-h", ALL, *ROOT)
    assert result.code == 0, str(result)
    again = coordinator.run("cleanup", "-h", ALL, *ROOT)
    assert again.code == 0 and "nothing is left" in again.out, str(again)
    assert not [folder for folder in folders if folder.exists()]
    witness.wait_until_clean()
