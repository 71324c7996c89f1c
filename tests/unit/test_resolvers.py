"""Hosts from -h, --hosts-file or nothing; errors name the place."""

from __future__ import annotations

import socket
import sys
from pathlib import Path

import pytest

from hprofiler.base.errors import UsageError
from hprofiler.model import Host, Target
from hprofiler.resolve import RESOLVERS, Located, TargetOptions, resolve
from hprofiler.resolve.host_list import parse_host_map
from hprofiler.resolve.host_names import HostEntry

Row = tuple[str, str, str | None, int | None]


def rows(hosts: list[Host]) -> list[Row]:
    return [(host.name, host.address, host.user, host.port) for host in hosts]


def names(text: str) -> list[str]:
    return [host.name for host in resolve(TargetOptions(hosts=text)).hosts]


def test_no_option_means_this_machine() -> None:
    name = socket.gethostname()
    assert resolve(TargetOptions()) == Located(Target("local", name), [Host(name, "localhost")])


def test_hosts_from_stdin_leave_it_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else its descriptor would be given to a connection, and a question could not be answered."""
    (tmp_path / "hosts").write_text("a\nb  # a comment\n")
    with (tmp_path / "hosts").open() as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        assert [host.name for host in resolve(TargetOptions(hosts_file="-")).hosts] == ["a", "b"]
        assert not stdin.closed and stdin.read() == ""


def test_host_list() -> None:
    located = resolve(
        TargetOptions(hosts="a.example, root@b:2222 ,[fe80::1%eth0]:22,user@corp@c,[::1],a.example")
    )
    assert located.target.kind == "hosts"
    assert rows(located.hosts) == [
        ("a.example", "a.example", None, None),
        ("b", "b", "root", 2222),
        ("fe80::1%eth0", "fe80::1%eth0", None, 22),
        ("c", "c", "user@corp", None),
        ("::1", "::1", None, None),
    ]


def test_hosts_of_one_address_get_names_of_their_own() -> None:
    assert names("h:2201,h:2202") == ["h:2201", "h:2202"]
    assert names("a@h,b@h") == ["a@h", "b@h"]
    assert names("[::1]:22,[::1]:23") == ["[::1]:22", "[::1]:23"]
    assert names("a@h:22,b@h:22,h") == ["a@h:22", "b@h:22", "h"]


RANGES = [
    ("node[1-3]", ["node1", "node2", "node3"]),
    ("node[08-11].dc", ["node08.dc", "node09.dc", "node10.dc", "node11.dc"]),
    ("n[1,3,5-6]", ["n1", "n3", "n5", "n6"]),
    ("r[1-2]n[1-2]", ["r1n1", "r1n2", "r2n1", "r2n2"]),
    ("10.0.0.[9-11]", ["10.0.0.9", "10.0.0.10", "10.0.0.11"]),
    ("n[1-2],n[2-3]", ["n1", "n2", "n3"]),
]


@pytest.mark.parametrize(("text", "expanded"), RANGES, ids=[case[0] for case in RANGES])
def test_range(text: str, expanded: list[str]) -> None:
    assert names(text) == expanded


ERRORS = [
    ("nothing", " , ", "-h has no host"),
    ("an option for ssh", "-oProxyCommand=x", "is not a host"),
    ("blank inside", "a b", "is not a host"),
    ("shell in the name", "h;reboot", "is not a host"),
    ("port 0", "h:0", "'0' is not a port"),
    ("IPv6 without brackets", "fe80::1", "more than one colon"),
    ("not IPv6", "[zz::1]", "is not an IPv6 address in brackets"),
    ("backwards", "n[3-1]", "the range 3-1 runs backwards"),
    ("a billion hosts", "n[1-999999999]", "more than 5000 hosts"),
    ("a product of ranges", "n[1-100][1-100]", "more than 5000 hosts"),
    ("a thousand ranges", "n[1]" * 1000, "is longer than 1000 characters"),
    ("nothing but commas in brackets", "n[" + "," * 500_000, "is not a host"),
]


@pytest.mark.parametrize(("desc", "text", "part"), ERRORS, ids=[case[0] for case in ERRORS])
def test_error(desc: str, text: str, part: str) -> None:
    with pytest.raises(UsageError) as caught:
        resolve(TargetOptions(hosts=text))
    assert caught.value.reason.startswith("-h")
    assert part in caught.value.reason


def test_hosts_file(tmp_path: Path) -> None:
    path = tmp_path / "hosts"
    path.write_text("\ufeff# the cluster\n\nn[1-2]  # workers\nroot@gate:2222\r\nn1\n", encoding="utf-8")
    located = resolve(TargetOptions(hosts_file=str(path)))
    assert located.target == Target("hosts", str(path))
    assert rows(located.hosts) == [
        ("n1", "n1", None, None),
        ("n2", "n2", None, None),
        ("gate", "gate", "root", 2222),
    ]


FILE_ERRORS = [
    ("bad line", b"a\n\n# c\nb c\n", "hosts:4: 'b c' is not a host"),
    ("empty", b"\n# nothing\n", "hosts: names no host"),
    ("not text", b"a\n\xff\xfe\n", "hosts:2: is not UTF-8 text"),
    ("too large", b"#" * (1024 * 1024 + 1), "hosts: larger than 1024 KiB"),
    ("too many", b"".join(b"h%d\n" % i for i in range(5001)), "hosts: more than 5000 hosts"),
]


@pytest.mark.parametrize(("desc", "content", "part"), FILE_ERRORS, ids=[case[0] for case in FILE_ERRORS])
def test_error_names_file_and_line(tmp_path: Path, desc: str, content: bytes, part: str) -> None:
    (tmp_path / "hosts").write_bytes(content)
    with pytest.raises(UsageError) as caught:
        resolve(TargetOptions(hosts_file=str(tmp_path / "hosts")))
    assert part in caught.value.reason


def test_two_targets() -> None:
    with pytest.raises(UsageError, match="-h and --hosts-file exclude each other"):
        resolve(TargetOptions(hosts="a", hosts_file="b"))
    assert [*RESOLVERS] == ["-h", "--hosts-file", "-c", "-j k8s:"]


def test_a_host_map(tmp_path: Path) -> None:
    want = {"a": HostEntry("b", None, None), "c.d": HostEntry("10.0.0.1", "kim", 22)}
    assert parse_host_map("a=b, c.d=kim@10.0.0.1:22") == want
    (tmp_path / "map").write_text("# names\na = b\n\nc.d=kim@10.0.0.1:22  # the other\n")
    assert parse_host_map(str(tmp_path / "map")) == want
    for text in ("a=", "a=-oX", "-a=b", ",=,", "no-such-file"):
        with pytest.raises(UsageError, match="--host-map"):
            parse_host_map(text)
