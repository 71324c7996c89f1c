"""What the target's manager says became of a host, or of a process, and what the visit saw of it."""

from __future__ import annotations

from dataclasses import replace

from hprofiler.collect import is_lost_with_host, with_causes
from hprofiler.model import Outcome, Status

LOST = Outcome("web", Status.FAILED, "record", "the agent ended with status 137", "try again")
PROCESS = Outcome("web", Status.FAILED, "record", f"lost with its host: {LOST.reason}", pid=1, label="Main")
DELETED = Outcome("web", Status.DEGRADED, "record", "the pod was deleted during the recording")


def test_the_cause_goes_before_the_effect() -> None:
    line, process = with_causes([LOST, PROCESS], [DELETED])
    assert line.reason == f"{DELETED.reason}; {LOST.reason}" and line.remedy == "try again"
    assert process.reason == f"lost with its host: {DELETED.reason}"
    assert is_lost_with_host(process) and not is_lost_with_host(line)


def test_what_explains_nothing_is_a_line_of_its_own() -> None:
    fine = replace(PROCESS, status=Status.OK, reason="")
    assert with_causes([fine], [DELETED]) == (fine, DELETED)
    shut = replace(LOST, stage="find")
    began = replace(DELETED, stage="find", reason="web-2 began during the recording")
    assert with_causes([shut], [DELETED, began]) == (shut, DELETED, began)
    assert with_causes([LOST], [began]) == (LOST, began)


def test_on_a_node_it_is_told_of_the_pods_own_process() -> None:
    own = replace(PROCESS, host="node1", label="web", reason="the process ended")
    other = replace(own, label="api", pid=2)
    cause = replace(DELETED, host="node1", reason=f"web: {DELETED.reason}", label="web")
    assert with_causes([own, other], [cause]) == (
        replace(own, reason=f"{DELETED.reason}; the process ended"),
        other,
    )
