"""More processes than are recorded of a host: the first are, and each of the others fails with a reason."""

from __future__ import annotations

from hprofiler.agent import MAX_RECORDED
from hprofiler.collect import check_only
from hprofiler.model import Status
from tests.unit.stand_in import ANY, SAMPLING, Fleet

PIDS = [*range(3000, 3000 + MAX_RECORDED), 7, 8]
"""In the agent's order, which is not that of the pids."""
FOUND = f"""
hello(); found(*{PIDS})
"""
RUN = """
request = prepare_request()
pids = [one["pid"] for one in request["processes"]]
for pid in pids[1:]:
    outcome(pid, "failed", "prepare", "refuses attach")
say("ready", processes=[{"pid": pids[0]}])
recording(pids[0])
profile(pids[0], b"x" * 9)
outcome(pids[0]); say("done", left=[]); read()
"""
CHECK = """
while (request := read())["type"] != "check":
    say("stored", sha256=LIBRARY)
verdicts = [dict(pid=one["pid"], status="ok", stage="record", reason="", remedy="", engine="async-profiler",
                 sources={"cpu": "perf_events"}, findings=[]) for one in request["processes"]]
say("checked", time=time.time(), findings=[], processes=verdicts); read()
"""


def test_the_first_are_recorded_and_the_rest_fails(stand_ins) -> None:
    result = Fleet(stand_ins, 60.0, {"n1": FOUND + RUN}).collect()["n1"]
    lines = {line.pid: line for line in result.outcomes}
    assert sorted(lines) == sorted(PIDS) and len(result.outcomes) == len(PIDS)
    assert [one.process.pid for one in result.recordings] == [3000]
    assert lines[3000].status is Status.OK and lines[3001].reason == "refuses attach"
    for pid in (7, 8):
        assert (lines[pid].status, lines[pid].stage) == (Status.FAILED, "prepare")
        assert lines[pid].reason == "514 processes are more than the 512 that are recorded of a host"
        assert "-j pid:" in lines[pid].remedy


def test_doctor_says_it_before(stand_ins) -> None:
    fleet = Fleet(stand_ins, 60.0, {"n1": FOUND + CHECK})
    (checked,) = check_only(fleet.hosts, ANY, SAMPLING, fleet.reach)
    assert [one.pid for one in checked.processes] == PIDS
    assert [one.outcome.pid for one in checked.verdicts] == PIDS
    failed = [one.outcome.pid for one in checked.verdicts if one.outcome.status is Status.FAILED]
    assert failed == [7, 8] and checked.outcomes == ()
