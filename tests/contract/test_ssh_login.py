"""Host keys and logins of the SSH transport, against a real sshd on loopback."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from hprofiler.base.errors import UsageError
from tests.contract.sshd import SSHD, connect_together, connected, make_key, refused, ssh_agent

pytestmark = pytest.mark.skipif(not Path(SSHD).exists(), reason="sshd is not installed (openssh-server)")


# Host keys


def test_an_unknown_key_is_refused_and_the_remedy_names_the_option(site):
    error = refused(site, site.server(known=False))
    assert "is not known" in error.reason and "SHA256:" in error.reason
    assert "--accept-new-host-keys" in error.remedy and str(site.known_hosts) in error.remedy
    assert site.known_hosts.read_text() == ""


def test_accepting_a_new_key_remembers_it(site):
    server = site.server(known=False)
    connected(site, server, accept_new_host_keys=True)
    assert site.known_hosts.read_text() == server.known_hosts_line()
    connected(site, server)


@pytest.mark.parametrize("how", ["plain", "option", "StrictHostKeyChecking no"])
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


def test_strict_host_key_checking_no_accepts_new_keys(site):
    server = site.server(known=False)
    site.config.write_text("StrictHostKeyChecking no\n")
    connected(site, server)
    assert site.known_hosts.read_text() == server.known_hosts_line()


def test_a_revoked_key_is_refused(site):
    server = site.server()
    kind_and_key = server.known_hosts_line().split(None, 1)[1]
    site.known_hosts.write_text(site.known_hosts.read_text() + "@revoked * " + kind_and_key)
    assert "revoked" in refused(site, server).reason


def test_revoked_host_keys_of_ssh_config(site, tmp_path):
    server = site.server()
    public = server.host_key.with_name("host_key.pub")
    revoked = tmp_path / "revoked"
    revoked.write_text(public.read_text())
    site.config.write_text(f"RevokedHostKeys {revoked}\n")
    assert f"is revoked ({revoked})" in refused(site, server).reason
    subprocess.run(["ssh-keygen", "-q", "-k", "-f", str(revoked), str(public)], check=True)
    assert "a KRL" in refused(site, server).reason
    revoked.write_text(site.key.with_suffix(".pub").read_text())
    connected(site, server)


def test_a_changed_key_is_not_new_where_known_hosts_cannot_be_read(site, tmp_path):
    server = site.server()
    folder = tmp_path / "folder"
    folder.mkdir()
    for words in ({"accept_new_host_keys": True}, {}):
        site.config.write_text(f"StrictHostKeyChecking no\nGlobalKnownHostsFile {folder}\n")
        assert f"cannot read the known host keys in {folder}" in refused(site, server, **words).reason


def test_of_several_host_keys_the_known_one_is_asked_for(site, tmp_path):
    other = make_key(tmp_path / "ecdsa_host_key", "ecdsa")
    server = site.server(extra=f"HostKey {other}", known=False)
    kind, key, *_ = Path(f"{other}.pub").read_text().split()
    site.known_hosts.write_text(f"[{server.address}]:{server.port} {kind} {key}\n")
    connected(site, server)


# Authentication


def test_a_wrong_identity_says_what_was_tried(site, tmp_path):
    wrong = make_key(tmp_path / "wrong")
    error = refused(site, site.server(), identity=wrong)
    assert f"authentication failed for {site.user}" in error.reason
    assert f"key {wrong}" in error.reason and "the server allows publickey" in error.reason
    assert "--identity" in error.remedy and "--user" in error.remedy


def test_no_key_at_all(site, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "nobody"))
    assert "no key to offer" in refused(site, site.server(), identity=None).reason


def test_an_identity_that_is_not_there_is_a_mistake_of_usage(site, tmp_path):
    with pytest.raises(UsageError, match="there is no file"):
        site.connector(identity=tmp_path / "none")


def test_an_identity_that_is_no_key(site, tmp_path):
    (tmp_path / "text").write_text("not a key\n")
    assert "not a private key" in refused(site, site.server(), identity=tmp_path / "text").reason


@pytest.mark.parametrize("kind", ["ed25519", "ecdsa", "rsa"])
def test_kinds_of_keys_and_a_passphrase_asked_for_once(site, tmp_path, kind):
    key = make_key(tmp_path / f"locked_{kind}", kind, "open sesame")
    site.authorize(key)
    server = site.server()
    asked = []

    def ask(name: str) -> str:
        asked.append(name)
        return "open sesame"

    connector = site.connector(ask, identity=key)
    transports = [connector.transport(site.host(server)) for _ in range(5)]
    connect_together(transports)
    assert asked == [f"Passphrase for {key}: "]


def test_passphrases_that_do_not_open_the_key(site, tmp_path):
    key = make_key(tmp_path / "locked", passphrase="open sesame")
    site.authorize(key)
    server = site.server()
    asked = []
    error = refused(site, server, identity=key, ask=lambda name: asked.append(name) or "guess")
    assert "wrong passphrase" in error.reason and "guess" not in error.reason and len(asked) == 3
    assert "no passphrase given" in refused(site, server, identity=key, ask=lambda name: None).reason
    assert "no passphrase given" in refused(site, server, identity=key).reason


def test_keys_of_the_ssh_agent(site, tmp_path, monkeypatch):
    key = make_key(tmp_path / "in_agent")
    site.authorize(key)
    server = site.server()
    path = tmp_path / "agent.sock"
    monkeypatch.setenv("SSH_AUTH_SOCK", str(path))
    with ssh_agent(path, key):
        key.unlink()
        connector = site.connector(identity=None)
        connect_together([connector.transport(site.host(server)) for _ in range(4)])


def test_a_locked_key_that_the_agent_holds_needs_no_passphrase(site, tmp_path, monkeypatch):
    key = make_key(tmp_path / "locked", passphrase="open sesame")
    plain = tmp_path / "plain"
    shutil.copy(key, plain)
    subprocess.run(
        ["ssh-keygen", "-q", "-p", "-P", "open sesame", "-N", "", "-f", str(plain)],
        check=True,
        capture_output=True,
    )
    site.authorize(key)
    path = tmp_path / "agent.sock"
    monkeypatch.setenv("SSH_AUTH_SOCK", str(path))
    with ssh_agent(path, plain):
        connected(site, site.server(), identity=key, ask=lambda name: pytest.fail("asked for a passphrase"))
