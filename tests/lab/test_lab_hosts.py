"""A job over SSH on three hosts: shares, paths, cluster pictures, outcomes, users, leftovers."""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator

import pytest

from tests.burners.burner import HOT, PATHS, Burner
from tests.contract.agent_driver import good
from tests.lab import attach
from tests.lab.conftest import JOB, LOADS
from tests.lab.coordinator import ALL, Coordinator, Result
from tests.lab.hosts import Lab
from tests.lab.witness import Witness, active_profilers
from tests.viewer.block import carried

HOT_OF = {name: HOT[role] for name, (role, _) in LOADS.items()}
METHODS = [*HOT_OF.values(), "Burner.warm", "Burner.cool"]
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


def test_sample_counts_follow_cpu_time(main_run: Result) -> None:
    for name in LOADS:
        recording = main_run.host(name)["recordings"][0]
        samples = recording["samples"]
        whole = recording["cpu_seconds"] * 300
        # kernel code is not sampled if only user code may be
        least = 0.7 * whole if recording["source"] == "cpu-clock,alluser" else 0.98 * whole
        assert least - 2 <= samples["expected"] <= 1.02 * whole + 2
        assert samples["taken"] == main_run.stacks(f"hosts/{name}/cpu").total
        # the kernel's timer rate, mostly 250 a second, may limit an ordinary user's JVM
        assert 0.5 * samples["expected"] < samples["taken"] < 1.15 * samples["expected"]


def test_the_cluster_sum_and_mean(main_run: Result) -> None:
    """The sum counts every sample once; the mean gives every host the same weight."""
    stacks = [main_run.stacks(f"hosts/{name}/cpu") for name in LOADS]
    total, mean = main_run.stacks("cluster/cpu"), main_run.stacks("cluster/cpu-mean")
    assert stacks[0].total != stacks[2].total, "hosts too much alike to tell a sum from a mean"
    assert total.total == sum(host.total for host in stacks)
    assert mean.total == pytest.approx(total.total / len(stacks), abs=1)
    for method in METHODS:
        assert total.count(method) == sum(host.count(method) for host in stacks)
        assert mean.share(method) == pytest.approx(sum(h.share(method) for h in stacks) / len(stacks), abs=1)


def test_the_run_folder_and_its_page(main_run: Result, job: Job) -> None:
    assert main_run.folder
    for place in ["cluster/cpu", "cluster/cpu-mean", *(f"hosts/{name}/cpu" for name in LOADS)]:
        assert "hotAlpha" in (main_run.folder / f"{place}.svg").read_text() or "cluster" not in place
        assert gzip.decompress((main_run.folder / f"{place}.pb.gz").read_bytes())
    for name, burner in job.items():
        own = main_run.folder / "hosts" / name / str(burner.pid) / "cpu.pb.gz"
        assert gzip.decompress(own.read_bytes())
    page = main_run.folder / "report.html"
    assert not re.search(r"""(src|href)=["']?(https?:)?//""", page.read_text())
    shown = {frame for column in carried(page).columns for stack in column for frame in stack}
    assert shown >= set(HOT_OF.values())


def test_run_json_has_coverage_and_circumstances(main_run: Result) -> None:
    run = main_run.run
    assert run["coverage"]["processes"] == {"found": 3, "recorded": 3, "short": 0}
    assert run["coverage"]["hosts"] == {"all": 3, "reached": 3, "recorded": 3, "idle": 0, "failed": 0}
    assert run["sampling"]["frequency"] == 300 and "-j" in run["command"]
    for name in LOADS:
        facts = main_run.host(name)["facts"]
        assert (facts["name"], facts["user"]) == (name, "root")


# Users


def test_a_user_with_sudo(coordinator: Coordinator, job: Job) -> None:
    result = coordinator.run("-f", "250", "-t", "3", *RUN, "--user", "prof", "--become", "sudo")
    assert result.code == 0, str(result)
    assert {name: result.pids(name) for name in job} == {name: [burner.pid] for name, burner in job.items()}
    assert active_profilers(job.values()) == []


def test_another_users_jvm_is_refused_with_a_remedy(coordinator: Coordinator, job: Job) -> None:
    result = coordinator.run("-t", "2", *RUN, "--user", "prof")
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


# Leftovers of runs, and hosts that do not answer


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


@pytest.fixture
def unplugged(lab: Lab) -> Iterator[str]:
    """A host without network."""
    lab.plug("host3", False)
    yield "host3"
    lab.plug("host3", True)


def test_a_host_that_does_not_answer_has_one_outcome(
    coordinator: Coordinator, job: Job, unplugged: str
) -> None:
    result = coordinator.run("-t", "1", *RUN, "--user", "root", "--timeout", "10")
    assert result.code == 3, str(result)
    assert [result.pids(name) for name in ("host1", "host2")] == [[job["host1"].pid], [job["host2"].pid]]
    (outcome,) = result.host(unplugged)["outcomes"]
    assert (outcome["status"], outcome["stage"], outcome["pid"]) == ("failed", "connect", None)
    assert outcome["reason"] and outcome["remedy"] and unplugged in result.err
    assert result.run["coverage"]["hosts"] == {"all": 3, "reached": 2, "recorded": 2, "idle": 0, "failed": 1}
