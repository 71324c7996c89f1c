"""A jump host that many hosts are behind: one try for all who wait, and who is closed waits no longer."""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue

import pytest

from hprofiler.base.errors import HostError
from hprofiler.model import Host
from hprofiler.transport import SshConnector, SshOptions
from hprofiler.transport.ssh import connector
from hprofiler.transport.ssh.jumps import Jumps
from hprofiler.transport.ssh.sockets import Attempt
from tests.lab.procs import PATIENCE, wait_for


class Gate:
    """A jump host that answers nobody until its time is over."""

    def __init__(self) -> None:
        self.tries = 0
        self.asked = threading.Event()
        self.over = threading.Event()

    def dial(self, route, seconds, on_close):
        self.tries += 1
        on_close(self.over.set)
        self.asked.set()
        assert self.over.wait(PATIENCE)
        raise HostError("connect", f"no answer of {route.hostname}")


@pytest.fixture
def gate(monkeypatch):
    gate = Gate()
    monkeypatch.setattr(connector, "dial", gate.dial)
    yield gate
    gate.over.set()


@pytest.fixture
def ssh(tmp_path):
    config = tmp_path / "config"
    config.write_text("Host gate\n ProxyJump none\nHost *\n ProxyJump gate\n")
    with SshConnector(SshOptions(config_path=config)) as made:
        yield made


class Waiting:
    """One host's thread; `error` is what it ended with."""

    def __init__(self, connect: Callable[[], object]) -> None:
        self._ended: SimpleQueue[BaseException | object] = SimpleQueue()
        self._connect = connect
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        try:
            self._ended.put(self._connect())
        except BaseException as error:
            self._ended.put(error)

    def end(self) -> object:
        return self._ended.get(timeout=PATIENCE)


def test_a_dead_jump_host_is_tried_once_for_all_who_wait_for_it(gate, ssh):
    """Those in the queue of --parallel wait as well; who comes back later tries anew."""
    transports = [ssh.transport(Host(f"n{number}", f"n{number}")) for number in range(10)]
    waiting = [Waiting(transport.connect) for transport in transports[:5]]
    assert gate.asked.wait(PATIENCE)
    gate.over.set()
    errors = [one.end() for one in waiting] + [Waiting(one.connect).end() for one in transports[5:]]
    assert {str(error) for error in errors} == {"jump host: no answer of gate"}
    assert gate.tries == 1
    with pytest.raises(HostError, match="jump host: no answer"):
        ssh.transport(Host("n1", "n1")).connect()
    assert gate.tries == 2


def test_who_is_closed_waits_no_longer(gate, ssh):
    """The second one that waits, then the first: nobody is left, and the jump host is given up."""
    one, two = (ssh.transport(Host(name, name)) for name in ("n1", "n2"))
    first = Waiting(one.connect)
    assert gate.asked.wait(PATIENCE)
    second = Waiting(two.connect)
    two.close()
    assert "closed by hprofiler" in str(second.end())
    assert not gate.over.is_set()
    one.close()
    assert "closed by hprofiler" in str(first.end())
    assert gate.over.wait(PATIENCE) and gate.tries == 1


class Link:
    def is_active(self) -> bool:
        return True


class Hop:
    where = "gate"


HOPS = (Hop(),)


def test_who_began_to_connect_may_go_and_the_others_have_the_connection():
    goes_on, asked, links, closed = threading.Event(), threading.Event(), [], threading.Event()

    def connect(hops, attempt):
        attempt.on_close(closed.set)
        asked.set()
        assert goes_on.wait(PATIENCE)
        links.append(Link())
        return links[-1]

    jumps, attempts = Jumps(connect), [Attempt() for _ in range(3)]
    first = Waiting(lambda: jumps.link(HOPS, attempts[0]))
    assert asked.wait(PATIENCE)
    others = [Waiting(lambda attempt=attempt: jumps.link(HOPS, attempt)) for attempt in attempts[1:]]
    wait_for("three to wait", lambda: jumps._jumps[HOPS].waiting == 3)
    attempts[0].close()
    assert "closed by hprofiler" in str(first.end()) and not closed.is_set()
    goes_on.set()
    assert [one.end() for one in others] == links * 2 and len(links) == 1
    jumps.close()
    assert closed.is_set()


def test_a_mistake_while_connecting_reaches_whoever_waits():
    def connect(hops, attempt):
        raise RuntimeError("can't start new thread")

    with pytest.raises(RuntimeError, match="new thread"):
        Jumps(connect).link(HOPS, Attempt())
