"""What a run adds when it is over: ledger lines of what came too late, and a command without passwords."""

from __future__ import annotations

import json

from hprofiler.model import Outcome, Status, Target
from hprofiler.resolvers import Located
from hprofiler.run import RunRequest, run
from tests.unit.stand_in import ANY, Fleet, StandIns

IDLE = "hello(); found(); read()"


def test_what_came_too_late_and_what_could_not_be_learnt(tmp_path):
    stand_ins = StandIns(tmp_path)
    fleet = Fleet(stand_ins, 10.0, {"one": IDLE, "two": IDLE})
    late = [Outcome(host, Status.DEGRADED, "find", f"on {host}") for host in ("two", "elsewhere")]
    located = Located(Target("yarn", "app"), fleet.hosts, ("a note",), lambda: late)
    command = ("hprofiler", "-c", "https://kim:secret@gw/x,http://kim@rm:8088")
    request = RunRequest(located, ANY, fleet.sampling, tmp_path / "run", False, command)
    run(request, fleet.reach, fleet.listener)
    stand_ins.clean()
    record = json.loads((tmp_path / "run" / "run.json").read_text())
    assert record["notes"] == ["a note"]
    assert record["command"][2] == "https://***@gw/x,http://***@rm:8088"
    one, two = ([line["reason"] for line in host["outcomes"]] for host in record["hosts"])
    assert one[1:] == ["on elsewhere"] and two[1:] == ["on two"]
    assert record["coverage"]["hosts"]["failed"] == 0
