"""One machine under several names, or as several users: each of its processes is recorded once."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hprofiler.collect.same_machine import Machines
from hprofiler.model import HostFacts, Process, Status
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
FACTS = HostFacts("n", "x86_64", "6.1", 2, 1 << 30, "root", boot_id="b", pid_namespace="p")
PROCESS = Process("n1", 7, 1, 1000, "alice", "M")


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


def test_who_may_not_record_a_process_leaves_it_to_who_may(fleet, tmp_path):
    """Though the one who may not was the first to find it."""
    first = tmp_path / "first"
    alice = f"""
hello(host={{**HOST, "boot_id": "b", "uid": 1000}}, session="71-1"); found(7); request = prepare_request()
open({str(first)!r}, "w").close()
say("outcome", pid=7, status="failed", stage="prepare", reason="it is root's", remedy="")
say("ready", processes=[]); read()
"""
    root = f"while not os.path.exists({str(first)!r}): time.sleep(0.01)\n{NODE}"
    results = fleet(alice=alice, root=root).collect()
    assert [len(results[name].recordings) for name in ("alice", "root")] == [0, 1]
    told = [(one.pid, one.status) for one in results["alice"].outcomes]
    assert told == [(None, Status.DEGRADED), (None, Status.IDLE)]
    assert coverage_of(*results.values()).complete


def test_a_false_uid_wins_no_process():
    machines = Machines()
    machines.claim(FACTS, "liar", 2000, [replace(PROCESS, host="liar", uid=2000)])
    machines.claim(FACTS, "n1", 0, [PROCESS])
    assert machines.elsewhere(FACTS, [PROCESS]) == {}
