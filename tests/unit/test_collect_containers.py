"""Hosts with known containers: what the agent is asked, and what is added to its answer."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hprofiler.collect.checking import find_only
from hprofiler.collect.containers import by_name, with_relatives
from hprofiler.model import MANAGER_PORT, OWNER, PROCESS, RUN_FOR, Process, Selector, Status

ALL = Selector("application_1_0001", "containers", {})
ONE, TWO = "container_1_0001_01_000001", "container_1_0001_01_000002"
KNOWN = {
    ONE: {"node": "n1", "executor": "7", "application": "application_1_0001", PROCESS: "executor 7"},
    TWO: {"node": "n1", "application": "application_1_0001"},
}
FINDS = f"""
hello()
request = read()
want = dict(type="find", selector=SELECTOR, containers=CONTAINERS, **NATIVE, **VOUCHED)
assert request == want, request
say("found", searched=9, processes=FOUND, ignored=[dict(pid=9, reason="Python worker", container={ONE!r})])
read()
"""


def process(pid, container, members="", **labels):
    return f"process({pid}, labels=dict(container={container!r}, **{labels!r}){members})"


@pytest.fixture
def look(fleet):
    """The result of a host with these containers, whose agent finds `found` and expects a selector."""

    def look(found, selector=ALL, expected=None, native=False, containers=KNOWN, vouched=None):
        names = {
            "SELECTOR": expected,
            "CONTAINERS": list(containers),
            "NATIVE": {"native": True} if native else {},
            "VOUCHED": vouched or {},
        }
        body = "".join(f"{name} = {value!r}\n" for name, value in names.items())
        body += f"FOUND = [{', '.join(found)}]\n{FINDS}"
        hosts = fleet(n1=body)
        (result,) = find_only([replace(hosts.hosts[0], containers=containers)], selector, hosts.reach)
        return result

    return look


def test_owners_of_containers_are_not_labels(look):
    containers = {ONE: {"node": "n1", RUN_FOR: "etl", MANAGER_PORT: "8042"}, TWO: {MANAGER_PORT: "8042"}}
    result = look(
        [process(5, ONE)],
        containers=containers,
        vouched={"owners": {ONE: "etl"}, "manager_port": 8042},
    )
    assert result.processes[0].labels == {"container": ONE, "node": "n1"}


def test_known_labels_of_a_container_win(look):
    result = look([process(5, ONE, node="selectors", task="3"), process(6, TWO)])
    five, six = result.processes
    assert (five.label, six.label) == ("executor 7", "M")
    assert five.labels == {
        "container": ONE, "node": "n1", "task": "3", "executor": "7", "application": "application_1_0001"
    }  # fmt: skip
    assert six.labels == {"container": TWO, "node": "n1", "application": "application_1_0001"}
    assert result.outcomes == () and result.ignored[0].reason == f"executor 7 ({ONE}): Python worker"


def test_containers_without_a_jvm_are_reported(look):
    result = look([process(6, TWO)])
    (line,) = result.outcomes
    assert (line.status, line.stage) == (Status.DEGRADED, "find")
    assert line.reason == f"no JVM of executor 7 ({ONE}) was found"


def test_a_driver_of_another_user_is_not_trusted(look):
    """A driver names the port where it listens: that port may belong to another user."""
    known = {**KNOWN, "spark_driver_40001": {OWNER: "etl", PROCESS: "driver"}}
    kim = process(6, "spark_driver_40001", ", user='kim', label='SparkSubmit'")
    result = look([process(5, ONE), process(7, TWO), kim], containers=known)
    assert [found.pid for found in result.processes] == [5, 7]
    (line,) = result.outcomes
    assert (line.status, line.pid, line.label) == (Status.DEGRADED, 6, "SparkSubmit")
    assert line.reason == "it runs as kim, but the application as etl: it may belong to another application"
    assert line.remedy == "if it belongs to this application, name it: -j pid:6 -h n1"


@pytest.mark.parametrize("labels", ["{}", "dict(container='container_1_0002_01_000001')"])
def test_processes_outside_the_containers_are_refused(look, labels):
    (line,) = look([f"process(5, labels={labels})"]).outcomes
    assert line.status is Status.FAILED and "outside the containers asked for" in line.reason


def test_processes_of_a_lost_host_are_counted_as_missing(fleet, tmp_path):
    """The second of two hosts cannot be reached."""
    body = """hello(); read(); say("found", searched=9, ignored=[],
processes=[process(7, labels={"container": "ONE"})]); prepared(7); recording(7)
outcome(7, "failed", "record", "gone"); say("done", left=[]); read()"""
    hosts = fleet(n1=body.replace("ONE", ONE), n2="sys.exit(9)")
    known = {f"container_1_0001_01_00000{n}": {PROCESS: f"executor {n}"} for n in range(2, 9)}
    hosts.hosts = [
        replace(host, containers=containers)
        for host, containers in zip(hosts.hosts, ({ONE: {}}, known), strict=False)
    ]
    result = hosts.run(tmp_path / "run", ALL)
    assert result.coverage.processes.found == result.coverage.recordings.expected == 8
    assert result.report.coverage == "0 of 8 processes on 0 of 2 hosts"
    (line,) = result.results[1].outcomes
    assert line.status is Status.FAILED
    names = ", ".join(f"executor {n}" for n in range(2, 7))
    assert line.reason.endswith(f"; {names} and 2 more are missing")


def test_workers_are_named_after_their_jvm() -> None:
    def made(pid: int, label: str, **labels: str) -> Process:
        return Process("n1", pid, 1, 0, "root", label, labels=labels)

    driver = made(1, "driver DailyReport", program="DailyReport")
    executor = made(2, "executor 12")
    workers = [made(3, "python3.11", parent="1"), made(4, "python of executor 12", parent="2")]
    workers.append(made(5, "python job.py", started="1"))
    named = with_relatives([driver, executor, *workers])
    of_driver = ["python of DailyReport", "python job.py of DailyReport"]
    assert [one.label for one in named[2:]] == [of_driver[0], "python of executor 12", of_driver[1]]
    chosen, _ = by_name(named, "driver daily")
    assert [one.pid for one in chosen] == [1, 3, 5]
    nothing, why = by_name(named, "Weekly")
    assert not nothing and why[0].reason == "its name is driver DailyReport" and len(why) == 5
    assert by_name(named, "") == (named, [])
