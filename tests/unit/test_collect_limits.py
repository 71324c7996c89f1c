"""What a host may take and send at most: time for each part and for all of it, bytes, processes."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from hprofiler.agent import MAX_RECORDED
from hprofiler.collect import fetching
from hprofiler.model import HostResult, Outcome, Status
from tests.unit.conftest import MakeFleet
from tests.unit.limits import Limits
from tests.unit.stand_in import SAMPLING

BEGIN = "hello(); found(7); prepared(7); recording(7)\n"
END = "outcome(7); say('done', left=[]); read()\n"


def host_line(result: HostResult) -> Outcome:
    (line,) = [line for line in result.outcomes if line.pid is None]
    return line


@pytest.mark.parametrize(
    ("of_a_part", "reason"),
    [
        (69.0, "it did not send all its recordings within 1200 s"),
        (71.0, "timed out after 70 s while fetching"),
    ],
    ids=["each part comes in time", "one part is late"],
)
def test_each_part_has_a_limit_and_so_has_all_of_it(
    fleet: MakeFleet, limits: Limits, monkeypatch: pytest.MonkeyPatch, of_a_part: float, reason: str
) -> None:
    monkeypatch.setattr(fetching, "PART", 1000)
    monkeypatch.setattr(fetching, "SLOWEST", 100)
    hosts = fleet(
        one=f"{BEGIN}profile(7, b'', size=512 << 20)\nwhile True: out(b'x' * 1000); time.sleep(0.05)"
    )

    def keep(host, recording, pieces):
        for _ in pieces:
            limits.pass_time(of_a_part)
            time.sleep(0.2)  # until the limits are looked at
        return {}

    hosts.sink.profile = keep  # type: ignore[method-assign]
    line = host_line(hosts.collect()["one"])
    assert (line.status, line.stage) == (Status.FAILED, "fetch")
    assert line.reason.startswith(reason) and "--timeout" in line.remedy


def test_a_process_that_ends_early_costs_the_others_of_its_host_no_time(fleet, limits, tmp_path):
    """The rest of the recording is longer than the time limit of a step."""
    passed = tmp_path / "passed"
    waits = f"while not os.path.exists({str(passed)!r}): time.sleep(0.01)\n"
    early = "hello(); found(7, 8); prepared(7, 8); recording(7, 8)\n"
    early += "profile(7, b'half'); outcome(7, 'degraded', 'record', 'it ended early')\n"
    hosts = fleet(one=early + waits + "profile(8, b'whole'); outcome(8); say('done', left=[]); read()")
    hosts.sampling = replace(SAMPLING, duration=600.0)

    def listen(step):
        hosts.progress.append(step)
        if [one.stage for one in hosts.progress][-3:] == ["record", "fetch", "record"]:
            limits.pass_time(400)
            passed.touch()

    hosts.listener = listen
    of_7, of_8 = hosts.collect()["one"].outcomes
    assert (of_7.status, of_7.reason) == (Status.DEGRADED, "it ended early")
    assert of_8.status is Status.OK


@pytest.mark.parametrize("what", ["profiles", "raw recordings"])
def test_a_host_fills_no_disk(fleet: MakeFleet, monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    most, bytes_ = ("MOST_PROFILES", 5 + fetching.SECOND) if what == "profiles" else ("MOST_RAW", 5)
    monkeypatch.setattr(fetching, most, bytes_)
    sends = "profile(7, b'four'); profile(7, b'aa', event='alloc', source='alloc'); raw(7, b'FLR...'); "
    hosts = fleet(one=BEGIN + sends + END)
    hosts.sampling = replace(SAMPLING, events=("cpu", "alloc"), keep_raw=True)
    (line,) = hosts.collect()["one"].outcomes
    assert (line.status, line.stage) == (Status.DEGRADED, "fetch")
    assert line.reason == f"not kept: its host has more than 0 MiB of {what}"
    assert "record fewer processes" in line.remedy
    assert ("--keep-raw" in line.remedy) == (what == "raw recordings")
    left_out = "alloc" if what == "profiles" else "recording.jfr"
    assert {name for _, _, name in hosts.sink.sizes} == {"cpu", "alloc", "recording.jfr"} - {left_out}


def test_more_processes_than_an_agent_records(fleet: MakeFleet) -> None:
    pids = f"*range(1, {MAX_RECORDED + 2})"
    hosts = fleet(one=f"hello(); found({pids}); prepared({pids}); read()")
    assert f"length <= {MAX_RECORDED}" in host_line(hosts.collect()["one"]).reason
