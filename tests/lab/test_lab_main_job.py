"""The main job over ssh on three hosts: shares, paths, cluster pictures, ledger, users, second run."""

from __future__ import annotations

import gzip
import re

import pytest

from tests.burners.burner import HOT, PATHS, Burner
from tests.contract.agent_driver import good
from tests.lab.conftest import JOB, LOADS
from tests.lab.coordinator import ALL, Coordinator, Result
from tests.lab.hosts import Lab
from tests.lab.witness import active_profilers
from tests.viewer.block import carried

CONNECTIONS = {
    "root": ["--user", "root"],
    "yarn": ["--user", "yarn"],
    "prof with sudo": ["--user", "prof", "--become", "sudo"],
}
HOT_OF = {name: HOT[role] for name, (role, _) in LOADS.items()}


def test_everything_is_recorded(main_run: Result, job: dict[str, Burner]) -> None:
    assert main_run.code == 0, str(main_run)
    for name, burner in job.items():
        assert main_run.pids(name) == [burner.pid], str(main_run)
        assert good(main_run.line(name, burner.pid))


def test_each_host_shows_its_own_methods_with_the_shares_they_burn(main_run: Result) -> None:
    for name in LOADS:
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
        # what the kernel does for a JVM is not sampled where only user code may be
        least = 0.7 * whole if recording["source"] == "cpu-clock,alluser" else 0.98 * whole
        assert least - 2 <= samples["expected"] <= 1.02 * whole + 2
        assert samples["taken"] == main_run.stacks(f"hosts/{name}/cpu").total
        # a JVM of an ordinary user may be held to the kernel's timer rate, 250 a second on most
        assert 0.5 * samples["expected"] < samples["taken"] < 1.15 * samples["expected"]


def test_the_cluster_sum_counts_every_sample_once(main_run: Result) -> None:
    hosts = [main_run.stacks(f"hosts/{name}/cpu") for name in LOADS]
    total = main_run.stacks("cluster/cpu")
    assert total.total == sum(host.total for host in hosts)
    for method in [*HOT_OF.values(), "Burner.warm", "Burner.cool"]:
        assert total.count(method) == sum(host.count(method) for host in hosts)
    assert hosts[0].total != hosts[2].total, "hosts too much alike to tell a sum from a mean"


def test_the_cluster_mean_gives_every_host_the_same_weight(main_run: Result) -> None:
    hosts = [main_run.stacks(f"hosts/{name}/cpu") for name in LOADS]
    mean = main_run.stacks("cluster/cpu-mean")
    for method in [*HOT_OF.values(), "Burner.warm", "Burner.cool"]:
        fair = sum(host.share(method) for host in hosts) / len(hosts)
        assert mean.share(method) == pytest.approx(fair, abs=1)
    assert mean.total == pytest.approx(sum(host.total for host in hosts) / len(hosts), abs=1)


def test_the_run_folder_has_every_file(main_run: Result, job: dict[str, Burner]) -> None:
    assert main_run.folder
    places = ["cluster/cpu", "cluster/cpu-mean", *(f"hosts/{name}/cpu" for name in LOADS)]
    for place in places:
        assert "hotAlpha" in (main_run.folder / f"{place}.svg").read_text() or "cluster" not in place
        assert gzip.decompress((main_run.folder / f"{place}.pb.gz").read_bytes())
    for name, burner in job.items():
        assert gzip.decompress(
            (main_run.folder / "hosts" / name / str(burner.pid) / "cpu.pb.gz").read_bytes()
        )


def test_the_page_is_whole_in_itself(main_run: Result) -> None:
    assert main_run.folder
    page = (main_run.folder / "report.html").read_text()
    assert not re.search(r"""(src|href)=["']?(https?:)?//""", page)
    assert all(name in page for name in LOADS)
    columns = carried(main_run.folder / "report.html").columns
    leaves = {stack[-1] for column in columns for stack in column if stack}
    assert leaves >= set(HOT_OF.values())


