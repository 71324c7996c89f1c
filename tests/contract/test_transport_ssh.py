"""The SSH transport against a real sshd on loopback."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from hprofiler.base.errors import HostError
from hprofiler.model import Host
from tests.contract.sshd import SSHD, connect_together, connected, free_port, refused
from tests.lab import procs

pytestmark = pytest.mark.skipif(not Path(SSHD).exists(), reason="sshd is not installed (openssh-server)")


# Commands


def test_bytes_go_through_unharmed_and_exit_status_and_stderr_come_back(site):
    transport = connected(site, site.server())
    everything = bytes(range(256)) * 20000
    done = transport.run("cat; echo trouble >&2; exit 3", everything, 60)
    assert done.stdout == everything and done.exit_status == 3 and done.stderr == "trouble"
    assert transport.bytes_sent == transport.bytes_received == len(everything)


def test_stderr_is_kept_to_its_last_4_kib_and_never_blocks(site):
    transport = connected(site, site.server())
    done = transport.run("yes complaint | head -c 5000000 >&2; echo the end >&2; echo out", b"", 60)
    assert done.stdout == b"out\n" and len(done.stderr) <= 4096 and done.stderr.endswith("the end")


def test_a_command_that_takes_too_long_or_says_too_much(site):
    transport = connected(site, site.server())
    with pytest.raises(HostError, match=r"did not end within 0\.3 s"):
        transport.run("sleep 60", b"", 0.3)
    with pytest.raises(HostError, match="larger than 16 MiB"):
        transport.run("yes", b"", 60)
    assert transport.run("echo still here", b"", 60).stdout == b"still here\n"


def test_close_sets_a_reader_free(site):
    transport = connected(site, site.server())
    channel = transport.open("sleep 600")
    threading.Timer(0.2, transport.close).start()
    assert channel.read(10) == b"" and channel.exit_status(0.1) is None
    transport.close()
    with pytest.raises(HostError, match="lost"):
        transport.open("true")


# ssh_config and proxies


def test_ssh_config_leads_to_the_host(site):
    server = site.server()
    site.config.write_text(
        f"Host alias\n HostName {server.address}\n Port {server.port}\n"
        f" User {site.user}\n IdentityFile {site.key}\n"
    )
    transport = site.connector(identity=None).transport(Host("alias", "alias"))
    transport.connect()
    assert transport.run("echo in", b"", 60).stdout == b"in\n"


def jump_config(site, gate, inner, target) -> str:
    return (
        f"Host gate\n HostName {gate.address}\n Port {gate.port}\n"
        f"Host inner\n HostName {inner.address}\n Port {inner.port}\n"
        f"Host target*\n HostName {target.address}\n Port {target.port}\n"
    )


def test_a_chain_of_jump_hosts_is_logged_in_to_once_for_all_behind_it(site):
    gate, inner, target = (site.server(name) for name in ("gate", "inner", "target"))
    site.config.write_text(jump_config(site, gate, inner, target) + " ProxyJump gate,inner\n")
    connector = site.connector()
    transports = [connector.transport(Host(name, name)) for name in ("target1", "target2", "target3")]
    connect_together(transports)
    assert [logins(server) for server in (gate, inner, target)] == [1, 1, 3]
    transports[0].close()
    assert transports[1].run("echo in", b"", 60).stdout == b"in\n"


def logins(server) -> int:
    return sum("Accepted publickey" in line for line in server.log)


def test_a_jump_host_s_key_is_checked_too(site):
    gate, inner, target = site.server("gate", known=False), site.server("inner"), site.server("target")
    site.config.write_text(jump_config(site, gate, inner, target) + " ProxyJump gate\n")
    with pytest.raises(HostError, match=r"jump host: the host key of .* is not known"):
        site.connector().transport(Host("t", "target")).connect()


def test_a_jump_host_that_does_not_reach_the_host(site):
    gate, inner, target = (site.server(name) for name in ("gate", "inner", "target"))
    target.stop()
    site.config.write_text(jump_config(site, gate, inner, target) + " ProxyJump gate\n")
    with pytest.raises(HostError, match=r"the jump host .* cannot reach .*: Connect failed"):
        site.connector().transport(Host("t", "target")).connect()


def test_jumps_in_a_circle_end(site):
    site.config.write_text("Host a\n ProxyJump b\nHost b\n ProxyJump a\n")
    with pytest.raises(HostError, match="too many hosts"):
        site.connector().transport(Host("a", "a")).connect()


def test_a_proxy_command(site):
    gate, target = site.server("gate"), site.server("target")
    site.config.write_text(
        f"Host target\n HostName {target.address}\n Port {target.port}\n"
        f" ProxyCommand ssh -F none -i {site.key}"
        f" -o UserKnownHostsFile={site.known_hosts} -p {gate.port} -W %h:%p {gate.address}\n"
    )
    transport = site.connector().transport(Host("t", "target"))
    transport.connect()
    assert transport.run("cat", b"x" * 100000, 60).stdout == b"x" * 100000
    assert logins(gate) == 1


@pytest.mark.nightly
def test_a_proxy_command_that_fails(site):
    site.config.write_text("ProxyCommand echo no way to %h >&2\n")
    with pytest.raises(
        HostError, match=r"ProxyCommand for target ended before the login, .* times: no way to target"
    ):
        site.connector(timeout=60.0).transport(Host("t", "target")).connect()


# Networks


def test_a_refused_banner_is_tried_again(site):
    server = site.server(extra="MaxStartups 1:100:1")
    hog = socket.create_connection((server.address, server.port))
    assert hog.recv(100).startswith(b"SSH-")

    def make_room():
        procs.wait_for("a connection that is refused", lambda: turned_away(server))
        hog.close()

    threading.Thread(target=make_room, daemon=True).start()
    assert connected(site, server).run("echo in", b"", 60).stdout == b"in\n"
    assert turned_away(server)


def turned_away(server) -> bool:
    return any("MaxStartups" in line for line in server.log)


@pytest.mark.nightly
def test_a_banner_that_stays_refused(site):
    server = site.server(extra="MaxStartups 1:100:1")
    with socket.create_connection((server.address, server.port)) as hog:
        assert hog.recv(100).startswith(b"SSH-")
        error = refused(site, server, timeout=60.0)
    assert "closed the connection before the login" in error.reason and "--parallel" in error.remedy


def test_nobody_listens(site):
    host = Host("a", "127.0.0.1", None, free_port())
    with pytest.raises(HostError, match=r"connection refused by 127\.0\.0\.1 port"):
        site.connector().transport(host).connect()


def test_a_name_that_is_not_known(site):
    unknown, unanswered = (
        r"the name nowhere\.invalid is not known",
        r"the name lookup failed for nowhere\.invalid",
    )
    with pytest.raises(HostError, match=f"{unknown}|{unanswered}"):
        site.connector().transport(Host("a", "nowhere.invalid")).connect()


def test_a_peer_that_says_nothing(site):
    with socket.create_server(("127.0.0.1", 0)) as mute:
        host = Host("a", "127.0.0.1", None, mute.getsockname()[1])
        with pytest.raises(HostError, match=r"timed out after 0\.5 s"):
            site.connector(timeout=0.5).transport(host).connect()


def test_a_peer_that_is_no_sshd(site):
    with socket.create_server(("127.0.0.1", 0)) as web:

        def answer():
            connection, _ = web.accept()
            with connection:
                connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        threading.Thread(target=answer, daemon=True).start()
        host = Host("a", "127.0.0.1", None, web.getsockname()[1])
        with pytest.raises(HostError):
            site.connector(timeout=1.0).transport(host).connect()


def test_close_ends_a_connect_that_waits(site):
    with socket.create_server(("127.0.0.1", 0)) as mute:
        transport = site.connector(timeout=60.0).transport(
            Host("a", "127.0.0.1", None, mute.getsockname()[1])
        )
        threading.Timer(0.3, transport.close).start()
        began = time.monotonic()
        with pytest.raises(HostError):
            transport.connect()
        assert time.monotonic() - began < 50


def test_paramiko_writes_nothing_on_stderr(site):
    """paramiko logs tracebacks; without a handler Python would print them."""
    code = (
        "from hprofiler.transport import SshConnector, SshOptions\nfrom hprofiler.model import Host\n"
        "import socket, threading\n"
        "server = socket.create_server(('127.0.0.1', 0))\n"
        "def hang_up():\n    while True: server.accept()[0].close()\n"
        "threading.Thread(target=hang_up, daemon=True).start()\n"
        "try: SshConnector(SshOptions(timeout=1.0))"
        ".transport(Host('a', '127.0.0.1', None, server.getsockname()[1])).connect()\n"
        "except Exception as error: print(type(error).__name__)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "HostError\n" and done.stderr == ""


@pytest.fixture
def far(site):
    """(server in a network of its own, function that cuts the cable)."""
    if os.geteuid() != 0 or shutil.which("ip") is None:
        pytest.skip("a network namespace needs root and iproute2")
    holder = subprocess.Popen(
        ["unshare", "--net", "sh", "-c", "echo ready; exec cat"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    holder.stdout.readline()
    name = f"hpt{os.getpid() % 100000}"
    # other sessions of these tests may have such networks too
    net, base = f"198.18.{os.getpid() // 64 % 256}", os.getpid() % 64 * 4
    inside = ["nsenter", f"--net=/proc/{holder.pid}/ns/net"]
    for command in (
        ["ip", "link", "add", name, "type", "veth", "peer", "name", "far", "netns", str(holder.pid)],
        ["ip", "address", "add", f"{net}.{base + 1}/30", "dev", name],
        ["ip", "link", "set", name, "up"],
        [*inside, "ip", "address", "add", f"{net}.{base + 2}/30", "dev", "far"],
        [*inside, "ip", "link", "set", "far", "up"],
    ):
        subprocess.run(command, check=True)
    drop = [*inside, "ip", "address", "flush", "dev", "far"]
    server = site.server("far", address=f"{net}.{base + 2}", wrap=inside)
    yield server, lambda: subprocess.run(drop, check=True)
    server.kill_sessions()  # nobody tells them that their client has gone
    subprocess.run(["ip", "link", "delete", name], check=True)
    holder.stdin.close()
    holder.wait(60)
    holder.stdout.close()


@pytest.mark.nightly
def test_a_network_that_falls_silent_is_noticed_in_the_time_given(site, far):
    server, cut = far
    transport = connected(site, server, timeout=10.0)
    channel = transport.open("cat")
    channel.write(b"hello")
    assert channel.read(100) == b"hello"
    cut()
    began = time.monotonic()
    channel.write(b"anybody there?")
    assert channel.read(100) == b"" and channel.exit_status(0) is None
    assert 1 < time.monotonic() - began < 100  # the kernel itself gives up after a quarter of an hour


@pytest.mark.nightly
def test_a_network_that_is_silent_from_the_start(site, far):
    server, cut = far
    cut()
    error = refused(site, server, timeout=1.0)
    assert "timed out after 1 s" in error.reason or "no route" in error.reason
