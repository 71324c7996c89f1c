"""A host whose connection breaks while it records: real sshd, agent and JVM; what was recorded is fetched."""

from __future__ import annotations

import os
import re
import shutil
import signal
import threading
from pathlib import Path

import pytest

from hprofiler.agent import session
from hprofiler.base.errors import ConnectionLost
from hprofiler.collect import Reach, Stop, collect, reconnect
from hprofiler.model import Sampling, Status
from tests.burners.burner import Burner
from tests.contract import real
from tests.contract.cleaning import clean
from tests.contract.conftest import as_burnt, is_profiled
from tests.contract.real import Profiles, is_good, of_host, of_processes
from tests.contract.sshd import SSHD, Site, agents_ended, agents_of
from tests.lab.procs import wait_for
from tests.viewer.made_run import coverage_of

pytestmark = [
    pytest.mark.skipif(not Path(SSHD).exists(), reason="sshd is not installed (openssh-server)"),
    pytest.mark.skipif(bool(real.why_not()), reason=str(real.why_not())),
]
LONG = 300.0
"""Seconds of a recording that is sure to be interrupted."""


@pytest.fixture
def burner():
    made = Burner(role="alpha", load=0.5, extra=[f"comeback{os.getpid()}"])
    yield made
    made.kill()


@pytest.fixture
def site(tmp_path):
    made = Site(tmp_path)
    yield made
    made.close()


class Run:
    """A run over one host, on a thread; `steps` are what it tells."""

    def __init__(self, host, burner, transport_for, seconds=LONG, timeout=60.0):
        self.stop, self.steps, self.sink = Stop(), [], Profiles()
        self.recording, self.lost = threading.Event(), threading.Event()
        reach = Reach(transport_for, real.binaries(), timeout=timeout)
        selector = real.text(f"comeback{os.getpid()}")
        sampling = Sampling(("cpu",), 499, seconds)

        def work():
            (self.result,) = collect([host], selector, sampling, reach, self.sink, self._hear, self.stop)

        self._thread = threading.Thread(target=work)
        self._thread.start()
        assert self.recording.wait(60), self.steps
        before = burner.counters()
        if seconds == LONG:
            wait_for("CPU time", lambda: (burner.counters() - before).nanos > 1e9)

    def _hear(self, step):
        self.steps.append(step)
        if step.stage == "record":
            self.recording.set()
        if step.stage == "lost":
            self.lost.set()

    def end(self):
        self._thread.join(120)
        assert not self._thread.is_alive(), self.steps
        return self.result


def was_fetched(run, burner):
    result = run.end()
    (line,) = of_processes(result)
    assert line.status is Status.DEGRADED, line
    assert re.search(
        r"ended after \d+ s: the connection was lost; the recording was fetched \d+ s later", line.reason
    )
    assert not of_host(result), result.outcomes
    assert line.seconds is not None and not coverage_of(result).complete, "time is missing"
    (recording,) = result.recordings
    assert recording.process.pid == burner.pid and 0.5 < recording.seconds < LONG / 2
    assert as_burnt(run.sink.kept[result.host.name])
    assert result.bytes_received > 1000
    return result


SUDO = pytest.param(
    "sudo", marks=pytest.mark.skipif(not shutil.which("sudo"), reason="sudo is not installed")
)


@pytest.mark.parametrize("become", [None, SUDO])
def test_the_session_is_killed(site, burner, become):
    server = site.server()
    run = Run(site.host(server), burner, site.connector(become=become).transport)
    agents = agents_of(server)
    server.kill_sessions()
    was_fetched(run, burner)
    assert agents_ended(agents)
    assert not is_profiled(burner.pid)


@pytest.mark.nightly
def test_the_host_is_away_for_a_while(site, burner):
    server = site.server()
    run = Run(site.host(server), burner, site.connector().transport)
    agents = agents_of(server)
    server.kill_sessions(and_stop=True)
    assert run.lost.wait(60)
    wait_for("a JVM that is let go", lambda: not is_profiled(burner.pid))
    server.start()
    was_fetched(run, burner)
    assert agents_ended(agents)


