"""However a run ends, hosts are left with nothing of ours running, lying about or switched on."""

from __future__ import annotations

import re
import signal
from typing import Dict, Iterator, List, Tuple

import pytest

from tests.burners.burner import HOT, Burner
from tests.lab import attach, procs
from tests.lab.conftest import JOB
from tests.lab.coordinator import ALL, Coordinator
from tests.lab.hosts import Lab
from tests.lab.witness import Witness, active_profilers

ROOT = ["--user", "root"]
LONG = ["-t", "60", "-j", JOB, "-h", ALL, *ROOT]
"""A run that cannot end by itself while a test looks."""
AGENT = re.compile(r"^\S*/agent-[0-9a-f]{64}\b")


@pytest.fixture
def cable(lab: Lab) -> Iterator[str]:
    """A host whose cable the test pulls; put back afterwards, and what hangs on the dead connection ended."""
    host = lab.hosts["host3"]
    before = {process.pid for process in host.processes()}
    yield host.name
    lab.plug(host.name, True)
    for process in host.processes():
        identity = procs.Identity.of(process.pid)
        if identity and process.pid not in before and process.command.startswith("sshd"):
            identity.kill()


def profiled(job: Dict[str, Burner]) -> bool:
    """Whether every JVM of the job has an active profiler: proof that there is one to stop."""
    return len(active_profilers(job.values())) == len(job)


def test_after_success(coordinator: Coordinator, job: Dict[str, Burner], witness: Witness) -> None:
    result = coordinator.run("-t", "2", "-j", JOB, "-h", ALL, *ROOT)
    assert result.code == 0, str(result)
    witness.wait_until_clean()
    assert all(attach.profiler_libraries(burner.outer.pid) for burner in job.values())
    assert active_profilers(job.values()) == []


def test_ctrl_c_keeps_and_reports_what_was_recorded(
    coordinator: Coordinator, job: Dict[str, Burner], witness: Witness
) -> None:
    running = coordinator.start("-f", "200", *LONG)
    running.wait_until_recording()
    before = job["host1"].counters()
    procs.wait_for(
        lambda: (job["host1"].counters() - before).nanos > 1e9, procs.PATIENCE, "CPU time while recorded"
    )
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


def test_ctrl_c_before_anything_was_recorded(
    coordinator: Coordinator, job: Dict[str, Burner], witness: Witness
) -> None:
    running = coordinator.start(*LONG)
    procs.wait_for(witness.leftovers, procs.PATIENCE, "a connection to a host")
    running.signal(signal.SIGINT)
    result = running.result()
    assert result.code == 130, str(result)
    assert "Traceback" not in result.err
    witness.wait_until_clean()
    assert active_profilers(job.values()) == []


SUDO = ("prof", "--become", "sudo")
ENDS = [
    pytest.param(signal.SIGKILL, ("root",), id="kill -9"),
    pytest.param(signal.SIGKILL, SUDO, id="kill -9, agent through sudo"),
    pytest.param(signal.SIGTERM, ("root",), id="SIGTERM"),
    pytest.param(signal.SIGHUP, ("root",), id="SIGHUP"),
]


@pytest.mark.parametrize(("number", "user"), ENDS)
def test_after_the_coordinator_was_killed(
    coordinator: Coordinator,
    job: Dict[str, Burner],
    witness: Witness,
    number: signal.Signals,
    user: Tuple[str, ...],
) -> None:
    running = coordinator.start("-t", "60", "-j", JOB, "-h", ALL, "--user", *user)
    running.wait_until_recording()
    procs.wait_for(lambda: profiled(job), procs.PATIENCE, "profilers at work")
    running.signal(number)
    running.result()
    witness.wait_until_clean()
    assert active_profilers(job.values()) == []


def test_after_the_connection_dropped(
    lab: Lab, coordinator: Coordinator, job: Dict[str, Burner], witness: Witness, cable: str
) -> None:
    running = coordinator.start("-t", "60", "-j", JOB, "-h", ALL, *ROOT, "--timeout", "5")
    running.wait_until_recording()
    procs.wait_for(lambda: profiled(job), procs.PATIENCE, "profilers at work")
    lab.plug(cable, False)
    procs.wait_for(lambda: not profiled({cable: job[cable]}), 50, "the lease of the cut-off host to end")

    def left() -> List[str]:
        return [
            line for line in witness.leftovers() if line.startswith(cable) and "command='sshd" not in line
        ]

    procs.wait_for(lambda: not left(), procs.PATIENCE, "a clean host at the end of its lease")
    assert profiled({"host1": job["host1"]}), "the other hosts go on"
    running.signal(signal.SIGINT)
    result = running.result()
    assert result.code == 130, str(result)
    assert result.pids("host1") == [job["host1"].pid]
    assert result.outcomes(cable, "failed")


def kill_agent(lab: Lab, name: str) -> None:
    """kill -9 of the agent on a host: it cannot tidy up."""
    agents = [process for process in lab.hosts[name].processes() if AGENT.search(process.command)]
    assert agents, lab.hosts[name].processes()
    for process in agents:
        identity = procs.Identity.of(process.pid)
        if identity:
            identity.kill()


def test_an_agent_that_is_killed_is_told_and_its_profiler_ends_by_itself(
    lab: Lab, coordinator: Coordinator, job: Dict[str, Burner], witness: Witness
) -> None:
    running = coordinator.start("-t", "2", "-j", JOB, "-h", ALL, *ROOT)
    running.wait_until_recording()
    kill_agent(lab, "host2")
    result = running.result()
    assert result.code == 3, str(result)
    assert result.outcomes("host2", "failed")
    assert result.pids("host1") == [job["host1"].pid]
    procs.wait_for(
        lambda: not active_profilers(job.values()), procs.PATIENCE, "the profiler's own time limit"
    )
    assert coordinator.run("cleanup", "--yes", "-h", ALL, *ROOT).code == 0
    witness.wait_until_clean()


def test_cleanup_stops_a_profiler_whose_agent_was_killed(
    lab: Lab, coordinator: Coordinator, job: Dict[str, Burner], witness: Witness
) -> None:
    running = coordinator.start(*LONG)
    running.wait_until_recording()
    procs.wait_for(lambda: profiled(job), procs.PATIENCE, "profilers at work")
    for name in job:
        kill_agent(lab, name)
    assert running.result().code == 4
    assert profiled(job)
    result = coordinator.run("cleanup", "--yes", "-h", ALL, *ROOT)
    assert result.code == 0, str(result)
    assert active_profilers(job.values()) == []
    witness.wait_until_clean()


def test_cleanup_takes_the_private_folder_too(
    lab: Lab, coordinator: Coordinator, job: Dict[str, Burner], witness: Witness
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
