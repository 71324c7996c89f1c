"""Routes: the command line over ssh_config over defaults."""

from __future__ import annotations

import getpass
import io
import os
import sys
import threading
from pathlib import Path

import pytest

from hprofiler.base.errors import HostError
from hprofiler.model import Host
from hprofiler.transport.ssh.connector import SshConnector
from hprofiler.transport.ssh.route import RouteFinder, SshOptions
from tests.lab.procs import PATIENCE

N1 = Host("n1", "n1")


@pytest.fixture
def find(tmp_path):
    def found(config: str, host: Host = N1, **options):
        file = tmp_path / "config"
        file.write_text(config)
        return RouteFinder(SshOptions(config_path=file, **options)).find(host)

    return found


def test_defaults(find):
    route = find("")
    assert (route.hostname, route.port, route.user) == ("n1", 22, getpass.getuser())
    assert (route.identities, route.jumps, route.proxy_command, route.accept_new) == ((), (), None, False)
    assert route.known_hosts[0] == Path("~/.ssh/known_hosts").expanduser()
    assert Path("/etc/ssh/ssh_known_hosts") in route.known_hosts
    assert route.revoked == ()


def test_ssh_config_is_followed(find):
    route = find(
        "Host n*\n HostName %h.example\n Port 2200\n User ann\n IdentityFile ~/keys/%r\n IdentitiesOnly yes\n"
        " UserKnownHostsFile /k1 /k2\n HostKeyAlias Alias\n ProxyJump a,bob@b:23\n"
        " RevokedHostKeys ~/revoked\n"
    )
    assert (route.hostname, route.port, route.user) == ("n1.example", 2200, "ann")
    assert route.identities == (Path("~/keys/ann").expanduser(),) and route.identities_only
    assert route.known_hosts[:2] == (Path("/k1"), Path("/k2")) and route.known_as == "alias"
    assert route.jumps == ("a", "bob@b:23")
    assert route.revoked == (Path("~/revoked").expanduser(),)


@pytest.mark.parametrize("name", ["a b", "a,b", "*", "!a", "|1|a", "#", "@revoked", "a\x1b"])
def test_a_name_by_which_no_key_can_be_known(find, name):
    for option in ("HostKeyAlias", "HostName"):
        with pytest.raises(HostError, match="not a valid name for known_hosts"):
            find(f"{option} {name}\n")


def test_the_command_line_overrules_ssh_config_and_the_host_list_both(find):
    config = "Host *\n User ann\n Port 2200\n IdentityFile /k\n UserKnownHostsFile /old\n"
    route = find(config, user="eve", port=1, identity=Path("/mine"), known_hosts=Path("/new"))
    assert (route.user, route.port, route.known_as) == ("eve", 1, "[n1]:1")
    assert route.identities == (Path("/mine"), Path("/k"))
    assert route.known_hosts[0] == Path("/new") and Path("/old") not in route.known_hosts
    route = find(config, Host("n1", "n1", user="zoe", port=7), user="eve", port=1)
    assert (route.user, route.port) == ("zoe", 7)


def test_match_exec_leaves_our_input_alone(find, tmp_path, monkeypatch):
    typed = tmp_path / "typed"
    typed.write_text("of the caller\n")
    read = tmp_path / "read"
    with typed.open() as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        assert find(f'Match exec "cat > {read}"\n  Port 2200\n').port == 2200
        assert stdin.readline() == "of the caller\n"
    assert read.read_text() == ""


def test_match_exec_leaves_stdin_to_others_meanwhile(find, tmp_path, monkeypatch):
    """Of two hosts: the one's way is looked up while the other's key is to be opened, by a passphrase."""
    terminal = io.StringIO()
    monkeypatch.setattr("sys.stdin", terminal)
    begun, goes_on = tmp_path / "begun", tmp_path / "goes_on"
    for fifo in (begun, goes_on):
        os.mkfifo(fifo)
    once = f"if mkdir {tmp_path}/once; then echo > {begun}; cat {goes_on}; fi 2>/dev/null"
    config = f'Match exec "{once}; true"\n  Port 2200\n'  # paramiko looks twice
    ports: list[int] = []
    other = threading.Thread(target=lambda: ports.append(find(config).port), daemon=True)
    other.start()
    waiting = threading.Thread(target=begun.read_bytes, daemon=True)
    waiting.start()
    waiting.join(PATIENCE)
    assert not waiting.is_alive()
    assert sys.stdin is terminal
    goes_on.write_bytes(b"")
    other.join(PATIENCE)
    assert ports == [2200]


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
def test_who_accepts_new_host_keys(find, value, option, accept):
    assert find(f"StrictHostKeyChecking {value}\n", accept_new_host_keys=option).accept_new is accept


