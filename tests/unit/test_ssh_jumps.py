"""A jump host for many hosts: it is tried once for all, and closing a transport ends its waiting."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest

from hprofiler.base.errors import HostError
from hprofiler.model import Host
from hprofiler.transport.ssh import connector
from hprofiler.transport.ssh.connector import SshConnector
from hprofiler.transport.ssh.route import SshOptions
from tests.lab.procs import PATIENCE


class Gate:
    """A jump host that does not answer until `over` is set, and then fails."""

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
    with closing(SshConnector(SshOptions(config_path=config))) as made:
        yield made


@pytest.fixture
def pool(gate):
    """A thread for each host."""
    with ThreadPoolExecutor(10) as made:
        yield made
        gate.over.set()


def test_a_dead_jump_host_is_tried_once(gate, ssh, pool):
    """Also for hosts in the queue of --parallel; a later attempt tries again."""
    transports = [ssh.transport(Host(f"n{number}", f"n{number}")) for number in range(10)]
    waiting = [pool.submit(transport.connect) for transport in transports[:5]]
    assert gate.asked.wait(PATIENCE)
    gate.over.set()
    errors = [one.exception(PATIENCE) for one in waiting]
    errors += [pool.submit(one.connect).exception(PATIENCE) for one in transports[5:]]
    assert {str(error) for error in errors} == {"jump host: no answer of gate"}
    assert gate.tries == 1
    with pytest.raises(HostError, match="jump host: no answer"):
        ssh.transport(Host("n1", "n1")).connect()
    assert gate.tries == 2


def test_closing_ends_the_waiting(gate, ssh, pool):
    """Once both transports are closed, the attempt is given up."""
    one, two = (ssh.transport(Host(name, name)) for name in ("n1", "n2"))
    first = pool.submit(one.connect)
    assert gate.asked.wait(PATIENCE)
    second = pool.submit(two.connect)
    two.close()
    assert "closed by hprofiler" in str(second.exception(PATIENCE))
    assert not gate.over.is_set()
    one.close()
    assert "closed by hprofiler" in str(first.exception(PATIENCE))
    assert gate.over.wait(PATIENCE) and gate.tries == 1
