"""The agent's client against agents that misbehave: a lie ends in a HostError, never a crash or a hang."""

from __future__ import annotations

import signal
import threading
from contextlib import closing
from types import SimpleNamespace

import pytest

from hprofiler.agent import AgentSession, Plan, ProfileHeader
from hprofiler.agent.talk import how_it_ended
from hprofiler.base.errors import HostError
from hprofiler.model import Process
from hprofiler.transport.base import SOME_SIGNAL
from tests.lab.procs import wait_for
from tests.unit.stand_in import ANY, SAMPLING, local

SEVEN = Process("here", 7, 1, 0, "root", "M")


@pytest.fixture
def talk(stand_ins):
    """A session with a scripted agent; what it is asked is asked on a limited time."""
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
        ("os.kill(os.getpid(), 9)", "ended with status -9|lost"),
        ("read(); sys.stderr.write('out of\\x1b[2J luck'); sys.exit(1)", "out of\ufffd"),
        ("read(); out(b'garbage\\n'); read()", "not a JSON line"),
        ("read(); out(b'{}\\n'); read()", "missing required field `type`"),
        ("hello(protocol=1); read()", "another version"),
        ("read(); say('ready', processes=[]); read()", "'ready' instead of hello"),
        ("read(); say('error', reason='no lease', remedy='pay'); sys.exit(1)", "no lease"),
        ("read(); say('error'); sys.exit(1)", "gave up"),
        ("read(); out(b'x' * (17 << 20))", "more than 16777216 bytes"),
    ],
)
def test_a_greeting_gone_wrong(talk, body, says):
    with pytest.raises(HostError, match=says) as caught:
        talk(body)
    assert caught.value.stage == "connect"


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        ("say('found', searched=1, processes=[process(5), process(5)], ignored=[])", "twice"),
        ("say('ready', processes=[])", "instead of found"),
        ("sys.exit(0)", "ended with status 0"),
        ("out(b'[' * 1000000 + b'\\n')", "got `array`"),
    ],
)
def test_an_answer_gone_wrong(talk, answer, says):
    session = talk(f"hello(); read(); {answer}; read()")
    with pytest.raises(HostError, match=says) as caught:
        session.find(ANY.query)
    assert caught.value.stage == "find"


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
def test_preparing_gone_wrong(talk, body, says):
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
        ("profile(7, b'x', timeline=[1] * 100)", "the timeline is longer than the recording"),
        ("profile(8, b'x')", "not asked for"),
        ("say('surprise')", "Invalid value 'surprise'"),
        ("say('ready', processes=[])", "unexpected event 'ready'"),
        ("[say('recording', processes=1) for _ in range(3000)]", "too many events"),
    ],
)
def test_recording_gone_wrong(talk, events, says):
    session = prepared(talk, f"say('ready', processes=[{{'pid': 7}}]); read(); {events}; read()")
    session.start()
    with pytest.raises(HostError, match=says):
        for event in session.events():
            if isinstance(event, ProfileHeader):
                list(session.payload(event))


def headers(session):
    session.start()
    return next(event for event in session.events() if isinstance(event, ProfileHeader))


READY = "say('ready', processes=[{'pid': 7}]); read(); "


def test_a_damaged_profile_is_known_only_at_its_end(talk):
    session = prepared(talk, READY + "profile(7, b'x' * 300000, sha256='0' * 64); read()")
    pieces = session.payload(headers(session))
    assert next(pieces)
    with pytest.raises(HostError, match="damaged") as caught:
        list(pieces)
    assert caught.value.stage == "fetch"


def test_a_profile_that_breaks_off(talk):
    session = prepared(talk, READY + "profile(7, b'x' * 1000, size=2000); sys.exit(3)")
    with pytest.raises(HostError, match="status 3") as caught:
        list(session.payload(headers(session)))
    assert caught.value.stage == "fetch"


def test_a_library_that_does_not_arrive_whole(talk, stand_ins):
    session = talk("hello(); read(); say('stored', sha256='0' * 64); read()")
    with pytest.raises(HostError, match="arrived incomplete"):
        session.put("lib", stand_ins.binaries("").blobs["async-profiler"]["x86_64"])


def test_the_transport_s_end_sets_a_blocked_call_free(stand_ins):
    transport = local()
    session = AgentSession.open(transport, stand_ins.binaries("hello(); read(); read()"))
    threading.Timer(0.2, transport.close).start()
    with pytest.raises(HostError):
        session.find(ANY.query)


def test_goodbye_to_an_agent_that_fails_at_it(talk):
    session = talk("hello(); read(); sys.stderr.write('cannot delete'); sys.exit(5)")
    with pytest.raises(HostError, match="status 5: cannot delete") as caught:
        session.bye()
    assert caught.value.stage == "clean"


def test_an_agent_that_says_what_it_left_is_neither_waited_for_nor_ended(talk, tmp_path):
    """It may have something to take away yet."""
    done = tmp_path / "done"
    goes_on = f"sys.stdin.buffer.read(); open({str(done)!r}, 'w')"
    session = talk(f"hello(); read(); say('left', left=['/tmp/a: why']); {goes_on}")
    assert session.bye() == ("/tmp/a: why",)
    session.last_words(60)
    session.let_go()
    wait_for("its work", done.exists)


def test_a_witness_hears_how_it_was_let_go(stand_ins):
    """Also where nobody waits for an answer."""
    asked = []
    transport = local()
    witness = SimpleNamespace(asks=lambda request: asked.append(request["type"]), did=lambda action: None)
    session = AgentSession.open(transport, stand_ins.binaries("hello(); read()"), witness=witness)
    session.let_go()
    session.let_go()
    transport.close()
    assert asked[-1] == "bye" and asked.count("bye") == 1


def test_noise_of_login_scripts_is_skipped(stand_ins):
    class Noisy:
        """A login shell that greets on stdout."""

        def __init__(self):
            self._inner = local()

        def __getattr__(self, name):
            return getattr(self._inner, name)

        def open(self, command):
            return self._inner.open("echo Welcome to the host; echo; " + command)

    with closing(AgentSession.open(Noisy(), stand_ins.binaries("hello(); read()"))) as session:
        assert session.hello.facts.name == "here"
        session.bye()


@pytest.mark.parametrize(
    ("status", "told", "help_is_offered"),
    [
        (None, "the connection was lost", False),
        (1, "the agent ended with status 1", False),
        (SOME_SIGNAL, "the agent was killed by a signal while the connection was up", True),
        (-signal.SIGKILL, "the agent ended with status -9 (SIGKILL)", True),
        (128 + signal.SIGKILL, "the agent ended with status 137 (SIGKILL)", True),
        (128 + signal.SIGTERM, "the agent ended with status 143 (SIGTERM)", False),
        (255, "the agent ended with status 255", False),
        (-999, "the agent ended with status -999", False),
    ],
)
def test_how_it_ended(status: int | None, told: str, help_is_offered: bool) -> None:
    how, remedy = how_it_ended(status)
    assert how == told and ("dmesg" in remedy) is help_is_offered
