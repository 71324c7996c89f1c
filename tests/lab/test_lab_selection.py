"""What -j finds on real hosts: names, pipes, text, pids; wrappers and the ssh session never match."""

from __future__ import annotations

import json
import re

import pytest

from tests.burners.burner import Burner
from tests.lab.conftest import JOB, Burn
from tests.lab.coordinator import ALL, Coordinator, Result
from tests.lab.hosts import Lab

ROOT = ["--user", "root"]


def found(result: Result) -> dict[str, list[int]]:
    """Pids by host as `hprofiler ps --json` lists them."""
    listed = json.loads(result.out)
    return {host["host"]: sorted(process["pid"] for process in host["processes"]) for host in listed}


@pytest.mark.parametrize(
    "selector",
    [
        JOB,
        f"text:{JOB}",
        "re:Burner --role (alpha|beta|gamma)",
        f"grep {JOB} | grep -v root",
        f"grep {JOB} | grep -v grep | awk '{{print $0}}'",
        "java",
    ],
)
def test_every_kind_of_selector_finds_the_job(
    coordinator: Coordinator, job: dict[str, Burner], selector: str
) -> None:
    result = coordinator.run("ps", "-j", selector, "-h", ALL, *ROOT, "--json")
    assert result.code == 0, str(result)
    assert found(result) == {name: [burner.pid] for name, burner in job.items()}


def test_pids_are_those_of_the_host(coordinator: Coordinator, job: dict[str, Burner]) -> None:
    result = coordinator.run("-t", "1", "-j", f"pid:{job['host2'].pid}", "-h", "host2", *ROOT)
    assert result.code == 0, str(result)
    assert result.pids("host2") == [job["host2"].pid]


@pytest.mark.nightly
@pytest.mark.parametrize(("user", "code"), [("prof", 0), ("root", 4)])
def test_the_pipe_runs_as_the_user_who_connected(
    coordinator: Coordinator, job: dict[str, Burner], user: str, code: int
) -> None:
    pipe = f'grep {JOB} | if [ "$(whoami)" = {user} ]; then cat; fi'
    result = coordinator.run("-t", "1", "-j", pipe, "-h", "host1", "--user", "prof", "--become", "sudo")
    assert result.code == code, str(result)
    assert result.pids("host1") == ([job["host1"].pid] if code == 0 else [])


def test_hosts_without_a_match_are_idle_not_failed(coordinator: Coordinator, lab: Lab, burn: Burn) -> None:
    burner = burn(lab.hosts["host2"], role="beta", load=0.3, extra=["lonely"])
    result = coordinator.run("-t", "2", "-j", "lonely", "-h", ALL, *ROOT)
    assert result.code == 0, str(result)
    assert result.pids("host2") == [burner.pid]
    for name in ("host1", "host3"):
        assert [outcome["status"] for outcome in result.host(name)["outcomes"]] == ["idle"]
    assert result.run["coverage"]["hosts"]["idle"] == 2
    assert result.run["coverage"]["hosts"]["failed"] == 0


@pytest.mark.nightly
def test_a_jvm_that_does_nothing_is_recorded_without_samples(
    coordinator: Coordinator, lab: Lab, burn: Burn
) -> None:
    burner = burn(lab.hosts["host3"], load=0, extra=["sleeper"])
    result = coordinator.run("-t", "2", "-j", "sleeper", "-h", "host3", *ROOT)
    assert result.code in (0, 4), str(result)
    assert "Traceback" not in result.said
    assert str(burner.pid) in json.dumps(result.run)


def test_no_match_anywhere_says_what_was_searched_and_where(coordinator: Coordinator) -> None:
    result = coordinator.run("-t", "1", "-j", "no-such-job-anywhere", "-h", ALL, *ROOT)
    assert result.code == 4, str(result)
    assert "no-such-job-anywhere" in result.err
    assert all(name in result.err for name in ALL.split(","))
    for name in ALL.split(","):
        (outcome,) = result.host(name)["outcomes"]
        assert outcome["status"] == "idle"
        assert re.search(r"\d+ process(es)? searched", outcome["reason"])


@pytest.mark.nightly
def test_several_jvms_on_a_host_are_told_apart(coordinator: Coordinator, lab: Lab, burn: Burn) -> None:
    burners = [burn(lab.hosts["host2"], role=role, load=0.2, extra=["twins"]) for role in ("alpha", "alloc")]
    result = coordinator.run("-t", "3", "-f", "200", "-j", "twins", "-h", "host2", *ROOT)
    assert result.code == 0, str(result)
    assert result.pids("host2") == sorted(burner.pid for burner in burners)
    stacks = result.stacks("hosts/host2/cpu")
    assert stacks.count("Burner.hotAlpha")
    assert stacks.count("Burner.hotAlloc")
