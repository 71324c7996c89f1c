"""A process that ends by itself, while others of its host are recorded on."""

from __future__ import annotations

import re
import time
from dataclasses import replace

import pytest

from hprofiler.collect import care
from hprofiler.model import Status
from tests.unit.stand_in import SAMPLING, Fleet, StandIns

END = "say('done', left=[]); read()"
ENDS_EARLY = """
hello(); found(7, 8); prepared(7, 8); recording(7, 8)
profile(7, b"half"); outcome(7, "degraded", "record", "it ended early")
"""


@pytest.fixture
def fleet(tmp_path):
    stand_ins = StandIns(tmp_path)
    yield lambda body: Fleet(stand_ins, 5.0, {"one": body})
    stand_ins.clean()


def line(result, pid=None):
    """(status, stage, reason) of the host's line, or of a process's."""
    (found,) = [outcome for outcome in result.outcomes if outcome.pid == pid]
    return found.status, found.stage, found.reason


def test_a_process_that_ends_early_costs_the_others_of_its_host_no_time(fleet):
    """The rest of the recording is longer than the time limit of a step."""
    hosts = fleet(ENDS_EARLY + "time.sleep(7); profile(8, b'whole'); outcome(8); " + END)
    hosts.sampling = replace(SAMPLING, duration=8.0)
    result = hosts.collect()["one"]
    assert line(result, 7) == (Status.DEGRADED, "record", "it ended early")
    assert line(result, 8) == (Status.OK, "record", "") and len(result.outcomes) == 2
    stages = [step.stage for step in hosts.progress]
    assert stages[stages.index("record") :][:4] == ["record", "fetch", "record", "fetch"]


def test_a_host_that_is_mute_after_an_early_end_has_the_rest_of_the_recording_and_one_step(
    fleet, monkeypatch
):
    monkeypatch.setattr(care, "_AGENT_GIVES_WAY", 0.2)  # a step of 2 s where all is over
    hosts = fleet(ENDS_EARLY + "time.sleep(60)")
    hosts.sampling = replace(SAMPLING, duration=5.0)
    began = time.monotonic()
    result = hosts.collect()["one"]
    assert time.monotonic() - began < 50  # the host alone would take 60
    assert line(result)[1] == "record"
    told = re.fullmatch(r"timed out after (\S+) s", line(result)[2])
    assert told and 2.0 < float(told[1]) <= 7.0
    assert line(result, 7)[0] is Status.DEGRADED and "lost with its host" in line(result, 8)[2]
