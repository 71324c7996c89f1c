"""Hosts by name: `-h host1,user@host2:2222,node[01-12]`, `--hosts-file`, `--host-map`, or this machine."""

from __future__ import annotations

import socket
import sys
from collections.abc import Mapping, Sequence

from hprofiler.base.errors import UsageError
from hprofiler.base.paths import at_home
from hprofiler.model import HERE, Host, Target
from hprofiler.resolve.host_names import (
    MAX_HOSTS,
    HostEntry,
    is_host,
    named_hosts,
    parse_entries,
    parse_entry,
)
from hprofiler.resolve.options import Located, TargetOptions

MAX_FILE_BYTES = 1024 * 1024
_PAIRS = "write --host-map cluster-name=ssh-name,…, or a file with one such pair per line"


def listed(options: TargetOptions) -> Located:
    text = (options.hosts or "").strip()
    entries: list[HostEntry] = parse_entries(text, "-h")
    if not entries:
        raise UsageError("-h has no host", "write -h host1,host2")
    return Located(Target("hosts", text), named_hosts(entries, "-h"))


def in_file(options: TargetOptions) -> Located:
    path = options.hosts_file or ""
    lines = _lines(path, "--hosts-file", "name a file with one host per line")
    entries = [entry for where, line in lines for entry in parse_entries(line, where)]
    shown = "standard input" if path == "-" else path
    if not entries:
        raise UsageError(f"{shown}: names no host", "write one host per line")
    return Located(Target("hosts", path), named_hosts(entries, shown))


def this_machine() -> Located:
    name = socket.gethostname() or "localhost"
    return Located(Target("local", name), [Host(name, HERE)])


def parse_host_map(text: str) -> dict[str, HostEntry]:
    """The SSH names of the cluster's hosts: `a=b,c=[user@]d[:port]`, or a file with a pair a line.

    Host names ignore case: the map's are in lower case.
    """
    if "=" in text:
        pairs = [("--host-map", word) for word in text.split(",") if word.strip()]
    else:
        pairs = _lines(text, "--host-map", _PAIRS)
    mapped: dict[str, HostEntry] = {}
    for where, pair in pairs:
        name, equals, entry = (word.strip() for word in pair.partition("="))
        if not equals or not is_host(name):
            raise UsageError(f"{where}: {pair.strip()[:200]!r} is not a pair of hosts", _PAIRS)
        mapped[name.lower()] = parse_entry(entry, where)
    if not mapped or len(mapped) > MAX_HOSTS:
        raise UsageError(f"--host-map holds {len(mapped)} pairs, not 1 to {MAX_HOSTS}", _PAIRS)
    return mapped


def mapped(host_map: Mapping[str, HostEntry], *names: str) -> HostEntry | None:
    """The SSH name of a host of the cluster, found by its long or short names."""
    words = (word.lower() for name in names for word in (name, name.partition(".")[0]))
    return next((host_map[word] for word in words if word in host_map), None)


def unused_map(host_map: Mapping[str, HostEntry], hosts: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    """A note if the map names none of the hosts (each with all its names); unused names are normal."""
    if not host_map or any(mapped(host_map, *names) for names in hosts):
        return ()
    shown = ", ".join(names[0] or names[-1] for names in hosts[:3]) + (", …" if len(hosts) > 3 else "")
    return (f"--host-map names none of the hosts of the run ({shown})",)


def _lines(path: str, option: str, remedy: str) -> list[tuple[str, str]]:
    """The lines of a file, each with its place. `#` starts a comment, `-` is standard input."""
    shown = "standard input" if path == "-" else path
    try:
        if path == "-":
            content = sys.stdin.buffer.read(MAX_FILE_BYTES + 1)  # a question may still read it
        else:
            with at_home(path).open("rb") as file:
                content = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise UsageError(f"{option} {shown}: cannot be read: {error.strerror}", remedy) from error
    if len(content) > MAX_FILE_BYTES:
        raise UsageError(f"{shown}: larger than {MAX_FILE_BYTES // 1024} KiB: not a list of hosts")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise UsageError(f"{shown}:{line}: is not UTF-8 text", remedy) from error
    lines = [(number, line.split("#", 1)[0].strip()) for number, line in enumerate(text.splitlines(), 1)]
    return [(f"{shown}:{number}", line) for number, line in lines if line]
