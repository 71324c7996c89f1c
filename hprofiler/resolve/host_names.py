"""The host notation: `[user@]host[:port]`, `[IPv6]`, and ranges such as `node[01-12]` or `n[1,3,7-9]`.

Host names become arguments of ssh and folder names, so only characters of host names and addresses are
allowed, and nothing may start with `-`.
"""

from __future__ import annotations

import ipaddress
import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from hprofiler.base.errors import UsageError
from hprofiler.model import Host

MAX_HOSTS = 5000
LONGEST = 1000

_NOTATION = "write [user@]host[:port], an IPv6 address in brackets, or a range such as node[01-12]"
_HOST = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,252}")
_USER = re.compile(r"[A-Za-z0-9._][A-Za-z0-9._@\\+$-]{0,127}")
_RANGE = re.compile(r"\[([0-9,-]+)\]")
_ITEM = re.compile(r"(?:\[[^\[\]]*\]|[^,])+")  # commas only in brackets
_SPAN = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9}))?")


class HostEntry(NamedTuple):
    """A host as named; equal entries are one host."""

    address: str
    user: str | None
    port: int | None


def parse_entries(text: str, where: str) -> list[HostEntry]:
    """The entries of a comma-separated list, ranges expanded. UsageError starts with `where` (option or
    file:line)."""
    entries: list[HostEntry] = []
    for item in map(str.strip, _ITEM.findall(text)):
        if len(item) > LONGEST:
            raise UsageError(f"{where}: {item[:40]!r}… is longer than {LONGEST} characters", _NOTATION)
        if item:
            entries += [parse_entry(word, where) for word in _expand(item, where)]
        if len(entries) > MAX_HOSTS:
            raise _too_many(where)
    return entries


def named_hosts(entries: Sequence[HostEntry], where: str) -> list[Host]:
    """Hosts without duplicates, in order. The shortest unique notation is the name."""
    unique = list(dict.fromkeys(entries))
    if len(unique) > MAX_HOSTS:
        raise _too_many(where)
    by_address = Counter(entry.address for entry in unique)
    by_port = Counter((entry.address, entry.port) for entry in unique)
    hosts = []
    for entry in unique:
        name = entry.address
        if by_address[entry.address] > 1 and entry.port is not None:
            name = f"[{name}]:{entry.port}" if ":" in name else f"{name}:{entry.port}"
        if by_port[entry.address, entry.port] > 1 and entry.user is not None:
            name = f"{entry.user}@{name}"
        hosts.append(Host(name, entry.address, entry.user, entry.port))
    return hosts


def is_host(text: str) -> bool:
    """Whether it is a host name or address that is safe for ssh and as a folder name."""
    return _HOST.fullmatch(text) is not None or _is_ipv6(text)


def _expand(item: str, where: str) -> list[str]:
    """`r[1-2]n[1-3]` gives six words; the last range varies fastest."""
    words, end = [""], 0
    for match in _RANGE.finditer(item):
        numbers = _numbers(match.group(1), item, where)
        if len(words) * len(numbers) > MAX_HOSTS:
            raise _too_many(where)
        between = item[end : match.start()]
        words = [word + between + number for word in words for number in numbers]
        end = match.end()
    return [word + item[end:] for word in words]


def _numbers(spans: str, item: str, where: str) -> list[str]:
    numbers: list[str] = []
    for span in spans.split(","):
        match = _SPAN.fullmatch(span)
        if not match:
            raise UsageError(f"{where}: {item!r}: {span!r} is not a range of numbers", _NOTATION)
        first, last = match.group(1), match.group(2) or match.group(1)
        if int(first) > int(last):
            raise UsageError(f"{where}: {item!r}: the range {span} runs backwards", _NOTATION)
        if len(first) != len(last) and (first[0] == "0" or last[0] == "0"):
            raise UsageError(
                f"{where}: {item!r}: {span} mixes numbers of different widths", "write node[08-12]"
            )
        if int(last) - int(first) + len(numbers) >= MAX_HOSTS:
            raise _too_many(where)
        numbers += [str(n).zfill(len(first)) for n in range(int(first), int(last) + 1)]
    return numbers


def parse_entry(word: str, where: str) -> HostEntry:
    """One `[user@]host[:port]`. UsageError starts with `where`."""
    user, at, rest = word.rpartition("@")
    if at and not _USER.fullmatch(user):
        raise UsageError(f"{where}: {word!r}: {user!r} is not a user name", _NOTATION)
    if rest.startswith("["):
        address, closed, tail = rest[1:].partition("]")
        if not closed or not _is_ipv6(address) or (tail and not tail.startswith(":")):
            raise UsageError(f"{where}: {word!r} is not an IPv6 address in brackets", _NOTATION)
        colon, port = tail[:1], tail[1:]
    else:
        address, colon, port = rest.partition(":")
        if ":" in port:
            raise UsageError(f"{where}: {word!r}: more than one colon", "write an IPv6 address as [::1]:22")
        if not _HOST.fullmatch(address):
            raise UsageError(f"{where}: {word!r} is not a host", _NOTATION)
    return HostEntry(address, user or None, _port(port, word, where) if colon else None)


def _port(text: str, word: str, where: str) -> int:
    if not re.fullmatch(r"[0-9]{1,5}", text) or not 0 < int(text) < 65536:
        raise UsageError(f"{where}: {word!r}: {text!r} is not a port (1 to 65535)", _NOTATION)
    return int(text)


def _is_ipv6(text: str) -> bool:
    address, percent, zone = text.partition("%")
    if percent and not re.fullmatch(r"[A-Za-z0-9_.-]{1,15}", zone):
        return False
    try:
        return ipaddress.IPv6Address(address).version == 6
    except ValueError:
        return False


def _too_many(where: str) -> UsageError:
    return UsageError(f"{where}: more than {MAX_HOSTS} hosts", "split the run, or name fewer")
