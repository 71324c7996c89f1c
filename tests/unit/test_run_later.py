"""What a run adds when it is over: ledger lines of what came too late."""

from __future__ import annotations

import json
import threading

import pytest

from hprofiler.app.run import RunRequest, run
from hprofiler.base.errors import HprofilerError
from hprofiler.model import Outcome, Status, Target
from hprofiler.resolve import Located
from tests.unit.stand_in import ANY, Fleet, StandIns

IDLE = "hello(); found(); read()"


def test_what_came_too_late_and_what_could_not_be_learnt(tmp_path):
    stand_ins = StandIns(tmp_path)
    fleet = Fleet(stand_ins, 60.0, {"one": IDLE, "two": IDLE})
    late = [Outcome(host, Status.DEGRADED, "find", f"on {host}") for host in ("two", "elsewhere")]
    located = Located(Target("yarn", "app"), fleet.hosts, ("a note",), lambda: late)
    request = RunRequest(located, ANY, fleet.sampling, tmp_path / "run", False, ("hprofiler", "-j", "x"))
    run(request, fleet.reach, fleet.listener)
    stand_ins.clean()
    record = json.loads((tmp_path / "run" / "run.json").read_text())
    assert record["notes"] == ["a note"]
    assert record["command"] == ["hprofiler", "-j", "x"]
    one, two = ([line["reason"] for line in host["outcomes"]] for host in record["hosts"])
    assert one[1:] == ["on elsewhere"] and two[1:] == ["on two"]
    assert record["coverage"]["hosts"]["failed"] == 0


@pytest.fixture
def recorded(tmp_path):
    """The lines of the host in run.json after a run whose target answers so when asked for new processes."""
    stand_ins = StandIns(tmp_path)

    def recorded(new_processes):
        fleet = Fleet(stand_ins, 60.0, {"one": IDLE})
        located = Located(Target("yarn", "app"), fleet.hosts, (), new_processes)
        request = RunRequest(located, ANY, fleet.sampling, tmp_path / "run", False, ())
        result = run(request, fleet.reach, fleet.listener)
        assert not result.interrupted and result.report.page.exists()
        (host,) = json.loads((tmp_path / "run" / "run.json").read_text())["hosts"]
        return [line["reason"] for line in host["outcomes"]][1:]

    yield recorded
    stand_ins.clean()


def test_a_target_that_hangs_is_not_waited_for(monkeypatch, recorded):
    monkeypatch.setattr("hprofiler.app.run._NEW_PROCESSES_SECONDS", 0.1)
    never = threading.Event()
    reason = "cannot list the processes that started during the recording: no answer within 0.1 s"
    assert recorded(lambda: never.wait(60)) == [reason]
    never.set()


def test_a_target_that_cannot_tell_says_why(recorded):
    def fails():
        raise HprofilerError("the ResourceManager is gone")

    assert recorded(fails) == [
        "cannot list the processes that started during the recording: the ResourceManager is gone"
    ]
