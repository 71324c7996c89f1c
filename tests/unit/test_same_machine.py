"""One machine under several names, or as several users: each of its processes is recorded once."""

from __future__ import annotations

import pytest

from hprofiler.model import Status
from tests.viewer.made_run import coverage_of

ASKED = """
def asked():
    while (request := read())["type"] == "put":
        say("stored", sha256=LIBRARY)
    return request
"""
RECORD = """
request = asked()
if request["type"] == "prepare":
    say("ready", processes=[{"pid": 7}]); recording(7)
    profile(7, b"p"); outcome(7); say("done", left=[]); read()
"""
NODE = f"""{ASKED}
hello(host={{**HOST, "boot_id": "b"}}, session="70-1"); found(7){RECORD}"""


def test_a_machine_with_two_names_is_recorded_once(fleet):
    results = fleet(a=NODE, b=NODE).collect()
    first, other = sorted(results.values(), key=lambda result: not result.recordings)
    assert len(first.recordings) == 1 and [one.status for one in first.outcomes] == [Status.OK]
    note, idle = other.outcomes
    assert (note.status, idle.status) == (Status.DEGRADED, Status.IDLE) and not other.recordings
    assert note.reason == f"1 process is recorded as {first.host.name}, which is the same machine"
    assert f"{first.host.name} is the same machine and records it" in idle.reason
    coverage = coverage_of(*results.values())
    assert coverage.complete and (coverage.hosts.idle, coverage.processes.found) == (1, 1)


@pytest.mark.parametrize(
    "other",
    [
        NODE.replace('"b"}', '"another boot"}'),
        NODE.replace('"b"}', '"b", "pid_namespace": "a container"}'),
        NODE.replace('"b"}', '"b", "name": "a copy of the machine"}'),
        NODE.replace(
            "found(7)",
            'read(); say("found", searched=9, processes=[process(7, start_time=2)], ignored=[])',
        ),
    ],
    ids=["boot", "namespace", "copy", "pid that was used again"],
)
def test_equal_pids_elsewhere_are_other_processes(fleet, other):
    results = fleet(a=NODE, b=other).collect()
    assert [len(result.recordings) for result in results.values()] == [1, 1]
