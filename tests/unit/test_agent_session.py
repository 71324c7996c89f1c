"""The agent's client against agents that misbehave: the result is a HostError, never a crash or a hang."""

from __future__ import annotations

import itertools
import signal
import threading
from dataclasses import replace
from types import SimpleNamespace

import pytest

from hprofiler.agent import requests
from hprofiler.agent import session as agent_session
from hprofiler.agent.messages import ProfileHeader
from hprofiler.agent.requests import Plan
from hprofiler.agent.session import AgentSession, Appeared, how_it_ended
from hprofiler.base.errors import HostError
from hprofiler.model import Clock, ClockReading, Process
from hprofiler.transport.base import SOME_SIGNAL
from tests.lab.procs import wait_for
from tests.unit.stand_in import ANY, SAMPLING, local

SEVEN = Process("here", 7, 1, 0, "root", "M")


@pytest.fixture
def talk(stand_ins):
    """A session with a scripted agent; its transport closes after a minute."""
    opened, sessions = [], []

    def talked(body: str) -> AgentSession:
        transport = local()
        timer = threading.Timer(60, transport.close)
        timer.daemon = True
        timer.start()
        opened.append((transport, timer))
        session = AgentSession.open(transport, stand_ins.binaries(body))
        sessions.append(session)
        return session

    yield talked
    for session in sessions:
        session.let_go(0.0)
    for transport, timer in opened:
        timer.cancel()
        transport.close()


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("sys.exit(4)", "ended with status 4"),
        ("read(); sys.stderr.write('out of\\x1b[2J luck'); sys.exit(1)", "out of\ufffd"),
        ("read(); out(b'garbage\\n'); read()", "not a JSON line"),
        ("hello(protocol=1); read()", "another version"),
        ("read(); say('ready', processes=[]); read()", "'ready' instead of hello"),
        ("read(); say('error', reason='no lease', remedy='pay'); sys.exit(1)", "no lease"),
        ("read(); say('error'); sys.exit(1)", "gave up"),
        ("read(); out(b'x' * (17 << 20))", "more than 16777216 bytes"),
    ],
)
def test_a_bad_greeting(talk, body, says):
    with pytest.raises(HostError, match=says) as caught:
        talk(body)
    assert caught.value.stage == "connect"


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        ("say('found', searched=1, processes=[process(5), process(5)], ignored=[])", "twice"),
        ("say('ready', processes=[])", "instead of found"),
        ("out(b'[' * 1000000 + b'\\n')", "got `array`"),
    ],
)
def test_a_bad_answer(talk, answer, says):
    session = talk(f"hello(); read(); {answer}; read()")
    with pytest.raises(HostError, match=says) as caught:
        session.find(requests.Find(selector=ANY.query))
    assert caught.value.stage == "find"


@pytest.mark.parametrize(("sent", "code"), [("bad-selector", "bad-selector"), ("failed", "find-failed")])
def test_an_error_keeps_its_code(talk, sent, code):
    session = talk(f"hello(); read(); say('error', reason='no', code={sent!r}, parameters={{'limit': 3}})")
    with pytest.raises(HostError) as caught:
        session.find(requests.Find(selector=ANY.query))
    assert (caught.value.code, caught.value.parameters) == (code, {"limit": 3})


def prepared(talk, body: str, sampling=SAMPLING) -> AgentSession:
    session = talk(f"hello(); read(); {body}")
    session.prepare(Plan(sampling, {"async-profiler": "0" * 64}), [SEVEN])
    return session


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("say('ready', processes=[{'pid': 8}]); read()", "not asked for"),
        ("say('ready', processes=[{'pid': 7}, {'pid': 7}]); read()", "not asked for"),
        ("outcome(8, 'failed', 'prepare'); read()", "not asked for"),
        ("[outcome(None, 'failed', 'prepare') for _ in range(2000)]; read()", "too many"),
    ],
)
def test_bad_events_while_preparing(talk, body, says):
    with pytest.raises(HostError, match=says) as caught:
        prepared(talk, body)
    assert caught.value.stage == "prepare"


