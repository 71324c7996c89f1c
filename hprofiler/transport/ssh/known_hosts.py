"""known_hosts files: read once, asked for every host, written when a new key is accepted."""

from __future__ import annotations

import base64
import binascii
import fnmatch
import hmac
import os
import threading
from collections.abc import Sequence
from enum import Enum
from pathlib import Path
from typing import NamedTuple

from hprofiler.base.errors import HostError

_AUTHORITY = "@cert-authority"
_KRL = b"SSHKRL\n\0"
_REVOKED_REMEDY = "correct the file that RevokedHostKeys names in ssh_config"


class Verdict(Enum):
    """The status of a host's key in the files."""

    KNOWN = "known"
    UNKNOWN = "unknown"
    CHANGED = "changed"
    REVOKED = "revoked"


class _Entry(NamedTuple):
    """A line; `hashed` are its hashed names as (salt, digest)."""

    marker: str
    patterns: tuple[str, ...]
    hashed: tuple[tuple[bytes, bytes], ...]
    kind: str
    key: bytes
    place: str


class KnownHosts:
    """The known_hosts files of a run; thread-safe. Raises HostError if an existing file cannot be read."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._files: dict[Path, list[_Entry]] = {}
        self._found: dict[tuple[tuple[Path, ...], str], list[_Entry]] = {}
        self._revoked: dict[Path, frozenset[bytes]] = {}

    def check(self, files: Sequence[Path], name: str, key: bytes) -> tuple[Verdict, str]:
        """The status of `key` as the key of `name` (`host` or `[host]:port`), and its place (`file:line`)."""
        with self._lock:
            for entry in self._entries(files):
                if entry.marker == "@revoked" and entry.key == key and _matches(entry, name):
                    return Verdict.REVOKED, entry.place
            known = self._of(files, name)
            for entry in known or self._of(files, without_port(name)):
                if entry.key == key:
                    return Verdict.KNOWN, entry.place
        return (Verdict.CHANGED, known[0].place) if known else (Verdict.UNKNOWN, "")

    def revoked(self, files: Sequence[Path], key: bytes) -> Path | None:
        """The first of these files (RevokedHostKeys of ssh_config) that has the key."""
        with self._lock:
            for file in files:
                if file not in self._revoked:
                    self._revoked[file] = read_revoked(file)
                if key in self._revoked[file]:
                    return file
        return None

    def authorities(self, files: Sequence[Path], name: str) -> dict[bytes, str]:
        """The keys that sign certificates of `name` (@cert-authority), and the place of each."""
        with self._lock:
            entries = self._entries(files)
            for one in dict.fromkeys((name, without_port(name))):
                if found := [
                    entry for entry in entries if entry.marker == _AUTHORITY and _matches(entry, one)
                ]:
                    return {entry.key: entry.place for entry in found}
        return {}

    def kinds(self, files: Sequence[Path], name: str) -> list[str]:
        """The types of the keys known for `name`; a server with several keys should show one of these."""
        with self._lock:
            entries = self._of(files, name) or self._of(files, without_port(name))
            return list(dict.fromkeys(entry.kind for entry in entries))

    def add(self, file: Path, name: str, kind: str, key: bytes) -> None:
        """Remember a key in `file`. Raises OSError."""
        line = f"{name} {kind} {base64.b64encode(key).decode()}"
        with self._lock:
            entries = self._read(file)
            if any(entry.key == key and not entry.marker and _matches(entry, name) for entry in entries):
                return
            _append(file, line)
            entries.append(_Entry("", (name,), (), kind, key, f"{file}:{len(entries) + 1}"))
            self._found.clear()

    def _of(self, files: Sequence[Path], name: str) -> list[_Entry]:
        """The keys of a name. Comparing hashed names is slow, so the result is cached."""
        asked = (tuple(files), name)
        if asked not in self._found:
            entries = self._entries(files)
            self._found[asked] = [entry for entry in entries if not entry.marker and _matches(entry, name)]
        return self._found[asked]

    def _entries(self, files: Sequence[Path]) -> list[_Entry]:
        return [entry for file in files for entry in self._read(file)]

    def _read(self, file: Path) -> list[_Entry]:
        if file not in self._files:
            try:
                text = file.read_text(encoding="utf-8", errors="replace")
            except (FileNotFoundError, NotADirectoryError):
                text = ""
            except OSError as error:  # the file may have another key, or revoke this one
                reason = f"cannot read the known host keys in {file}: {error.strerror}"
                raise HostError(
                    "connect", reason, "make it readable, or name others in ssh_config"
                ) from error
            lines = enumerate(text.splitlines(), 1)
            self._files[file] = [
                entry for number, line in lines for entry in _parse(line, f"{file}:{number}")
            ]
        return self._files[file]


def _parse(line: str, place: str) -> list[_Entry]:
    words = line.split()
    marker = words.pop(0) if words and words[0].startswith("@") else ""
    if len(words) < 3 or words[0].startswith("#"):
        return []
    try:
        key = base64.b64decode(words[2], validate=True)
    except (binascii.Error, ValueError):
        return []
    names = words[0].split(",")
    hashed = tuple(found for found in map(_hashed, names) if found)
    plain = tuple(name for name in names if not name.startswith("|"))
    return [_Entry(marker, plain, hashed, words[1], key, place)]


def _hashed(name: str) -> tuple[bytes, bytes] | None:
    try:
        _, version, salt, digest = name.split("|")
        return (base64.b64decode(salt), base64.b64decode(digest)) if version == "1" else None
    except (ValueError, binascii.Error):
        return None


def _matches(entry: _Entry, name: str) -> bool:
    plain = name.encode()
    found = any(hmac.digest(salt, plain, "sha1") == digest for salt, digest in entry.hashed)
    for pattern in entry.patterns:
        if pattern.startswith("!") and _glob_matches(pattern[1:], name):
            return False
        else:
            found = found or _glob_matches(pattern, name)
    return found


def _glob_matches(pattern: str, name: str) -> bool:
    pattern = pattern.lower()
    if pattern == name:
        return True
    if "*" not in pattern and "?" not in pattern:
        return False
    return fnmatch.fnmatchcase(name, pattern.replace("[", "[[]"))


def without_port(name: str) -> str:
    """Like ssh, accept a key known for the default port at any port."""
    return name[1:].partition("]:")[0] if name.startswith("[") else name


def _append(file: Path, line: str) -> None:
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
    with os.fdopen(descriptor, "r+b") as stream:
        size = stream.seek(0, os.SEEK_END)
        if size:
            stream.seek(size - 1)
            line = line if stream.read(1) == b"\n" else "\n" + line
        stream.write(line.encode() + b"\n")


def read_revoked(file: Path) -> frozenset[bytes]:
    """The keys of a RevokedHostKeys file, one public key a line.

    Raises HostError if a key cannot be read: like ssh, we then trust no host.
    """
    try:
        data = file.read_bytes()
    except OSError as error:
        reason = f"cannot read the revoked host keys in {file}: {error.strerror}"
        raise HostError("connect", reason, _REVOKED_REMEDY) from error
    if data.startswith(_KRL):
        reason = f"the revoked host keys in {file} are a KRL (ssh-keygen -k), which hprofiler cannot read"
        remedy = "name a text file with one revoked public key per line in RevokedHostKeys; --ssh-config FILE"
        raise HostError("connect", reason, f"{remedy} leaves your own ssh_config as it is")
    keys: set[bytes] = set()
    for number, line in enumerate(data.decode("utf-8", "replace").splitlines(), 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        try:
            keys.add(base64.b64decode(words[1], validate=True))
        except (IndexError, binascii.Error, ValueError) as error:
            raise HostError("connect", f"{file}:{number} is not a public key", _REVOKED_REMEDY) from error
    return frozenset(keys)
