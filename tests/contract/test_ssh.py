"""The SSH transport against a real sshd on loopback: commands, host keys, logins, jump hosts, networks.

Which keys a known_hosts file makes known, and what ssh_config means, is tested in tests/unit.
"""

from __future__ import annotations

import shutil
import socket
import subprocess
import threading
from pathlib import Path

import pytest

from hprofiler.base.errors import HostError, UsageError
from hprofiler.model import Host
from tests.contract.sshd import SSHD, connect_together, connected, refused, ssh_agent
from tests.lab import procs
from tests.lab.keys import make_key

pytestmark = pytest.mark.skipif(not Path(SSHD).exists(), reason="sshd is not installed (openssh-server)")


# Commands


def test_bytes_go_through_unharmed_and_exit_status_and_stderr_come_back(site):
    transport = connected(site, site.server())
    everything = bytes(range(256)) * 20000
    done = transport.run("cat; echo trouble >&2; exit 3", everything, 60)
    assert done.stdout == everything and done.exit_status == 3 and done.stderr == "trouble"
    assert transport.bytes_sent == transport.bytes_received == len(everything)
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


# Host keys


def test_an_unknown_key_is_refused_and_the_remedy_names_the_option(site):
    error = refused(site, site.server(known=False))
    assert "is not known" in error.reason and "SHA256:" in error.reason
    assert "--accept-new-host-keys" in error.remedy and str(site.known_hosts) in error.remedy
    assert site.known_hosts.read_text() == ""


@pytest.mark.parametrize("how", ["option", "StrictHostKeyChecking no"])
def test_a_new_key_that_is_accepted_is_remembered(site, how):
    server = site.server(known=False)
    site.config.write_text(f"{how}\n" if " " in how else "")
    connected(site, server, accept_new_host_keys=how == "option")
    assert site.known_hosts.read_text() == server.known_hosts_line()
    site.config.write_text("")
    connected(site, server)


@pytest.mark.parametrize("how", ["option", "StrictHostKeyChecking no"])
def test_a_changed_key_is_always_refused(site, how):
    server = site.server()
    server.stop()
    server.host_key.unlink()
    server.host_key.with_name("host_key.pub").unlink()
    changed = site.server("a", known=False, port=server.port)
    site.config.write_text(f"{how}\n" if " " in how else "")
    before = site.known_hosts.read_text()
    error = refused(site, changed, accept_new_host_keys=how == "option")
    assert "CHANGED" in error.reason and "known_hosts:1" in error.reason and "ssh-keygen -R" in error.remedy
    assert site.known_hosts.read_text() == before


def test_of_several_host_keys_the_known_one_is_asked_for(site, tmp_path):
    other = make_key(tmp_path / "ecdsa_host_key", "ecdsa")
    server = site.server(extra=f"HostKey {other}", known=False)
    kind, key, *_ = Path(f"{other}.pub").read_text().split()
    site.known_hosts.write_text(f"[{server.address}]:{server.port} {kind} {key}\n")
    connected(site, server)


# Logins


def test_identities_that_cannot_be_used(site, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "nobody"))
    server, wrong, text = site.server(), make_key(tmp_path / "wrong"), tmp_path / "text"
    error = refused(site, server, identity=wrong)
    for words in (f"authentication failed for {site.user}", f"key {wrong}", "the server allows publickey"):
        assert words in error.reason
    assert "--identity" in error.remedy and "--user" in error.remedy
    assert "no key to offer" in refused(site, server, identity=None).reason
    text.write_text("not a key\n")
    assert "not a private key" in refused(site, server, identity=text).reason
    with pytest.raises(UsageError, match="there is no file"):
        site.connector(identity=tmp_path / "none")


@pytest.mark.parametrize("kind", ["ed25519", "ecdsa", "rsa"])
def test_kinds_of_keys_and_a_passphrase_asked_for_once(site, tmp_path, kind):
    key, asked = make_key(tmp_path / f"locked_{kind}", kind, "open sesame"), []
    site.authorize(key)
    server = site.server()
    connector = site.connector(lambda name: asked.append(name) or "open sesame", identity=key)
    connect_together([connector.transport(site.host(server)) for _ in range(5)])
    assert asked == [f"Passphrase for {key}: "]