@pytest.mark.nightly
def test_a_killed_agent_is_reported_and_cleanup_removes_what_it_left(site, burner, start_agent):
    server = site.server()
    run = Run(site.host(server), burner, site.connector().transport)
    for agent in agents_of(server):
        signal.pidfd_send_signal(agent, signal.SIGKILL)
        os.close(agent)
    result = run.end()
    (line,) = of_host(result)
    assert (line.status, line.stage) == (Status.FAILED, "record")
    assert line.reason.startswith("the agent was killed by a signal while the connection was up")
    assert "what was not fetched before is lost" in line.reason
    assert "dmesg" in line.remedy and "hprofiler cleanup" in line.remedy
    assert [one.lost for one in of_processes(result)] == [True]
    cleaner = start_agent()
    cleaner.hello()
    assert burner.pid in clean(cleaner)["stopped"]
    assert cleaner.bye() == 0


def test_a_host_that_stays_away_is_given_up(site, burner, monkeypatch):
    monkeypatch.setattr(reconnect, "LEASE_SECONDS", 2)
    server = site.server()
    run = Run(site.host(server), burner, site.connector().transport)
    server.kill_sessions(and_stop=True)
    result = run.end()
    (line,) = of_host(result)
    assert line.status is Status.FAILED and re.search(r"could not be restored within \d+ s: ", line.reason), (
        line
    )
    assert "refused" in line.reason


@pytest.mark.nightly
def test_the_second_ctrl_c_ends_the_waiting(site, burner, monkeypatch):
    monkeypatch.setattr(reconnect, "LEASE_SECONDS", 600)
    server = site.server()
    run = Run(site.host(server), burner, site.connector().transport)
    server.kill_sessions(and_stop=True)
    assert run.lost.wait(60)
    run.stop.request()
    run.stop.request()
    (line,) = of_host(run.end())  # within the time that it waits
    assert "interrupted" in line.reason


@pytest.mark.nightly
def test_ended_at_once_nothing_is_kept(site, burner, monkeypatch):
    monkeypatch.setattr(session, "LEASE_SECONDS", 600)
    server = site.server()
    run = Run(site.host(server), burner, site.connector().transport)
    agents = agents_of(server)
    run.stop.request()
    run.stop.request()
    assert agents_ended(agents), "it was kept for a lease"
    run.end()
    assert not is_profiled(burner.pid)


class Cut:
    """Transports of which the first loses its connection after so many bytes of the result."""

    def __init__(self, connector, after):
        self._connector = connector
        self._after = after
        self.made = 0

    def __call__(self, host):
        transport = self._connector.transport(host)
        self.made += 1
        if self.made == 1:
            opened = transport.open
            transport.open = lambda command: CutChannel(opened(command), transport, self._after)
        return transport


class CutChannel:
    def __init__(self, channel, transport, after):
        self._channel = channel
        self._transport = transport
        self._left = None
        self._after = after

    def __getattr__(self, name):
        return getattr(self._channel, name)

    def read(self, size):
        if self._left == 0:
            self._transport.close()
            raise ConnectionLost("connect", "the connection was cut")
        piece = self._channel.read(size if self._left is None else min(size, self._left))
        at = piece.find(b'{"type":"profile"')
        if self._left is None and at >= 0:
            piece, rest = piece[: at + self._after], piece[at + self._after :]
            self._left = 0 if rest else self._after - (len(piece) - at)
        elif self._left is not None:
            self._left -= len(piece)
        return piece


@pytest.mark.parametrize("after", [1, 20, 700, 1500])
def test_a_transfer_that_breaks_goes_on_where_it_broke(site, burner, after):
    cut = Cut(site.connector(), after)
    run = Run(site.host(site.server()), burner, cut, seconds=1.0)
    result = run.end()
    assert cut.made == 2 and run.lost.is_set()
    (line,) = of_processes(result)
    assert is_good(line)
    (line,) = of_host(result)
    assert (line.status, line.stage) == (Status.OK, "fetch") and "nothing is missing" in line.reason
    assert run.sink.kept["a"].startswith(b"HPT1")