def test_proxy_command_and_proxy_jump_none(find):
    assert find("ProxyCommand nc %h %p # %n %%\n").proxy_command == "nc n1 22 # n1 %"
    assert find("ProxyCommand none\n").proxy_command is None
    assert find("Host n1\n ProxyJump none\nHost *\n ProxyJump gate\n").jumps == ()


def test_jump_hosts_have_routes_of_their_own(tmp_path):
    file = tmp_path / "config"
    file.write_text("Host gate\n HostName gate.example\n Port 2022\n User carl\n ProxyJump outer\n")
    finder = RouteFinder(SshOptions(config_path=file, user="eve", port=5))
    gate = finder.find_jump("gate", None)
    assert (gate.hostname, gate.port, gate.user, gate.jumps) == ("gate.example", 2022, "carl", ("outer",))
    assert finder.find_jump("gate", ("first",)).jumps == ("first",)
    named = finder.find_jump("ssh://dora@[::1]:99", None)
    assert (named.hostname, named.port, named.user) == ("::1", 99, "dora")


def test_include_ends_with_its_file(find, tmp_path):
    (tmp_path / "more.conf").write_text("Host other\n User wrong\n")
    (tmp_path / "deep.conf").write_text(f"Include {tmp_path}/more.conf\nHost n1\n Port 2201\n")
    assert find(f"Include {tmp_path}/deep.conf {tmp_path}/none*.conf\nUser right\n").user == "right"
    assert find(f"Host n1\n User n\n Include {tmp_path}/more.conf\n Port 2202\n").port == 2202
    assert find(f"Include {tmp_path}/deep.conf\n").port == 2201


def test_include_of_itself_is_an_error_of_the_host(find, tmp_path):
    with pytest.raises(HostError, match="Include goes deeper"):
        find(f"Include {tmp_path}/config\n")


@pytest.mark.parametrize(
    "config",
    [
        "Port many\n",
        "Port 70000\n",
        "Port ²\n",
        "Include 'x\n",
        "Include ~nobody-at-all/x\n",
        "Nonsense\n",
        "Match exec\n",
    ],
)
def test_nonsense_is_an_error_of_the_host_with_a_remedy(find, config):
    with pytest.raises(HostError) as caught:
        find(config)
    assert caught.value.stage == "connect" and "ssh_config" in caught.value.remedy


def test_as_whom_and_where_to_a_connection_goes(tmp_path):
    """For the record: as ssh_config and the options say it together."""
    file = tmp_path / "config"
    file.write_text(
        "Host n1\n HostName 10.77.0.11\n Port 2200\n User prof\n"
        "Host far\n HostName ::1\n User eve\n ProxyJump n1\nHost odd\n User eve\n ProxyCommand nc %h %p\n"
    )

    def destination(host: Host, **options) -> str:
        with SshConnector(SshOptions(config_path=file, **options)) as connector:
            return connector.transport(host).destination()

    assert destination(N1) == "prof@10.77.0.11:2200"
    assert destination(Host("n1", "n1", user="zoe"), port=7) == "zoe@10.77.0.11:7"
    assert destination(Host("n2", "n2")) == f"{getpass.getuser()}@n2:22"
    assert destination(Host("far", "far")) == "eve@[::1]:22 through prof@10.77.0.11:2200"
    assert destination(Host("odd", "odd")) == "eve@odd:22 through its ProxyCommand"


@pytest.mark.parametrize("option", ["UserKnownHostsFile", "GlobalKnownHostsFile", "RevokedHostKeys"])
def test_files_of_a_user_who_is_not_there(find, option):
    with pytest.raises(HostError, match="~nobody-at-all/x: there is no such home folder") as caught:
        find(f"{option} ~nobody-at-all/x\n")
    assert "HOME" in caught.value.remedy
