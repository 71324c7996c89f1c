"""The main job's collect with the real agent, real JVMs and a real sshd."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from hprofiler.collect import Reach, Stop, collect, find_only
from hprofiler.model import Host, Sampling, Selector, Status
from hprofiler.transport import LocalTransport
from tests.burners.burner import Burner
from tests.contract import real
from tests.contract.real import Profiles, is_good, of_host, of_processes
from tests.contract.sshd import SSHD, agents_ended, agents_of, free_port
from tests.unit.limits import Limits

pytestmark = [
    pytest.mark.skipif(not Path(SSHD).exists(), reason="sshd is not installed (openssh-server)"),
    pytest.mark.skipif(bool(real.why_not()), reason=str(real.why_not())),
]
WORD = f"collectme{os.getpid()}"


@pytest.fixture(scope="module")
def burner():
    made = Burner(role="alpha", load=0.3, extra=[WORD])
    yield made
    made.kill()


def recorded(hosts, transport_for, seconds=1.0, timeout=60.0, stop=None, listener=None, word=WORD):
    """Results by host name, and the profiles."""
    sink = Profiles()
    reach = Reach(transport_for, real.binaries(), timeout=timeout)
    extra = {"listener": listener} if listener else {}
    sampling = Sampling(("cpu",), 499, seconds)
    results = collect(hosts, real.text(word), sampling, reach, sink, stop=stop, **extra)
    return {result.host.name: result for result in results}, sink.kept


def good(result, burner):
    (recording,) = result.recordings
    assert recording.process.pid == burner.pid and recording.samples.taken > 5
    (line,) = of_processes(result)
    assert is_good(line)


def test_locally(burner):
    results, profiles = recorded([Host("here", "localhost")], LocalTransport)
    good(results["here"], burner)
    assert profiles["here"].startswith(b"HPT1")
    assert not of_host(results["here"]), of_host(results["here"])


def test_over_ssh_with_one_host_down_and_one_idle_namesake(site, burner):
    server = site.server()
    hosts = [site.host(server, "up"), Host("down", "127.0.0.1", None, free_port())]
    results, profiles = recorded(hosts, site.connector().transport)
    good(results["up"], burner)
    assert results["up"].facts.cpus == os.cpu_count()
    (line,) = of_host(results["down"])
    assert (line.status, line.stage) == (Status.FAILED, "connect") and "refused" in line.reason
    assert set(profiles) == {"up"}
    results, _ = recorded(hosts[:1], site.connector().transport, word="no-such-job-anywhere")
    (line,) = of_host(results["up"])
    assert line.status is Status.IDLE and "searched" in line.reason


def test_a_machine_under_two_names_is_recorded_once(site, burner):
    server = site.server()
    line = server.known_hosts_line()
    site.known_hosts.write_text(line + line.replace(server.address, "localhost"))
    hosts = [site.host(server, "address"), replace(site.host(server, "name"), address="localhost")]
    results, profiles = recorded(hosts, site.connector().transport)
    (first,), (other,) = ([name for name in results if (name in profiles) is has] for has in (True, False))
    good(results[first], burner)
    note, idle = results[other].outcomes
    assert (note.status, idle.status) == (Status.DEGRADED, Status.IDLE)
    assert note.reason == f"1 process is left to {first}, which is the same machine"


@pytest.mark.parametrize("text", [f"grep {WORD} | grep -v root-of-all", f"grep {WORD} | awk '{{print $2}}'"])
def test_a_pipe_is_run_on_the_host(site, burner, text):
    server = site.server()
    pipe = Selector(text, "pipe", {"kind": "pipe", "pipe": text})
    (result,) = find_only([site.host(server)], pipe, Reach(site.connector().transport, real.binaries()))
    assert [process.pid for process in result.processes] == [burner.pid], result


class Recording:
    """Waits until some hosts record."""

    def __init__(self, hosts: int) -> None:
        self._left = hosts
        self.event = threading.Event()

    def __call__(self, step) -> None:
        if step.stage == "record":
            self._left -= 1
            if not self._left:
                self.event.set()


def in_the_middle(act, hosts, transport_for, **options):
    """Call `act` once all hosts record."""
    began = Recording(len(hosts))

    def wait():
        if began.event.wait(60):
            act()

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    found = recorded(hosts, transport_for, listener=began, **options)
    thread.join(60)
    return found


@pytest.mark.nightly
def test_a_host_that_freezes_in_the_middle_loses_its_own_part_only(site, burner, monkeypatch):
    limits = Limits(monkeypatch)
    frozen: list[int] = []
    agents: list[int] = []

    def freeze():
        agents.extend(agents_of(server))
        listed = subprocess.run(["pgrep", "-P", str(server.process.pid)], capture_output=True, text=True)
        frozen.extend(int(pid) for pid in listed.stdout.split())
        for pid in frozen:
            os.kill(pid, signal.SIGSTOP)
        limits.pass_time(300)  # more than it may take for the recording and its end

    server = site.server("b")
    hosts = [site.host(server, "frozen")]
    try:
        results, _ = in_the_middle(freeze, hosts, site.connector().transport, seconds=60.0)
        (line,) = of_host(results["frozen"])
        assert (line.status, line.stage) == (Status.FAILED, "record")
        assert line.reason.startswith("timed out after ")
    finally:
        for pid in frozen:
            with contextlib.suppress(ProcessLookupError):  # it may have seen its connection close
                os.kill(pid, signal.SIGCONT)
                os.kill(pid, signal.SIGTERM)
    assert agents_ended(agents)


def test_ctrl_c_keeps_what_was_recorded(site, burner):
    stop = Stop()

    def soon():
        time.sleep(1.0)  # something has to be recorded first
        stop.request()

    host = site.host(site.server())
    results, profiles = in_the_middle(soon, [host], site.connector().transport, seconds=60.0, stop=stop)
    good(results["a"], burner)
    assert 0.5 < results["a"].recordings[0].seconds < 50 and profiles["a"]


@pytest.mark.nightly
def test_many_hosts_and_flat_memory(site, burner):
    """Idle sessions on one sshd, more than MaxStartups likes: all get through."""
    server = site.server(extra="MaxStartups 10:30:40\nMaxSessions 10")
    hosts = [replace(site.host(server), name=f"h{number}") for number in range(24)]
    results, _ = recorded(hosts, site.connector().transport, word="no-such-job-anywhere", timeout=60.0)
    assert [of_host(result)[0].status for result in results.values()] == [Status.IDLE] * 24, results
