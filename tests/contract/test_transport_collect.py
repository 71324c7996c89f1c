"""Runs with the real agent, a real JVM and a real sshd: results, and hosts that break off or freeze."""

from __future__ import annotations

import os
import re
import shutil
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from hprofiler.agent import session
from hprofiler.base.errors import ConnectionLost
from hprofiler.cli.terminal.top_table import TopTable
from hprofiler.collect.checking import find_only
from hprofiler.collect.dumping import Looks, dump
from hprofiler.collect.recording import collect
from hprofiler.collect.stop import Stop
from hprofiler.collect.visit_group import Reach
from hprofiler.collect.watching import watch
from hprofiler.model import Host, Sampling, Selector, Status
from hprofiler.runfolder.dumps import DumpFolder
from tests.burners.burner import Burner
from tests.contract import real
from tests.contract.agent_driver import as_burnt, leftovers
from tests.contract.conftest import is_profiled
from tests.contract.real import Profiles, is_good, of_host, of_processes
from tests.contract.sshd import SSHD, agents_ended, agents_of, free_port
from tests.lab.procs import wait_for
from tests.unit.limits import Limits
from tests.viewer.made_run import coverage_of

pytestmark = [
    pytest.mark.skipif(not Path(SSHD).exists(), reason="sshd is not installed (openssh-server)"),
    pytest.mark.skipif(bool(real.why_not()), reason=str(real.why_not())),
]
WORD = f"collectme{os.getpid()}"
LONG = 300.0
"""Seconds of a recording that is sure to be interrupted."""


@pytest.fixture(scope="module")
def burner():
    made = Burner(load=0.5, extra=[WORD])
    yield made
    made.kill()


class Run:
    """A run on a thread; `steps` are what it reports."""

    def __init__(self, hosts, transport_for, seconds=1.0, word=WORD):
        self.stop, self.steps, self.sink = Stop(), [], Profiles()
        self.recording, self.lost = threading.Event(), threading.Event()
        reach = Reach(transport_for, real.binaries(), timeout=60.0)
        sampling = Sampling(("cpu",), 499, seconds)

        def work():
            args = (hosts, real.text(word), sampling, reach, self.sink, self._hear, self.stop)
            self._results = {result.name: result for result in collect(*args)}

        self._thread = threading.Thread(target=work)
        self._thread.start()

    def _hear(self, step):
        self.steps.append(step)
        {"record": self.recording, "lost": self.lost}.get(step.stage, threading.Event()).set()

    def burn_a_while(self, burner):
        """Until something is recorded."""
        assert self.recording.wait(60), self.steps
        burner.burn(5e8)

    def results(self):
        self._thread.join(120)
        assert not self._thread.is_alive(), self.steps
        return self._results

    def result(self):
        (result,) = self.results().values()
        return result


def assert_good(result, burner):
    (recording,) = result.recordings
    assert recording.process.pid == burner.pid and recording.samples.taken > 5
    (line,) = of_processes(result)
    assert is_good(line)


def test_over_ssh_with_one_host_down_and_one_idle(site, burner):
    hosts = [site.host(site.server(), "up"), Host("down", "127.0.0.1", None, free_port())]
    run = Run(hosts, site.connector().transport)
    results = run.results()
    assert_good(results["up"], burner)
    assert results["up"].facts.cpus == os.cpu_count() and set(run.sink.kept) == {"up"}
    (line,) = of_host(results["down"])
    assert (line.status, line.stage) == (Status.FAILED, "connect") and "refused" in line.reason
    (line,) = of_host(Run(hosts[:1], site.connector().transport, word="no-such-job").result())
    assert line.status is Status.IDLE and "searched" in line.reason


def test_threads_are_dumped_over_ssh_with_one_host_down(site, burner, tmp_path):
    hosts = [site.host(site.server(), "up"), Host("down", "127.0.0.1", None, free_port())]
    folder = DumpFolder.create(tmp_path / "dump")
    reach = Reach(site.connector().transport, real.binaries(), timeout=60.0)
    up, down = dump(hosts, real.text(WORD), Looks(times=2, every=0.5), reach, folder)
    folder.release()
    assert [(one.pid, one.look, one.kind) for one in up.dumps] == [(burner.pid, n, "jvm") for n in (1, 2)]
    texts = [folder.text_path("up", one).read_text() for one in up.dumps]
    assert all("Full thread dump" in text and "Burner" in text for text in texts)
    assert up.dumps[1].time - up.dumps[0].time >= 0.4 and not up.outcomes
    (line,) = down.outcomes
    assert (line.status, line.stage) == (Status.FAILED, "connect")


def test_hosts_are_watched_over_ssh_until_the_end_with_one_down(site, burner):
    """What `hprofiler top` shows."""
    servers = {"a": site.server(), "b": site.server()}
    hosts = [
        *(site.host(*pair) for pair in zip(servers.values(), servers, strict=True)),
        Host("down", "127.0.0.1", None, 1),
    ]
    table, stop = TopTable([host.name for host in hosts]), Stop()

    def end_it():
        table.wait_for_all(60)
        running = [handle for server in servers.values() for handle in agents_of(server)]
        stop.finish()
        assert len(running) == 2
        assert agents_ended(running)

    with ThreadPoolExecutor() as threads:
        ending = threads.submit(end_it)
        reach = Reach(site.connector().transport, real.binaries(), timeout=60.0)
        found = watch(hosts, real.text(WORD), reach, table.add, table.listen, stop)
        ending.result(60)
    a, b, _ = (table.record()[host.name] for host in hosts)
    assert a["figures"]["cpu"] and b["figures"]["cpu"]
    # Both are this machine: its process counts once.
    assert {a["processes"], b["processes"]} == {0, 1} and a["job_cpu"] + b["job_cpu"] > 0
    codes = {one.code for host in found for one in host.outcomes}
    assert codes == {"recorded-elsewhere", "no-match", "connection-refused"}


