"""A connection that is lost in the middle of a recording, seen from here: the agents are stand-ins."""

from __future__ import annotations

import io
import json
import os
import re
import threading
import time
from dataclasses import replace
from queue import SimpleQueue

import pytest

from hprofiler.agent import talk
from hprofiler.base.errors import HostError
from hprofiler.collect import Audit, comeback
from hprofiler.model import Status
from tests.unit.stand_in import Fleet, Named, StandIns

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
    """Time as coming back sees it: it stands still unless a test moves it on."""

    def __init__(self):
        self.now = time.monotonic() + 3600  # no recording goes on any more

    def monotonic(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    made = Clock()
    monkeypatch.setattr(comeback, "time", made)
    return made


@pytest.fixture
def fleet(tmp_path, monkeypatch):
    """Nobody is too slow for the first attempt to come back."""
    monkeypatch.setattr(comeback, "_FIRST_LIMIT", 60.0)
    stand_ins = StandIns(tmp_path)
    yield lambda timeout=60.0, **bodies: Fleet(stand_ins, timeout, bodies)
    stand_ins.clean()


def lines(result):
    """(status, stage, reason) of the host's own lines, and of the only process's."""
    told = [(one.pid, (one.status, one.stage, one.reason)) for one in result.outcomes]
    (of_process,) = [line for pid, line in told if pid]
    return [line for pid, line in told if not pid], of_process


def test_the_record_of_what_was_done_has_it(fleet, tmp_path):
    hosts, written = fleet(one=body(tmp_path, 100_000)), io.StringIO()
    hosts.reach = replace(hosts.reach, audit=Audit(written))
    hosts.collect()
    told = [json.loads(line) for line in written.getvalue().splitlines()]
    (at,) = [number for number, line in enumerate(told) if line["what"] == "lost"]
    (after, *_) = told[at + 1 :]
    assert after["what"] == "connect" and after["detail"].endswith("on this machine")
    assert any(line["what"] == "request" and line["detail"].startswith("resume") for line in told[at + 1 :])
    assert not re.search("[0-9a-f]{32}$", written.getvalue(), re.M), "the token is nobody's business"


@pytest.mark.parametrize("cut", [0, 1, 60, 200, 600, 700, 100_000, SIZE, -150, -40, -3, -1])
def test_wherever_it_breaks_it_goes_on(fleet, tmp_path, cut):
    hosts = fleet(one=body(tmp_path, cut))
    result = hosts.collect()["one"]
    (of_host,), of_process = lines(result)
    assert of_process == (Status.OK, "record", "said")
    assert of_host[:2] == (Status.OK, "fetch") and "nothing is missing" in of_host[2]
    assert hosts.sink.sizes == {("one", 7, "cpu"): SIZE + 3}
    assert [step.stage for step in hosts.progress].count("lost") == 1


TWICE = """
second_time = {said!r} + "-again"
def second():
    hello()
    resume = read()
    say("resumed", found=True)
    rest = open(SAID, "rb").read()[resume["received"]:]
    if not os.path.exists(second_time):
        open(second_time, "w").close()
        return out(rest[:100_000])
    out(rest)
    read()
"""


def test_the_times_of_several_losses_are_told_together(fleet, clock, tmp_path):
    script = body(tmp_path, 100_000)
    head, last = script.rsplit("\n", 2)[0], script.rsplit("\n", 2)[1]
    hosts = fleet(one=head + TWICE.format(said=str(tmp_path / "said")) + last)
    takes = [0, 4, 7]

    class Slow(Named):
        """To connect takes so long."""

        def connect(self):
            clock.now += takes.pop(0)
            super().connect()

    hosts.reach = replace(hosts.reach, transport_for=Slow)
    (of_host,), of_process = lines(hosts.collect()["one"])
    assert of_process[0] is Status.OK and takes == []
    assert [step.detail for step in hosts.progress if "again" in step.detail] == [
        "connected again after 4 s",
        "connected again after 7 s",
    ]
    assert "lost for 11 s" in of_host[2]


def test_one_that_was_ended_early_says_so(fleet, clock, tmp_path):
    before = 'say("interrupted", seconds=12.3, reason="it was closed")'
    result = fleet(one=body(tmp_path, 40, before)).collect()["one"]
    of_host, of_process = lines(result)
    assert of_host == [] and of_process[0] is Status.DEGRADED
    assert of_process[2].startswith(
        "ended after 12 s: the connection was lost, and what there was fetched 0 s later"
    )
    assert of_process[2].endswith("; said")
    assert [line.seconds for line in result.outcomes] == [12.3]


def test_one_that_had_ended_before_was_not_cut_short(fleet):
    """Its end is older than the loss, and explains it."""
    ended = """
hello(); found(7); prepared(7); recording(7)
say("interrupted", seconds=31, reason="nothing was heard"); profile(7, b"p")
outcome(7, "degraded", reason="ended after 9.0 s", ended="process", seconds=9); say("done", left=[])
read()
"""
    (line,) = fleet(one=ended).collect()["one"].outcomes
    assert line.gone and line.seconds is None and line.reason.endswith("; ended after 9.0 s")


def test_one_that_noticed_nothing_here_is_told_by_the_agent(fleet):
    """It was silent for longer than the lease, and is there again."""
    silent = """
hello(); found(7); prepared(7); recording(7)
say("interrupted", seconds=31, reason="nothing was heard"); profile(7, b"p"); outcome(7); say("done", left=[])
read()
"""
    of_host, of_process = lines(fleet(one=silent).collect()["one"])
    reason = "ended after 31 s: the connection was lost: nothing was heard"
    assert of_host == [] and of_process == (Status.DEGRADED, "record", reason)


def test_once_all_has_come_nobody_comes_back(fleet):
    """The record of what was done is lost with the agent, and nothing else."""
    ends = 'hello(); found(7); prepared(7); recording(7); profile(7, b"p"); outcome(7); say("done", left=[])'
    hosts = fleet(one=f"{ends}\nos.kill(os.getpid(), 9)")
    hosts.reach = replace(hosts.reach, audit=Audit(io.StringIO()))
    of_host, of_process = lines(hosts.collect()["one"])
    assert of_process[0] is Status.OK
    assert [line[:2] for line in of_host] == [(Status.DEGRADED, "clean")]
    assert "lost" not in [step.stage for step in hosts.progress]


LEFT = """
def left(kind, path="/x", pid=None, state="left", result=None):
    shape = dict(user="u", seconds=1, bytes=1, reason="")
    return dict(shape, kind=kind, path=path, pid=pid, state=state, result=result)
DONE = [left("profiler", pid=7, result="stopped"), left("folder", "/tmp/x", result="removed"),
        left("agent", pid=47, state="used"), left("folder", "/tmp/y", state="foreign")]
def cleaned(request, entries=DONE, failed=()):
    assert request["kept"] and not request["dry"], request
    say("leftovers", entries=entries, failed=failed, out_of_reach=[])
"""

TORN = """
exec({left!r})
if os.path.exists({log!r}):
    hello()
    assert read()["type"] == "resume"
    say("resumed", found=False)
    cleaned(read(), DONE + {entries}, {failed!r})
    assert read()["type"] == "bye"
    open({log!r}, "w").write("good")
else:
    hello(session="4711-99"); found(7); prepared(7); recording(7)
    open({log!r}, "w").close()
    os.kill(os.getpid(), 9)
"""


@pytest.mark.parametrize(
    ("entries", "failed", "part"),
    [
        ("[]", [], "its profiler in 1 of the processes was stopped"),
        ("[]", [{"what": "x", "reason": "no"}], "x could not be cleaned up: no"),
        ('[left("profiler", pid=9, state="unknown")]', [], "process 9 is there yet"),
        ('[left("agent", pid=4711, state="used")]', [], "its agent is there yet"),
        ('[left("agent", pid=4711, result="ended")]', [], "its agent, which stood still, was ended"),
    ],
)
def test_an_agent_that_is_there_no_more_is_cleaned_up_after(fleet, tmp_path, entries, failed, part):
    log = tmp_path / "log"
    script = TORN.format(log=str(log), entries=entries, failed=failed, left=LEFT)
    (of_host,), of_process = lines(fleet(one=script).collect()["one"])
    assert of_host[:2] == (Status.FAILED, "record")
    assert "status -9" in of_host[2] and "lost with its agent" in of_host[2] and part in of_host[2]
    assert of_process[0] is Status.FAILED and log.read_text() == "good"


KILLED = """
exec({left!r})
if os.path.exists({log!r}):
    hello()
    request = read()
    while request["type"] != "bye":
        open({log!r}, "a").write(request["type"] + " ")
        if request["type"] == "resume":
            say("resumed", found=False)
        if request["type"] == "clean":
            cleaned(request)
        request = read()
else:
    hello(); found(7); {then}
    open({log!r}, "w").close()
    os.kill(os.getpid(), 9)
"""


@pytest.mark.parametrize(
    ("then", "asked"),
    [("prepare_request()", "clean "), ("prepared(7)", "resume clean ")],
)
def test_an_agent_that_is_killed_before_it_records_is_cleaned_up_after(fleet, tmp_path, then, asked):
    log = tmp_path / "log"
    result = fleet(one=KILLED.format(log=str(log), then=then, left=LEFT)).collect()["one"]
    (of_host,), of_process = lines(result)
    assert of_host[0] is Status.FAILED and "status -9" in of_host[2]
    assert of_process[0] is Status.FAILED and log.read_text() == asked


def test_its_lease_is_renewed_while_it_is_cleaned_up_after(fleet, tmp_path, monkeypatch):
    monkeypatch.setattr(talk, "_PING_SECONDS", 0.05)
    log = tmp_path / "log"
    script = KILLED.format(log=str(log), then="prepare_request()", left=LEFT)
    waits = 'while read(skip=())["type"] != "ping": pass'
    script = script.replace("    cleaned(request)", f"    {waits}\n            cleaned(request)")
    assert waits in script
    fleet(one=script).collect()
    assert log.read_text() == "clean "


def test_one_that_is_killed_before_it_touches_anything_left_nothing(fleet, tmp_path):
    log = tmp_path / "log"
    result = fleet(one=KILLED.format(log=str(log), then="read()", left=LEFT)).collect()["one"]
    assert "status -9" in lines(result)[0][0][2] and log.read_text() == ""


def test_only_the_first_end_of_a_recording_is_told(fleet):
    twice = """
hello(); found(7); prepared(7); recording(7)
for seconds in 31, 60:
    say("interrupted", seconds=seconds, reason="nothing was heard")
profile(7, b"p"); outcome(7); say("done", left=[])
read()
"""
    assert lines(fleet(one=twice).collect()["one"])[1][2].startswith("ended after 31 s")


class Away(Named):
    """Cannot be connected to a second time."""

    connects = 0
    passes = staticmethod(lambda: None)

    def connect(self):
        Away.connects += 1
        if Away.connects > 1:
            Away.passes()
            raise HostError("connect", "nobody answers")


@pytest.fixture
def away(fleet, tmp_path):
    def make(cut=40):
        Away.connects = 0
        hosts = fleet(one=body(tmp_path, cut))
        hosts.reach = type(hosts.reach)(Away, hosts.reach.binaries, timeout=60.0)
        return hosts

    return make


def test_a_host_that_stays_away_is_given_up_after_a_lease(away, clock, monkeypatch):
    """Each attempt takes ten seconds of the thirty."""

    def passes():
        clock.now += 10

    monkeypatch.setattr(comeback, "LEASE_SECONDS", 30.0)
    monkeypatch.setattr(comeback, "_FIRST_PAUSE", 0.01)
    monkeypatch.setattr(Away, "passes", staticmethod(passes))
    (of_host,), of_process = lines(away().collect()["one"])
    assert of_host[0] is Status.FAILED and "again within 30 s: nobody answers" in of_host[2]
    assert of_process[0] is Status.FAILED and "lost with its host" in of_process[2]
    assert Away.connects == 4


def stop_when_lost(hosts, times=1):
    """Set once all hosts have heard that the user ends the recording."""
    heard = threading.Event()

    def listener(step):
        hosts.progress.append(step)
        if step.stage == "lost":
            for _ in range(times):
                hosts.stop.request()
        if step.stage == "stop":
            heard.set()

    hosts.listener = listener
    return heard


def test_the_second_ctrl_c_ends_the_waiting(away, monkeypatch):
    monkeypatch.setattr(comeback, "LEASE_SECONDS", 600.0)
    hosts = away()
    stop_when_lost(hosts, times=2)
    (of_host,), _ = lines(hosts.collect()["one"])
    assert of_host[0] is Status.FAILED and "interrupted" in of_host[2]


def test_the_first_ctrl_c_ends_the_recording_and_waits_for_what_is_kept_of_it(away, clock, monkeypatch):
    """For one lease; it would have been two."""
    hosts = away(cut=200)
    hosts.sampling = replace(hosts.sampling, duration=10_000.0)
    heard = stop_when_lost(hosts)

    def passes():
        assert heard.wait(60)
        clock.now += 10

    monkeypatch.setattr(comeback, "LEASE_SECONDS", 30.0)
    monkeypatch.setattr(comeback, "_FIRST_PAUSE", 0.01)
    monkeypatch.setattr(Away, "passes", staticmethod(passes))
    (of_host,), _ = lines(hosts.collect()["one"])
    assert of_host[0] is Status.FAILED and "again within 30 s: nobody answers" in of_host[2]


def test_what_was_recorded_before_ctrl_c_is_fetched_from_a_host_whose_link_was_down(fleet, tmp_path):
    hosts = fleet(one=body(tmp_path, 40))
    heard, connects = stop_when_lost(hosts), []

    class Down(Named):
        def connect(self):
            connects.append(self)
            if len(connects) == 2:
                assert heard.wait(60)
                raise HostError("connect", "nobody answers yet")
            super().connect()

    hosts.reach = replace(hosts.reach, transport_for=Down)
    _, of_process = lines(hosts.collect()["one"])
    assert of_process[0] is Status.OK and len(connects) == 3
    assert hosts.sink.sizes == {("one", 7, "cpu"): SIZE + 3}


def test_others_go_on_meanwhile(fleet, tmp_path):
    from tests.unit.test_collect import GOOD

    results = fleet(one=body(tmp_path, 100_000), two=GOOD).collect()
    assert lines(results["two"]) == ([], (Status.OK, "record", ""))
    assert lines(results["one"])[1][0] is Status.OK


SAYS_BYE = """
import signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)  # it is heard even by one that is too slow for our last word
hello(); found(7); prepared(7); recording(7)
request = read()
while request["type"] == "stop":
    request = read()
open({log!r}, "w").write(request["type"])
"""


def test_ended_at_once_the_agent_is_told(fleet, tmp_path):
    log = tmp_path / "log"
    os.mkfifo(log)
    hosts = fleet(one=SAYS_BYE.format(log=str(log)))
    recording = threading.Event()
    hosts.listener = lambda step: recording.set() if step.stage == "record" else None

    def twice():
        recording.wait(60)
        hosts.stop.request()
        hosts.stop.request()

    told: SimpleQueue[str] = SimpleQueue()
    threading.Thread(target=lambda: told.put(log.read_text()), daemon=True).start()
    threading.Thread(target=twice, daemon=True).start()
    hosts.collect()
    assert told.get(timeout=60) == "bye"