@pytest.mark.parametrize(
    ("events", "says"),
    [
        ("say('started', pid=8, engine='perf', sources={})", "not asked for"),
        ("profile(7, b'x', event='lock')", "'lock' was not asked for"),
        ("profile(7, b'x'); profile(7, b'x')", "'cpu' of process 7 came twice"),
        ("raw(7, b'x')", "'recording.jfr' was not asked for"),
        ("pauses(7); pauses(7)", "'pauses' of process 7 came twice"),
        ("pauses(8)", "not asked for"),
        ("metrics(); metrics()", "'metrics' came twice"),
        ("metrics(more=True)", "a part of 'metrics' was not asked for"),
        ("pauses(7, more=True)", "a part of 'pauses' was not asked for"),
        ("metrics(time=[1, 0])", "time"),
        ("profile(8, b'x')", "not asked for"),
        ("say('surprise')", "Invalid value 'surprise'"),
        ("say('ready', processes=[])", "unexpected event 'ready'"),
        ("[say('recording', processes=1) for _ in range(3000)]", "too many events"),
    ],
)
def test_bad_events_while_recording(talk, events, says):
    sampling = replace(SAMPLING, metrics=True)
    session = prepared(talk, f"say('ready', processes=[{{'pid': 7}}]); read(); {events}; read()", sampling)
    session.start()
    with pytest.raises(HostError, match=says):
        for event in session.events():
            if isinstance(event, ProfileHeader):
                list(session.payload(event))


PARTS = 2000
"""More than the events that a recording may have beside its parts."""


