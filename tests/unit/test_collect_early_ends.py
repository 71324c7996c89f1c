"""A process that ends by itself, while others of its host are recorded on."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

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
    yield lambda body: Fleet(stand_ins, 60.0, {"one": body})
    stand_ins.clean()


def line(result, pid=None):
    """(status, stage, reason) of the host's line, or of a process's."""
    (found,) = [outcome for outcome in result.outcomes if outcome.pid == pid]
    return found.status, found.stage, found.reason


def test_a_process_that_ends_early_costs_the_others_of_its_host_no_time(fleet, limits, tmp_path):
    """The rest of the recording is longer than the time limit of a step."""
    passed = tmp_path / "passed"
    waits = f"while not os.path.exists({str(passed)!r}): time.sleep(0.01)\n"
    hosts = fleet(ENDS_EARLY + waits + "profile(8, b'whole'); outcome(8); " + END)
    hosts.sampling = replace(SAMPLING, duration=600.0)

    def listen(step):
        hosts.progress.append(step)
        if [one.stage for one in hosts.progress][-3:] == ["record", "fetch", "record"]:
            limits.pass_time(400)
            passed.touch()

    hosts.listener = listen
    result = hosts.collect()["one"]
    assert line(result, 7) == (Status.DEGRADED, "record", "it ended early")
    assert line(result, 8) == (Status.OK, "record", "") and len(result.outcomes) == 2
    stages = [step.stage for step in hosts.progress]
    assert stages[stages.index("record") :][:4] == ["record", "fetch", "record", "fetch"]


def test_a_host_that_is_mute_after_an_early_end_has_the_rest_of_the_recording_and_one_step(fleet, limits):
    hosts = fleet(ENDS_EARLY + "time.sleep(600)")
    hosts.sampling = replace(SAMPLING, duration=600.0)
    limits.pass_when(hosts, 722, one=["record", "fetch", "record"])
    result = hosts.collect()["one"]
    assert line(result)[1] == "record"
    told = re.match(r"timed out after (\S+) s", line(result)[2])
    assert told and 121.0 < float(told[1]) <= 721.0  # two processes are folded within 121 s
    assert line(result, 7)[0] is Status.DEGRADED and "lost with its host" in line(result, 8)[2]
