"""A connection that is lost during a recording, with scripted agents."""

from __future__ import annotations

import io
import time
from dataclasses import replace

import pytest

from hprofiler.base.errors import HostError
from hprofiler.collect import reconnect
from hprofiler.collect.audit import Audit
from hprofiler.model import Status
from tests.unit.stand_in import Named

SIZE = 300_000
BODY = """
SAID, BEFORE, CUT = {said!r}, {before!r}, {cut!r}
now, said = out, bytearray()
def first():
    globals()["out"] = lambda data: (said.extend(data), now(data))
    hello(); found(7); prepared(7); read()
    told = bytearray()
    globals()["out"] = told.extend
    recorded(7)
    exec(BEFORE)
    profile(7, bytes(range(250)) * {size} + b"end"); outcome(7, reason="said"); say("done", left=[])
    with open(SAID, "wb") as file:
        file.write(said + told)
    now(bytes(told[:CUT]))
def second():
    hello()
    resume = read()
    assert resume["type"] == "resume" and len(resume["token"]) == 32
    say("resumed", found=True)
    out(open(SAID, "rb").read()[resume["received"]:])
    read()
(second if os.path.exists(SAID) else first)()
"""


def body(tmp_path, cut, before=""):
    return BODY.format(said=str(tmp_path / "said"), before=before, cut=cut, size=SIZE // 250)


class Clock:
    """The clock of the reconnect: it stands still, after the end of any recording."""

    def __init__(self):
        self.now = time.monotonic() + 3600  # no recording goes on any more

    def monotonic(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    made = Clock()
    monkeypatch.setattr(reconnect, "time", made)
    return made


@pytest.fixture(autouse=True)
def patient(monkeypatch):
    """The first attempt may take a minute."""
    monkeypatch.setattr(reconnect, "_FIRST_LIMIT", 60.0)


def lines(result):
    """(status, stage, reason) of the host's own lines, and of the only process's."""
    told = [(one.pid, (one.status, one.stage, one.reason)) for one in result.outcomes]
    (of_process,) = [line for pid, line in told if pid]
    return [line for pid, line in told if not pid], of_process


@pytest.mark.parametrize("cut", [0, 60, 600, 100_000, -150, -1])
def test_a_broken_transfer_is_resumed(fleet, tmp_path, cut):
    hosts = fleet(one=body(tmp_path, cut))
    result = hosts.collect()["one"]
    (of_host,), of_process = lines(result)
    assert of_process == (Status.OK, "record", "said")
    assert of_host[:2] == (Status.OK, "fetch") and "nothing is missing" in of_host[2]
    assert hosts.sink.sizes == {("one", 7, "cpu"): SIZE + 3}
    assert [step.stage for step in hosts.progress].count("lost") == 1


def test_a_recording_that_ended_early_is_degraded(fleet, clock, tmp_path):
    before = 'say("interrupted", seconds=12.3, reason="it was closed")'
    result = fleet(one=body(tmp_path, 40, before)).collect()["one"]
    of_host, of_process = lines(result)
    assert of_host == [] and of_process[0] is Status.DEGRADED
    assert of_process[2].startswith(
        "ended after 12 s: the connection was lost; the recording was fetched 0 s later"
    )
    assert of_process[2].endswith("; said")
    assert [line.seconds for line in result.outcomes] == [12.3]


def test_no_reconnect_once_everything_has_arrived(fleet):
    """Only the audit of the last steps is lost with the agent."""
    ends = 'hello(); found(7); prepared(7); recording(7); profile(7, b"p"); outcome(7); say("done", left=[])'
    hosts = fleet(one=f"{ends}\nos.kill(os.getpid(), 9)")
    hosts.reach = replace(hosts.reach, audit=Audit(io.StringIO()))
    of_host, of_process = lines(hosts.collect()["one"])
    assert of_process[0] is Status.OK
    assert [line[:2] for line in of_host] == [(Status.DEGRADED, "clean")]
    assert "lost" not in [step.stage for step in hosts.progress]


def away(passes=lambda: None):
    """Hosts that can be connected to once; `passes` is called at each later attempt."""

    class Away(Named):
        connects = 0

        def connect(self):
            Away.connects += 1
            if Away.connects > 1:
                passes()
                raise HostError("connect", "nobody answers")

    return Away


def test_a_host_that_stays_away_is_given_up(fleet, clock, tmp_path, monkeypatch):
    """Each attempt takes ten seconds of the lease."""

    def passes():
        clock.now += 10

    monkeypatch.setattr(reconnect, "LEASE_SECONDS", 30.0)
    monkeypatch.setattr(reconnect, "_FIRST_PAUSE", 0.01)
    hosts, gone = fleet(one=body(tmp_path, 40)), away(passes)
    hosts.reach = replace(hosts.reach, transport_for=gone)
    (of_host,), of_process = lines(hosts.collect()["one"])
    assert of_host[0] is Status.FAILED and "restored within 30 s: nobody answers" in of_host[2]
    assert of_process[0] is Status.FAILED and "its host was lost" in of_process[2]
    assert gone.connects == 4


def test_the_second_ctrl_c_ends_the_waiting(fleet, tmp_path, monkeypatch):
    monkeypatch.setattr(reconnect, "LEASE_SECONDS", 600.0)
    hosts = fleet(one=body(tmp_path, 40))
    hosts.reach = replace(hosts.reach, transport_for=away())
    hosts.listener = lambda step: step.stage == "lost" and [hosts.stop.request() for _ in range(2)]
    (of_host,), _ = lines(hosts.collect()["one"])
    assert of_host[0] is Status.FAILED and "interrupted" in of_host[2]
