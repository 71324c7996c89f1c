"""What the target's manager says became of a host, or of a process, and what the visit saw of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hprofiler.collect import with_causes
from hprofiler.model import Note, Outcome, Status

LOST = Outcome("web", Status.FAILED, "record", "the agent ended with status 137", "try again")
WITH_IT = f"its host was lost: {LOST.reason}"
PROCESS = Outcome("web", Status.FAILED, "record", WITH_IT, pid=1, label="Main", lost=True)
DELETED = Outcome("web", Status.DEGRADED, "record", "the pod was deleted during the recording")


def explained(line: Outcome, said: str) -> Outcome:
    notes = (Note("", DELETED.reason), Note("", said))
    return replace(line, reason=f"{DELETED.reason}; {said}", notes=notes)


def test_the_cause_goes_before_the_effect() -> None:
    line, process = with_causes([LOST, PROCESS], [DELETED])
    assert line.reason == f"{DELETED.reason}; {LOST.reason}" and line.remedy == "try again"
    assert process.reason == f"its host was lost: {DELETED.reason}"
    assert process.lost and not line.lost


def test_a_lost_process_is_not_known_by_its_reason() -> None:
    """They may be the agent's."""
    own = replace(PROCESS, lost=False)
    (line,) = with_causes([own], [DELETED])
    assert line.reason == f"{DELETED.reason}; {own.reason}" and not line.lost


def test_what_explains_nothing_is_a_line_of_its_own() -> None:
    fine = replace(PROCESS, status=Status.OK, reason="")
    assert with_causes([fine], [DELETED]) == (fine, DELETED)
    began = replace(DELETED, stage="find", reason="web-2 started during the recording")
    for stage in ("connect", "push", "find", "prepare"):
        shut = replace(LOST, stage=stage)
        assert with_causes([shut], [DELETED, began]) == (shut, DELETED, began)
    assert with_causes([LOST], [began]) == (LOST, began)


def test_on_a_node_the_cause_goes_to_the_process_of_the_pod() -> None:
    own = replace(PROCESS, host="node1", label="web", lost=False, gone=True, reason="process 7 has ended")
    other = replace(own, label="api", pid=2)
    assert with_causes([own, other], [ON_NODE]) == (
        explained(own, "process 7 has ended"),
        other,
    )


ON_NODE = replace(
    DELETED, host="node1", reason=f"web: {DELETED.reason}", label="web", notes=(Note("", DELETED.reason),)
)


@pytest.mark.parametrize("gone", [True, False])
def test_on_a_node_only_an_end_is_explained(gone: bool) -> None:
    """Its words are not asked for it: they may be anything."""
    said = "no timers" if gone else "process 7 has ended"
    line = Outcome("node1", Status.DEGRADED, "record", said, pid=7, label="web", gone=gone)
    told = with_causes([line], [ON_NODE])
    assert told == ((explained(line, said),) if gone else (line, ON_NODE))