def test_passphrases_that_do_not_open_the_key(site, tmp_path):
    key, asked = make_key(tmp_path / "locked", passphrase="open sesame"), []
    site.authorize(key)
    server = site.server()
    error = refused(site, server, identity=key, ask=lambda name: asked.append(name) or "guess")
    assert "wrong passphrase" in error.reason and "guess" not in error.reason and len(asked) == 3
    assert "no passphrase given" in refused(site, server, identity=key, ask=lambda name: None).reason


@pytest.mark.parametrize("locked", [False, True])
def test_keys_of_the_ssh_agent(site, tmp_path, monkeypatch, locked):
    """A locked key that the agent holds needs no passphrase."""
    key, plain = (
        make_key(tmp_path / "key", passphrase="open sesame"),
        shutil.copy(tmp_path / "key", tmp_path / "plain"),
    )
    change = ["ssh-keygen", "-q", "-p", "-P", "open sesame", "-N", "", "-f", str(plain)]
    subprocess.run(change, check=True, capture_output=True)
    site.authorize(key)
    path, server = tmp_path / "agent.sock", site.server()
    monkeypatch.setenv("SSH_AUTH_SOCK", str(path))
    with ssh_agent(path, plain):
        ask = lambda name: pytest.fail("asked for a passphrase")  # noqa: E731
        connector = site.connector(ask, identity=key if locked else None)
        connect_together([connector.transport(site.host(server)) for _ in range(4)])


def test_an_agent_and_certificates_of_ssh_config(site, tmp_path, monkeypatch):
    """The server trusts only an authority; the key is in an agent that ssh_config names, then in a file."""
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    authority, key = make_key(tmp_path / "authority"), make_key(tmp_path / "key")
    sign(authority, key, "-n", site.user)
    certificate = shutil.move(tmp_path / "key-cert.pub", tmp_path / "certificate.pub")
    site.authorized.write_text("")
    server = site.server(extra=f"TrustedUserCAKeys {authority}.pub")
    path = tmp_path / "agent.sock"
    with ssh_agent(path, key):
        site.config.write_text(f"IdentityAgent {path}\n")
        assert "tried agent key test" in refused(site, server, identity=None).reason
        site.config.write_text(f"IdentityAgent {path}\nCertificateFile {certificate}\n")
        assert connected(site, server, identity=None).run("echo in", b"", procs.PATIENCE).stdout == b"in\n"
    site.config.write_text(f"CertificateFile {certificate}\n")
    assert connected(site, server, identity=key).run("echo in", b"", procs.PATIENCE).stdout == b"in\n"


def sign(authority: Path, key: Path, *how: str) -> None:
    command = ["ssh-keygen", "-q", "-s", str(authority), "-I", "test", *how, f"{key}.pub"]
    subprocess.run(command, check=True, capture_output=True)


@pytest.mark.parametrize("kind", ["ed25519", "ecdsa", "rsa"])
def test_an_authority_of_known_hosts_vouches_for_a_host(site, tmp_path, kind):
    authority, key = make_key(tmp_path / "authority", kind), make_key(tmp_path / "host", kind)
    sign(authority, key, "-h", "-n", "other,127.0.0.*")
    server = site.server(extra=f"HostKey {key}\nHostCertificate {key}-cert.pub", known=False)
    site.known_hosts.write_text(f"@cert-authority * {authority.with_suffix('.pub').read_text()}")
    connected(site, server)


@pytest.mark.parametrize(
    ("how", "why"),
    [
        (None, "it shows no certificate, which "),
        (["-h", "-n", "other"], "it is for other, not for 127.0.0.1"),
        (["-n", "127.0.0.1"], "it is for users, not for hosts"),
        (["-h", "-V", "-2d:-1d"], "it is not valid now"),
        (["-h"], "another authority signed it"),
    ],
)
def test_what_no_authority_vouches_for_is_refused(site, tmp_path, how, why):
    """sshd itself refuses to show a certificate for users: it goes on with its plain key."""
    authority, another, key = (make_key(tmp_path / name) for name in ("authority", "another", "host"))
    extra = f"HostKey {key}"
    if how is not None:
        sign(another if how == ["-h"] else authority, key, *how)
        extra += f"\nHostCertificate {key}-cert.pub"
    server = site.server(extra=extra, known=False)
    site.known_hosts.write_text(f"@cert-authority * {authority.with_suffix('.pub').read_text()}")
    error = refused(site, server)
    assert why in error.reason and error.code == "host-key-unknown"
    assert "give the host a valid certificate" in error.remedy
    site.knows(server)  # a plain key is good enough
    site.known_hosts.write_text(site.known_hosts.read_text() + host_line(server, key))
    connected(site, server)


