"""Hosts of which containers are known: what the agent is asked, what is added to its answer, what is not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hprofiler.collect import find_only
from hprofiler.model import PROCESS, Selector, Status
from tests.unit.stand_in import Fleet, StandIns

ALL = Selector("application_1_0001", "containers", {})
ONE, TWO = "container_1_0001_01_000001", "container_1_0001_01_000002"
KNOWN = {
    ONE: {"node": "n1", "executor": "7", "application": "application_1_0001", PROCESS: "executor 7"},
    TWO: {"node": "n1", "application": "application_1_0001"},
}
FINDS = """
hello()
request = read()
assert request == dict(type="find", selector=SELECTOR, containers=CONTAINERS, native=NATIVE), request
say("found", searched=9, processes=FOUND, ignored=[dict(pid=9, reason="Python worker")])
read()
"""


def process(pid, container, **labels):
    return f"process({pid}, labels=dict(container={container!r}, **{labels!r}))"


@pytest.fixture
def look(tmp_path):
    """What comes of a host with these containers, and an agent that finds `found` and expects a selector."""
    stand_ins = StandIns(tmp_path)

    def look(found, selector=ALL, expected=None, native=False, containers=KNOWN):
        names = {"SELECTOR": expected, "CONTAINERS": list(containers), "NATIVE": native}
        body = "".join(f"{name} = {value!r}\n" for name, value in names.items())
        body += f"FOUND = [{', '.join(found)}]\n{FINDS}"
        fleet = Fleet(stand_ins, 10.0, {"n1": body})
        (result,) = find_only([replace(fleet.hosts[0], containers=containers)], selector, fleet.reach)
        return result

    yield look
    stand_ins.clean()


def test_what_is_known_of_a_container_is_added_and_wins(look):
    result = look([process(5, ONE, node="selectors", task="3"), process(6, TWO)])
    five, six = result.processes
    assert (five.label, six.label) == ("executor 7", "M")
    assert five.labels == {
        "container": ONE, "node": "n1", "task": "3", "executor": "7", "application": "application_1_0001"
    }  # fmt: skip
    assert six.labels == {"container": TWO, "node": "n1", "application": "application_1_0001"}
    assert result.outcomes == () and result.ignored[0].reason == "Python worker"


def test_a_selector_narrows(look):
    query = {"kind": "text", "text": "Executor"}
    result = look([process(5, ONE, executor="1")], Selector("Executor", "text", query, True), query, True)
    assert [found.labels["executor"] for found in result.processes] == ["7"]
    assert result.outcomes == ()  # nothing is missing: the selector may mean less than the container holds


def test_containers_without_a_jvm_are_told(look):
    result = look([process(6, TWO)])
    (line,) = result.outcomes
    assert (line.status, line.stage) == (Status.DEGRADED, "find")
    assert line.reason == f"no JVM of executor 7 ({ONE}) was found"


def test_nothing_at_all_is_idle(look):
    (line,) = look([]).outcomes
    assert line.status is Status.IDLE
    assert line.reason.startswith(
        "no process matches in any of its 2 containers (9 searched; left out: 9 (Python worker)"
    )


@pytest.mark.parametrize("labels", ["{}", "dict(container='container_1_0002_01_000001')"])
def test_an_agent_that_finds_others(look, labels):
    (line,) = look([f"process(5, labels={labels})"]).outcomes
    assert line.status is Status.FAILED and "no container that it was asked for" in line.reason
