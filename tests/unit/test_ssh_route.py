"""Routes: the command line overrides ssh_config, which overrides defaults."""

from __future__ import annotations

import getpass
from pathlib import Path

import pytest

from hprofiler.base.errors import HostError
from hprofiler.model import Host
from hprofiler.transport.ssh import route
from hprofiler.transport.ssh.route import RouteFinder, SshOptions

N1 = Host("n1", "n1")


@pytest.fixture
def find(tmp_path):
    def found(config: str, host: Host = N1, **options):
        file = tmp_path / "config"
        file.write_text(config)
        return RouteFinder(SshOptions(config_path=file, **options)).find(host)

    return found


def test_defaults(find):
    found = find("")
    assert (found.hostname, found.port, found.user) == ("n1", 22, getpass.getuser())
    assert (found.identities, found.jumps, found.proxy_command, found.accept_new) == ((), (), None, False)
    assert found.known_hosts[0] == Path("~/.ssh/known_hosts").expanduser()
    assert Path("/etc/ssh/ssh_known_hosts") in found.known_hosts
    assert found.revoked == ()


def test_ssh_config_is_followed(find):
    found = find(
        "Host n*\n HostName %h.example\n Port 2200\n User ann\n IdentityFile ~/keys/%r\n IdentitiesOnly yes\n"
        " UserKnownHostsFile /k1 /k2\n HostKeyAlias Alias\n ProxyJump a,bob@b:23\n"
        " RevokedHostKeys ~/revoked\n"
    )
    assert (found.hostname, found.port, found.user) == ("n1.example", 2200, "ann")
    assert found.identities == (Path("~/keys/ann").expanduser(),) and found.identities_only
    assert found.known_hosts[:2] == (Path("/k1"), Path("/k2")) and found.known_as == "alias"
    assert found.jumps == ("a", "bob@b:23")
    assert found.revoked == (Path("~/revoked").expanduser(),)


@pytest.mark.parametrize("name", ['"a b"', "a,b", "*", "!a", "|1|a", '"#"', "@revoked", "a\x1b"])
def test_bad_names_for_known_hosts(find, name):
    for option in ("HostKeyAlias", "HostName"):
        with pytest.raises(HostError, match="not a valid name for known_hosts"):
            find(f"{option} {name}\n")


def test_the_command_line_overrules_ssh_config_and_the_host_list_both(find):
    config = "Host *\n User ann\n Port 2200\n IdentityFile /k\n UserKnownHostsFile /old\n"
    found = find(config, user="eve", port=1, identity=Path("/mine"), known_hosts=Path("/new"))
    assert (found.user, found.port, found.known_as) == ("eve", 1, "[n1]:1")
    assert found.identities == (Path("/mine"), Path("/k"))
    assert found.known_hosts[0] == Path("/new") and Path("/old") not in found.known_hosts
    found = find(config, Host("n1", "n1", user="zoe", port=7), user="eve", port=1)
    assert (found.user, found.port) == ("zoe", 7)


def test_match_exec_has_no_input_and_a_time_limit(find, tmp_path):
    read = tmp_path / "read"
    assert find(f'Match exec "cat > {read}"\n  Port 2200\n').port == 2200
    assert read.read_text() == ""
    with pytest.raises(HostError, match=r"within 0\.2 s"):
        find('Match exec "exec sleep 5"\n  Port 2200\n', timeout=0.2)


@pytest.mark.parametrize(
    ("config", "agent"),
    [
        ("", "/env"),
        ("IdentityAgent SSH_AUTH_SOCK", "/env"),
        ("IdentityAgent $OTHER", "/other"),
        ("IdentityAgent none", ""),
        ("IdentityAgent /a/%r.sock", "/a/eve.sock"),
    ],
)
def test_the_agent_and_certificates(find, monkeypatch, config, agent):
    monkeypatch.setenv("SSH_AUTH_SOCK", "/env")
    monkeypatch.setenv("OTHER", "/other")
    found = find(f"User eve\n{config}\nCertificateFile /c/one-cert.pub\nCertificateFile /c/two-cert.pub\n")
    assert found.agent == agent
    assert found.certificates == (Path("/c/one-cert.pub"), Path("/c/two-cert.pub"))


def test_default_keys_are_not_named_ones(find):
    """`ssh -G` prints them where ssh_config names none."""
    assert find("").identities == ()
    assert find("IdentityFile ~/.ssh/id_rsa\n").identities == (Path("~/.ssh/id_rsa").expanduser(),)


def test_without_ssh(find, monkeypatch):
    """paramiko reads the file; it has no Include."""
    monkeypatch.setattr(route, "_account", lambda: None)
    config = (
        "Host n*\n HostName %h.example\n Port 2200\n IdentityFile ~/keys/%r\n ProxyCommand nc %h %p # %n %%\n"
    )
    found = find(config, user="ann")
    assert (found.hostname, found.port, found.user) == ("n1.example", 2200, "ann")
    assert found.proxy_command == "nc n1.example 2200 # n1 %" and len(found.identities) == 1
    assert find("ProxyCommand none\n").proxy_command is None
    for nonsense in ("Include more\n", "Port many\n", "Nonsense\n"):
        with pytest.raises(HostError, match="ssh_config"):
            find(nonsense)


@pytest.mark.parametrize(
    ("value", "option", "accept"),
    [
        ("yes", False, False),
        ("ask", False, False),
        ("accept-new", False, True),
        ("no", False, True),
        ("off", False, True),
        ("yes", True, True),
    ],
)
def test_accepting_new_host_keys(find, value, option, accept):
    assert find(f"StrictHostKeyChecking {value}\n", accept_new_host_keys=option).accept_new is accept


def test_jump_hosts_have_routes_of_their_own(tmp_path):
    file = tmp_path / "config"
    file.write_text("Host gate\n HostName gate.example\n Port 2022\n User carl\n ProxyJump outer\n")
    finder = RouteFinder(SshOptions(config_path=file, user="eve", port=5))
    gate = finder.find_jump("gate", None)
    assert (gate.hostname, gate.port, gate.user, gate.jumps) == ("gate.example", 2022, "carl", ("outer",))
    assert finder.find_jump("gate", ("first",)).jumps == ("first",)
    specs = {"ssh://dora@[::1]:99": ("::1", 99), "dora@fe80::1": ("fe80::1", 22), "dora@b:23": ("b", 23)}
    for spec, (host, port) in specs.items():
        named = finder.find_jump(spec, None)
        assert (named.hostname, named.port, named.user) == (host, port, "dora")
    with pytest.raises(HostError, match="ProxyJump"):
        finder.find_jump("b:many", None)


@pytest.mark.parametrize("option", ["UserKnownHostsFile", "GlobalKnownHostsFile", "RevokedHostKeys"])
def test_files_of_an_unknown_user(find, option):
    with pytest.raises(HostError, match="nobody-at-all"):
        find(f"{option} ~nobody-at-all/x\n")


def test_another_home_than_the_account_s(tmp_path, monkeypatch):
    """ssh itself reads the home of the account only."""
    monkeypatch.setenv("HOME", str(tmp_path))
    assert RouteFinder(SshOptions()).find(N1).known_hosts[0] == tmp_path / ".ssh/known_hosts"
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh/config").write_text("Port 2200\nIdentityFile ~/k\n")
    found = RouteFinder(SshOptions()).find(N1)
    assert (found.port, found.identities[0]) == (2200, tmp_path / "k")
