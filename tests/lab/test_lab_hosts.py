"""A job over SSH on three hosts: shares, paths, cluster pictures, outcomes, users, leftovers."""

from __future__ import annotations

import re

import pytest

from tests.burners.burner import HOT, PATHS, Burner
from tests.contract.agent_driver import good
from tests.lab import attach
from tests.lab.conftest import JOB, LOADS
from tests.lab.coordinator import ALL, Coordinator, Result
from tests.lab.hosts import Lab
from tests.lab.witness import Witness, active_profilers

HOT_OF = {name: HOT[role] for name, (role, _) in LOADS.items()}
RUN = ["-j", JOB, "-h", ALL]
Job = dict[str, Burner]


def test_each_host_shows_its_own_methods_with_the_shares_they_burn(main_run: Result, job: Job) -> None:
    assert main_run.code == 0, str(main_run)
    for name, burner in job.items():
        assert main_run.pids(name) == [burner.pid] and good(main_run.line(name, burner.pid))
        stacks = main_run.stacks(f"hosts/{name}/cpu")
        expected = {HOT_OF[name]: 70, "Burner.warm": 20, "Burner.cool": 10}
        shares = {method: stacks.share(method) for method in expected}
        assert shares == pytest.approx(expected, abs=stacks.tolerance())
        assert {method for method in HOT_OF.values() if stacks.count(method)} == {HOT_OF[name]}
    assert all(main_run.stacks("hosts/host1/cpu").path_share(PATHS[method]) > 95 for method in PATHS)


# Users


def test_a_user_with_sudo(coordinator: Coordinator, job: Job) -> None:
    result = coordinator.run("-t", "1", *RUN, "--user", "prof", "--become", "sudo")
    assert result.code == 0, str(result)
    assert {name: result.pids(name) for name in job} == {name: [burner.pid] for name, burner in job.items()}
    assert active_profilers(job.values()) == []


def test_another_users_jvm_is_refused_with_a_remedy(coordinator: Coordinator, job: Job) -> None:
    result = coordinator.run("-t", "1", *RUN, "--user", "prof")
    assert result.code == 4, str(result)
    for name, burner in job.items():
        outcome = result.line(name, burner.pid)
        assert outcome["status"] == "failed" and re.search("yarn|2001", outcome["reason"])
        assert "sudo" in outcome["remedy"]


def test_the_jvms_user_and_a_coordinator_without_rights(lab: Lab, coordinator: Coordinator, job: Job) -> None:
    """Only the user's private folder stays on the host."""
    result = coordinator.run("-t", "1", "-j", JOB, "-h", "host1", "--user", "yarn", uid=65534)
    assert result.code == 0 and result.pids("host1") == [job["host1"].pid], str(result)
    folder = lab.hosts["host1"].path("/tmp/.hprofiler-2001")
    assert (folder.stat().st_uid, folder.stat().st_mode & 0o777) == (2001, 0o700)
    assert coordinator.run("cleanup", "--yes", "-h", "host1", "--user", "yarn").code == 0
    assert not folder.exists()


@pytest.mark.nightly
@pytest.mark.parametrize(("user", "code"), [("prof", 0), ("root", 4)])
def test_a_pipe_runs_as_the_user_who_connected(
    coordinator: Coordinator, job: Job, user: str, code: int
) -> None:
    pipe = f'grep {JOB} | if [ "$(whoami)" = {user} ]; then cat; fi'
    result = coordinator.run("-t", "1", "-j", pipe, "-h", "host1", "--user", "prof", "--become", "sudo")
    assert result.code == code, str(result)
    assert result.pids("host1") == ([job["host1"].pid] if code == 0 else [])


# Leftovers of runs


def test_the_second_run_pushes_nothing_and_leaves_nothing(
    coordinator: Coordinator, job: Job, witness: Witness
) -> None:
    assert coordinator.run("cleanup", "--yes", "-h", ALL, "--user", "root").code == 0
    sent = []
    for _ in range(2):
        result = coordinator.run("-t", "1", *RUN, "--user", "root")
        assert result.code == 0, str(result)
        sent.append([result.host(name)["bytes_sent"] for name in LOADS])
    assert min(sent[0]) > 500_000, "the first run pushes agent and library"
    assert max(sent[1]) < 50_000
    witness.wait_until_clean()
    assert all(attach.profiler_libraries(burner.outer.pid) for burner in job.values())
    assert active_profilers(job.values()) == []