@pytest.mark.parametrize("text", [f"grep {WORD} | grep -v root-of-all", f"grep {WORD} | awk '{{print $2}}'"])
def test_a_pipe_is_run_on_the_host(site, burner, text):
    pipe = Selector(text, "pipe", {"kind": "pipe", "pipe": text})
    reach = Reach(site.connector().transport, real.binaries())
    (result,) = find_only([site.host(site.server())], pipe, reach)
    assert [process.pid for process in result.processes] == [burner.pid], result


# Connections that break


@pytest.fixture
def interrupted(site, burner):
    """Starts a run over one server, in the middle of a recording; its agents, and the run."""

    def start(**options):
        server = site.server()
        run = Run([site.host(server)], site.connector(**options).transport, seconds=LONG)
        run.burn_a_while(burner)
        return server, agents_of(server), run

    return start


def assert_fetched(run, burner):
    result = run.result()
    (line,) = of_processes(result)
    reason = r"ended after \d+ s: the connection was lost; the recording was fetched \d+ s later"
    assert line.status is Status.DEGRADED and re.search(reason, line.reason), line
    assert not of_host(result), result.outcomes
    assert line.seconds is not None and not coverage_of(result).complete, "time is missing"
    (recording,) = result.recordings
    assert recording.process.pid == burner.pid and 0.5 < recording.seconds < LONG / 2
    assert as_burnt(run.sink.kept["a"]) and result.bytes_received > 1000
    assert not is_profiled(burner.pid)


SUDO = pytest.param(
    "sudo", marks=pytest.mark.skipif(not shutil.which("sudo"), reason="sudo is not installed")
)


@pytest.mark.parametrize("become", [None, SUDO])
def test_the_session_is_killed(interrupted, burner, become):
    server, agents, run = interrupted(become=become)
    server.kill_sessions()
    assert_fetched(run, burner)
    assert agents_ended(agents)


@pytest.mark.nightly
def test_a_killed_agent_is_reported_and_cleanup_removes_its_leftovers(interrupted, burner, new_agent):
    _, agents, run = interrupted()
    for agent in agents:
        signal.pidfd_send_signal(agent, signal.SIGKILL)
        os.close(agent)
    (line,) = of_host(run.result())
    assert (line.status, line.stage) == (Status.FAILED, "record")
    assert line.reason.startswith("the agent was killed by a signal while the connection was up")
    assert "what was not fetched before is lost" in line.reason
    assert "dmesg" in line.remedy and "hprofiler cleanup" in line.remedy
    assert [one.lost for one in of_processes(run.result())] == [True]
    assert burner.pid in new_agent().clean()["stopped"]


@pytest.mark.nightly
def test_ended_at_once_nothing_is_kept(interrupted, burner, monkeypatch):
    monkeypatch.setattr(session, "LEASE_SECONDS", 600)
    _, agents, run = interrupted()
    run.stop.request()
    run.stop.request()
    assert agents_ended(agents), "it was kept for a lease"
    run.result()
    assert not is_profiled(burner.pid)


class CutChannel:
    """Loses its connection after so many bytes of the first profile."""

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


@pytest.mark.parametrize("after", [1, 700])
def test_a_transfer_that_breaks_goes_on_where_it_broke(site, burner, after):
    connector, made = site.connector(), []

    def transport_for(host):
        """The first is cut."""
        made.append(transport := connector.transport(host))
        if len(made) == 1:
            opened = transport.open
            transport.open = lambda command: CutChannel(opened(command), transport, after)
        return transport

    run = Run([site.host(site.server())], transport_for)
    assert_good(run.result(), burner)
    assert len(made) == 2 and run.lost.is_set()
    (line,) = of_host(run.result())
    assert (line.status, line.stage) == (Status.OK, "fetch") and "nothing is missing" in line.reason
    assert run.sink.kept["a"].startswith(b"HPT2")


@pytest.mark.nightly
def test_an_agent_that_stands_still_costs_its_host_alone_and_ends_once_it_goes_on(
    interrupted, burner, monkeypatch
):
    """Neither its lease nor its deadline runs in it meanwhile."""
    monkeypatch.setattr(session, "LEASE_SECONDS", 10)
    limits, before = Limits(monkeypatch), set(leftovers())
    _, agents, run = interrupted()
    for agent in agents:
        signal.pidfd_send_signal(agent, signal.SIGSTOP)
    limits.pass_time(2 * LONG)  # more than they may take for the recording and its end
    (line,) = of_host(run.result())
    assert (line.status, line.stage) == (Status.FAILED, "record")
    assert line.reason.startswith("timed out after ")
    for agent in agents:
        signal.pidfd_send_signal(agent, signal.SIGCONT)
    assert agents_ended(agents)
    wait_for("nothing left behind", lambda: not is_profiled(burner.pid) and set(leftovers()) <= before)
