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
        "re:Burner --role (alpha|beta|gamma)",
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


def test_no_match_anywhere_says_what_was_searched_and_where(coordinator: Coordinator) -> None:
    result = coordinator.run("-t", "1", "-j", "no-such-job-anywhere", "-h", ALL, *ROOT)
    assert result.code == 4, str(result)
    assert "no-such-job-anywhere" in result.err
    assert all(name in result.err for name in ALL.split(","))
    for name in ALL.split(","):
        (outcome,) = result.host(name)["outcomes"]
        assert outcome["status"] == "idle"
        assert re.search(r"\d+ process(es)? searched", outcome["reason"])
