"""A canary: one process of a kind is recorded first, and its outcome decides about the others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import pytest

from hprofiler.collect.limits import Care
from hprofiler.collect.visit_group import HostProgress
from hprofiler.model import Outcome, Status
from tests.unit.stand_in import Fleet, StandIns

VERDICT = {"stage": "record", "reason": "", "remedy": "", "engine": "perf", "sources": {}, "findings": []}
CANARIES = """
read()
versions, failing, engines = {versions!r}, {failing!r}, {engines!r}
say("found", searched=9, ignored=[],
    processes=[process(pid, jvm={{"version": version}}) for pid, version in versions.items()])
request = read()
assert request["type"] == "check"
say("checked", time=1e9, findings=[], processes=[
    {{**{verdict!r}, "pid": one["pid"], "status": "failed" if one["pid"] in failing else "ok",
      "engine": engines.get(one["pid"], "async-profiler")}}
    for one in request["processes"]])
request = read()
while request["sampling"]["duration"] == 2:
    (one,) = request["processes"]
    pid = one["pid"]
    print(pid, one["engine"], file=open({told!r}, "a"))
    say("ready", processes=[{{"pid": pid}}])
    recording(pid)
    if {lost!r}:
        sys.exit(9)
    profile(pid, b"x")
    outcome(pid, **{ended!r})
    say("done", left=["/tmp/x"])
    request = read()
pids = [one["pid"] for one in request["processes"]]
assert all(one["engine"] == engines.get(one["pid"], "async-profiler") for one in request["processes"])
say("ready", processes=[{{"pid": pid}} for pid in pids])
if not pids:
    read(); sys.exit()
recording(*pids)
for pid in pids:
    profile(pid, b"x"); outcome(pid)
say("done", left=[]); read()
"""


class Result(NamedTuple):
    """What two hosts did: the canaries and the engines that recorded them, and the pids recorded after."""

    canaries: list[tuple[int, str]]
    recorded: list[int]
    outcomes: list[Outcome]
    progress: list[HostProgress]


def run(
    stand_ins: StandIns,
    versions: dict[int, str],
    well: bool = True,
    failing: Sequence[int] = (),
    engines: dict[int, str] | None = None,
    lost: bool = False,
) -> Result:
    """Hosts "a" and "b" with JVMs of these versions by pid; all canaries end `well` or none does, or
    their host is `lost`."""
    file = stand_ins.folder / "canaries"
    file.write_text("")
    ended = {} if well else {"reason": "cut short", "ended": "process"}
    known = {
        "told": str(file),
        "lost": lost,
        "versions": versions,
        "failing": list(failing),
        "engines": engines or {},
    }
    body = "hello()\n" + CANARIES.format(**known, ended=ended, verdict=VERDICT)
    fleet = Fleet(stand_ins, 60.0, {"a": body, "b": body})
    results = fleet.collect(Care(canary=True)).values()
    alone = [line.split() for line in file.read_text().splitlines()]
    return Result(
        [(int(pid), engine) for pid, engine in alone],
        [one.process.pid for result in results for one in result.recordings],
        [line for result in results for line in result.outcomes],
        fleet.progress,
    )


@pytest.mark.parametrize(("well", "recorded"), [(True, [7, 7]), (False, [])])
def test_a_canary_decides_for_all_hosts(stand_ins, well, recorded):
    result = run(stand_ins, {7: "17"}, well)
    assert (result.canaries, result.recorded) == ([(7, "async-profiler")], recorded)
    left = {line.remedy for line in result.outcomes if line.reason == "left behind: /tmp/x"}
    assert left == {"run `hprofiler cleanup` later to remove what is still there"}
    if recorded:
        (fine,) = [line for line in result.outcomes if "canary" in line.reason]
        assert (fine.status, fine.pid) == (Status.OK, None)
        assert "process 7" in fine.reason and "for 2 s by async-profiler: fine" in fine.reason
        assert [one.detail for one in result.progress if one.stage == "canary"] == [fine.reason]
        return
    lines = [line for line in result.outcomes if line.stage != "clean"]
    assert {line.status for line in lines} == {Status.FAILED}
    assert all("ended while it was recorded" in line.reason for line in lines)
    assert all("leave out --canary" in line.remedy for line in lines)
    own, others = sorted(lines, key=lambda line: "the canary for" in line.reason)
    assert own.reason == f"it was the canary: process 7 of {own.host} ended while it was recorded"
    assert others.reason.startswith("the canary for JDK 17 on") and others.host != own.host


def test_each_engine_has_a_canary(stand_ins):
    result = run(stand_ins, dict.fromkeys((7, 8, 9), "17"), engines={7: "perf"})
    assert sorted(result.canaries) == [(7, "perf"), (8, "async-profiler")]
    assert result.recorded == [7, 8, 9, 7, 8, 9]


def test_a_process_that_cannot_be_recorded_is_not_a_canary(stand_ins):
    result = run(stand_ins, {7: "17", 8: "17"}, failing=[7])
    assert (result.canaries, result.recorded) == ([(8, "async-profiler")], [8, 8])
    result = run(stand_ins, {7: "17"}, failing=[7])
    assert not result.canaries and not result.recorded


def test_a_host_that_is_lost_with_its_canary(stand_ins):
    result = run(stand_ins, {7: "17"}, lost=True)
    assert result.canaries == [(7, "async-profiler")] and not result.recorded
    own, others = sorted(
        (line for line in result.outcomes if line.pid), key=lambda line: "the canary for" in line.reason
    )
    assert own.host != others.host and others.code == "canary-failed"
    assert f"the host of process 7 of {own.host} was lost" in others.reason
    (host,) = [line for line in result.outcomes if not line.pid]
    assert (host.host, host.code) == (own.host, "agent-ended")
    assert host.reason.endswith(f"process 7 of {own.host} was being recorded as a canary")