def host_line(server, key: Path) -> str:
    return f"[{server.address}]:{server.port} {key.with_suffix('.pub').read_text()}"


# Jump hosts and proxies


def jumps(site, *gates, target, how):
    """An ssh_config by which `target` is behind gates."""
    lines = [f"Host {name}\n HostName {gate.address}\n Port {gate.port}\n" for name, gate in gates]
    site.config.write_text(
        "".join(lines) + f"Host target*\n HostName {target.address}\n Port {target.port}\n {how}\n"
    )


def logins(server):
    return sum("Accepted publickey" in line for line in server.log)


def test_a_chain_of_jump_hosts_is_logged_in_to_once_for_all_behind_it(site):
    gate, inner, target = (site.server(name) for name in ("gate", "inner", "target"))
    jumps(site, ("gate", gate), ("inner", inner), target=target, how="ProxyJump gate,inner")
    connector = site.connector()
    transports = [connector.transport(Host(name, name)) for name in ("target1", "target2", "target3")]
    connect_together(transports)
    assert [logins(server) for server in (gate, inner, target)] == [1, 1, 3]
    transports[0].close()
    assert transports[1].run("echo in", b"", 60).stdout == b"in\n"


@pytest.mark.parametrize(
    ("known", "reason"),
    [
        (False, r"jump host: the host key of .* is not known"),
        (True, r"the jump host .* cannot reach .*: Connect failed"),
    ],
    ids=["key is not known", "does not reach the host"],
)
def test_a_jump_host_that_cannot_be_used(site, known, reason):
    gate, target = site.server("gate", known=known), site.server("target")
    target.stop()
    jumps(site, ("gate", gate), target=target, how="ProxyJump gate")
    with pytest.raises(HostError, match=reason):
        site.connector().transport(Host("t", "target")).connect()


def test_jumps_in_a_circle_end(site):
    site.config.write_text("Host a\n ProxyJump b\nHost b\n ProxyJump a\n")
    with pytest.raises(HostError, match="too many hosts"):
        site.connector().transport(Host("a", "a")).connect()


def test_a_proxy_command(site):
    gate, target = site.server("gate"), site.server("target")
    options = f"-F none -i {site.key} -o UserKnownHostsFile={site.known_hosts}"
    how = f"ProxyCommand ssh {options} -p {gate.port} -W %h:%p {gate.address}"
    jumps(site, target=target, how=how)
    transport = site.connector().transport(Host("t", "target"))
    transport.connect()
    assert transport.run("cat", b"x" * 100000, 60).stdout == b"x" * 100000
    assert logins(gate) == 1


@pytest.mark.nightly
def test_a_proxy_command_that_fails(site):
    site.config.write_text("ProxyCommand echo no way to %h >&2\n")
    reason = r"ProxyCommand for target ended before the login, .* times: no way to target"
    with pytest.raises(HostError, match=reason):
        site.connector(timeout=60.0).transport(Host("t", "target")).connect()


# Networks


@pytest.mark.parametrize("stays", [False, pytest.param(True, marks=pytest.mark.nightly)])
def test_a_refused_banner_is_tried_again(site, stays):
    server = site.server(extra="MaxStartups 1:100:1")
    turned_away = lambda: any("MaxStartups" in line for line in server.log)  # noqa: E731
    with socket.create_connection((server.address, server.port)) as hog:
        assert hog.recv(100).startswith(b"SSH-")

        def make_room():
            procs.wait_for("a connection that is refused", turned_away)
            hog.close()

        if stays:
            error = refused(site, server, timeout=60.0)
            assert "closed the connection before the login" in error.reason and "--parallel" in error.remedy
        else:
            threading.Thread(target=make_room, daemon=True).start()
            assert connected(site, server).run("echo in", b"", 60).stdout == b"in\n"
            assert turned_away()


@pytest.mark.parametrize(
    ("says", "reason"), [(b"", r"timed out after 0\.5 s"), (b"HTTP/1.1 400 Bad Request\r\n\r\n", ".")]
)
def test_a_peer_that_is_not_sshd(site, says, reason):
    with socket.create_server(("127.0.0.1", 0)) as peer:

        def answer():
            connection, _ = peer.accept()
            connection.sendall(says)
            if says:
                connection.close()

        threading.Thread(target=answer, daemon=True).start()
        host = Host("a", "127.0.0.1", None, peer.getsockname()[1])
        with pytest.raises(HostError, match=reason):
            site.connector(timeout=0.5).transport(host).connect()
