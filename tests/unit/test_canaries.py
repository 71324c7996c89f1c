"""A canary: one process of a kind is recorded first, and its outcome decides about the others."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from hprofiler.collect import Care
from hprofiler.model import Status
from tests.unit.stand_in import Fleet, StandIns

VERDICT = {"stage": "record", "reason": "", "remedy": "", "engine": "perf", "sources": {}, "findings": []}
CANARIES = """
read()
versions, failing, engines = {versions!r}, {failing!r}, {engines!r}
say("found", searched=9, ignored=[],
    processes=[process(pid, jvm={{"version": version}}) for pid, version in versions.items()])
request = read()
while request["type"] == "put":
    say("stored", sha256=LIBRARY)
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


class Flock:
    """Hosts "a" and "b" whose JVMs' `versions` are given by pid, and whose canaries all end `well` or not."""

    def __init__(
        self,
        stand_ins: StandIns,
        versions: dict[int, str],
        well: bool,
        failing: Sequence[int] = (),
        engines: dict[int, str] | None = None,
    ) -> None:
        self._told = stand_ins.folder / "canaries"
        self._told.write_text("")
        body = "hello()\n" + CANARIES.format(
            told=str(self._told),
            versions=versions,
            failing=list(failing),
            engines=engines or {},
            ended={} if well else {"reason": "cut short", "ended": "process"},
            verdict=VERDICT,
        )
        fleet = Fleet(stand_ins, 60.0, {"a": body, "b": body})
        self.progress = fleet.progress
        self.results = list(fleet.collect(Care(canary=True)).values())

    @property
    def canaries(self) -> list[int]:
        return [pid for pid, _ in self.recorded_alone]

    @property
    def recorded_alone(self) -> list[tuple[int, str]]:
        """Pids, and the engines that were to record them."""
        lines = [line.split() for line in self._told.read_text().splitlines()]
        return [(int(pid), engine) for pid, engine in lines]

    @property
    def recorded(self) -> list[int]:
        return [one.process.pid for result in self.results for one in result.recordings]

    @property
    def reasons(self) -> list[str]:
        return [line.reason for result in self.results for line in result.outcomes]


@pytest.mark.parametrize(("well", "recorded"), [(True, [7, 7]), (False, [])])
def test_a_canary_speaks_for_all_hosts(stand_ins, well, recorded):
    """Whichever of the hosts is asked for it, it is asked once."""
    flock = Flock(stand_ins, {7: "17"}, well)
    assert (flock.canaries, flock.recorded) == ([7], recorded)
    assert "left behind: /tmp/x" in flock.reasons
    if recorded:
        (fine,) = [line for result in flock.results for line in result.outcomes if "canary" in line.reason]
        assert (fine.status, fine.pid) == (Status.OK, None)
        assert "process 7" in fine.reason and "for 2 s by async-profiler: fine" in fine.reason
        assert [one.detail for one in flock.progress if one.stage == "canary"] == [fine.reason]
        return
    lines = [line for result in flock.results for line in result.outcomes if line.stage != "clean"]
    assert {line.status for line in lines} == {Status.FAILED}
    assert all(
        "ended while it was recorded" in line.reason and "--no-canary" in line.remedy for line in lines
    )
    own, others = sorted(lines, key=lambda line: "the canary for" in line.reason)
    assert own.reason == f"it was the canary: process 7 of {own.host} ended while it was recorded"
    assert others.reason.startswith("the canary for JDK 17 on") and others.host != own.host


def test_each_engine_has_a_canary_and_records_what_it_was_tried_for(stand_ins):
    """One that perf records says nothing of async-profiler."""
    flock = Flock(stand_ins, dict.fromkeys((7, 8, 9), "17"), True, engines={7: "perf"})
    assert sorted(flock.recorded_alone) == [(7, "perf"), (8, "async-profiler")]
    assert flock.recorded == [7, 8, 9, 7, 8, 9]


def test_a_process_that_cannot_be_recorded_is_not_a_canary(stand_ins):
    flock = Flock(stand_ins, {7: "17", 8: "17"}, True, failing=[7])
    assert (flock.canaries, flock.recorded) == ([8], [8, 8])
    flock = Flock(stand_ins, {7: "17"}, True, failing=[7])
    assert not flock.canaries and not flock.recorded