def test_run_json_tells_coverage_and_circumstances(main_run: Result) -> None:
    run = main_run.run
    assert run["coverage"]["processes"] == {"found": 3, "recorded": 3, "short": 0}
    assert run["coverage"]["hosts"] == {"all": 3, "reached": 3, "recorded": 3, "idle": 0, "failed": 0}
    assert run["sampling"]["frequency"] == 300
    assert "-j" in run["command"]
    for name in LOADS:
        facts = main_run.host(name)["facts"]
        assert (facts["name"], facts["user"]) == (name, "root")


@pytest.mark.parametrize("user", CONNECTIONS)
def test_every_way_to_be_allowed_works(coordinator: Coordinator, job: dict[str, Burner], user: str) -> None:
    result = coordinator.run("-f", "250", "-t", "3", "-j", JOB, "-h", ALL, *CONNECTIONS[user])
    assert result.code == 0, str(result)
    assert {name: result.pids(name) for name in job} == {name: [burner.pid] for name, burner in job.items()}
    assert result.stacks("hosts/host1/cpu").share(HOT_OF["host1"]) > 0
    assert active_profilers(job.values()) == []


def test_another_users_jvm_is_refused_with_the_way_out(
    coordinator: Coordinator, job: dict[str, Burner]
) -> None:
    result = coordinator.run("-t", "2", "-j", JOB, "-h", ALL, "--user", "prof")
    assert result.code == 4, str(result)
    for name, burner in job.items():
        outcome = result.line(name, burner.pid)
        assert outcome["status"] == "failed"
        assert re.search("yarn|2001", outcome["reason"])
        assert "sudo" in outcome["remedy"]


def test_the_coordinator_needs_no_privilege(coordinator: Coordinator, job: dict[str, Burner]) -> None:
    result = coordinator.run("-t", "2", "-j", JOB, "-h", "host1", "--user", "yarn", uid=65534)
    assert result.code == 0, str(result)
    assert result.pids("host1") == [job["host1"].pid]


def test_the_second_run_pushes_nothing(coordinator: Coordinator, job: dict[str, Burner]) -> None:
    assert coordinator.run("cleanup", "--yes", "-h", ALL, "--user", "root").code == 0
    sent = []
    for _ in range(2):
        result = coordinator.run("-t", "1", "-j", JOB, "-h", ALL, "--user", "root")
        assert result.code == 0, str(result)
        sent.append([result.host(name)["bytes_sent"] for name in LOADS])
    assert min(sent[0]) > 500_000, "the first run should push agent and library"
    assert max(sent[1]) < 50_000


def test_only_the_private_folder_stays(lab: Lab, coordinator: Coordinator, job: dict[str, Burner]) -> None:
    assert coordinator.run("-t", "1", "-j", JOB, "-h", "host1", "--user", "yarn").code == 0
    folder = lab.hosts["host1"].path("/tmp/.hprofiler-2001")
    status = folder.stat()
    assert (status.st_uid, status.st_mode & 0o777) == (2001, 0o700)
    assert coordinator.run("cleanup", "--yes", "-h", "host1", "--user", "yarn").code == 0
    assert not folder.exists()


def test_a_run_folder_is_kept_and_a_strangers_refused(
    coordinator: Coordinator, job: dict[str, Burner]
) -> None:
    base = ["-t", "1", "-j", JOB, "-h", "host1", "--user", "yarn"]
    output = coordinator.new_folder() / "out"
    first, second = (coordinator.run(*base, "-o", str(output)) for _ in range(2))
    assert (first.code, second.code) == (0, 0)
    assert (output.with_name("out-2") / "run.json").exists()
    precious = coordinator.new_folder()
    (precious / "thesis.tex").write_text("years of work")
    refused = coordinator.run(*base, "-o", str(precious))
    assert refused.code not in (0, 3), str(refused)
    assert [path.name for path in precious.iterdir()] == ["thesis.tex"]
    assert str(precious) in refused.err