def parts_of(talk, monkeypatch, seconds: float) -> int:
    """How many parts arrive, each so many seconds after the one before. Each is confirmed."""
    parts = f"for _ in range({PARTS}): profile(7, b'x', more=True); stdin.readline()"
    body = f"say('ready', processes=[{{'pid': 7}}]); read()\n{parts}\nsay('done', left=[]); read()"
    session = prepared(talk, body, replace(SAMPLING, part=10.0))
    clock = itertools.count(0, seconds)
    monkeypatch.setattr(agent_session, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    session.start()
    heads = (event for event in session.events() if isinstance(event, ProfileHeader))
    return sum(len(list(session.payload(head))) for head in heads)


def test_a_recording_of_hours_has_many_parts(talk, monkeypatch):
    assert parts_of(talk, monkeypatch, seconds=10) == PARTS


def test_parts_that_come_too_often(talk, monkeypatch):
    with pytest.raises(HostError, match="too many events"):
        parts_of(talk, monkeypatch, seconds=0)


FOLLOWS = "say('ready', processes=[]); followed(); read(); say('recording', processes=0); "


def follows(talk, body: str) -> AgentSession:
    """A session that records nothing yet, and follows."""
    session = talk(f"hello(); read(); {FOLLOWS}{body}; read()")
    session.prepare(Plan(SAMPLING), [])
    session.follow(requests.Find(selector=ANY.query))
    session.start()
    return session


def appears(*pids: int) -> str:
    return f"say('appeared', processes=[process(pid) for pid in {pids}], ignored=[])"


def test_a_process_that_appears_joins(talk):
    joined = "pid = read()['processes'][0]['pid']; say('started', pid=pid, engine='perf', sources={})"
    session = follows(talk, f"{appears(9)}; {joined}; outcome(pid); say('done', left=[])")
    seen = []
    for event in session.events():
        seen.append(type(event).__name__)
        if isinstance(event, Appeared):
            assert session.join(event.processes) and session.join(event.processes)
    assert seen == ["Recording", "Appeared", "Started", "ProcessOutcome", "Done"]
    assert not session.join([SEVEN]), "the recording is over"


def test_who_joins_too_late_has_an_outcome_before_the_end(talk):
    """The agent was done before it received the request."""
    late = "say('done', left=[]); [outcome(one['pid'], 'failed', 'start') for one in read()['processes']]"
    session = follows(talk, f"{appears(7, 9)}; {late}")
    seen = []
    for event in session.events():
        seen.append(type(event).__name__)
        if isinstance(event, Appeared):
            assert session.join(event.processes)
    assert seen == ["Recording", "Appeared", "ProcessOutcome", "ProcessOutcome", "Done"]


@pytest.mark.parametrize("body", [appears(9, 9), f"{appears(9)}; {appears(8, 9)}"])
def test_a_process_appears_once(talk, body):
    with pytest.raises(HostError, match="named a process twice"):
        list(follows(talk, body).events())


@pytest.mark.parametrize("what", ["pauses(7)", "metrics()"])
def test_pauses_and_metrics_that_were_not_asked_for(talk, what):
    body = f"say('ready', processes=[{{'pid': 7}}]); read(); {what}; read()"
    session = prepared(talk, body, replace(SAMPLING, timeline=False))
    session.start()
    with pytest.raises(HostError, match="was not asked for"):
        list(session.events())


def test_the_clock_of_a_host(talk, tmp_path):
    """It is read before the first `prepare`, which has the offset."""
    asked = tmp_path / "asked"
    keep = f"request = read(); open({str(asked)!r}, 'w').write(str(request['clock_offset']))"
    prepare = f"{keep}; say('ready', processes=[])"
    session = talk(f"AHEAD = 3600\nhello(); {prepare}; {prepare}; read()")
    for _ in range(2):
        session.prepare(Plan(SAMPLING), [SEVEN])
        assert session.clock.offset == pytest.approx(3600, abs=session.clock.uncertainty)
        assert float(asked.read_text()) == session.clock.offset


@pytest.mark.parametrize(
    ("readings", "offset", "uncertainty"),
    [
        ([(100.0, 107.3, 100.5)], 7.05, 0.25),
        ([(100.0, 90.0, 100.5)], -10.25, 0.25),
        # The shortest round trip counts, whatever the others say.
        ([(100.0, 109.0, 104.0), (200.0, 207.0, 200.2), (300.0, 308.0, 301.0)], 6.9, 0.1),
        # Clocks that may agree: the host's says a moment of the exchange.
        ([(100.0, 100.0, 100.5)], 0.0, 0.5),
        ([(100.0, 100.3, 100.5)], 0.0, 0.3),
    ],
)
def test_how_far_a_clock_is_ahead(readings, offset, uncertainty):
    clock = Clock.of(ClockReading(*one) for one in readings)
    assert (clock.offset, clock.uncertainty) == pytest.approx((offset, uncertainty))


def test_an_incomplete_library(talk, stand_ins):
    session = talk("hello(); read(stores=False); say('stored', sha256='0' * 64); read()")
    with pytest.raises(HostError, match="arrived incomplete"):
        session.put("lib", stand_ins.binaries("").blobs["async-profiler"]["x86_64"])


def test_an_agent_that_reports_leftovers_is_not_killed(talk, tmp_path):
    """It may still have something to remove."""
    done = tmp_path / "done"
    goes_on = f"sys.stdin.buffer.read(); open({str(done)!r}, 'w')"
    session = talk(f"hello(); read(); say('left', left=['/tmp/a: why']); {goes_on}")
    assert session.bye() == ("/tmp/a: why",)
    session.last_words(60)
    session.let_go()
    wait_for("its work", done.exists)


@pytest.mark.parametrize(
    ("status", "told", "help_is_offered"),
    [
        (None, "the connection was lost", False),
        (1, "the agent ended with status 1", False),
        (SOME_SIGNAL, "the agent was killed by a signal while the connection was up", True),
        (128 + signal.SIGKILL, "the agent ended with status 137 (SIGKILL)", True),
        (-999, "the agent ended with status -999", False),
    ],
)
def test_exit_statuses_of_the_agent(status: int | None, told: str, help_is_offered: bool) -> None:
    how, remedy = how_it_ended(status)
    assert how == told and ("dmesg" in remedy) is help_is_offered
