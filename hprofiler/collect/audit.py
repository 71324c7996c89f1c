"""A record of what was done to hosts, for those who must show it: JSON lines in a file (docs/security.md)."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import stat
import threading
from datetime import datetime, timezone
from pathlib import Path
from typing import IO, Any, Callable, Mapping, Optional, Sequence, cast

from hprofiler.agent import AuditEntry
from hprofiler.errors import UsageError
from hprofiler.transports import Transport

_LONGEST = 4096
_MOST_LINES = 1_000_000


class Audit:
    """Writes lines {time, host, by, what, pid, detail}; may be told of things on any thread.

    `by` is the coordinator or the agent, whose times are its host's own. It ends at a million lines, and
    says so; it also ends where nothing more can be written, which `lost` is told.
    """

    def __init__(self, out: IO[str], lost: Callable[[str], None] = lambda why: None) -> None:
        self._out = out
        self._lost = lost
        self._lock = threading.Lock()
        self._lines = 0

    @classmethod
    def append_to(cls, path: Path, lost: Callable[[str], None] = lambda why: None) -> Audit:
        """Lines are added to the file, which its owner alone may read. UsageError where that cannot be.

        The first is written at once: where there is no room, it is known before any host is touched.
        """
        try:
            descriptor = _own_file(path)
            first = _record("", "coordinator", datetime.now(timezone.utc), "begin", None, "")
            os.write(descriptor, first.encode())
        except OSError as error:
            raise UsageError(f"--audit {path}: {error.strerror}") from error
        return cls(os.fdopen(descriptor, "a", encoding="utf-8"), lost)

    def note(self, host: str, what: str, detail: str = "", pid: Optional[int] = None) -> None:
        """Something that is done from here."""
        self._write(host, "coordinator", datetime.now(timezone.utc), what, pid, detail)

    def agent_did(self, host: str, entries: Sequence[AuditEntry], dropped: int) -> None:
        """What an agent says that it did."""
        for entry in entries:
            when = datetime.fromtimestamp(entry.time, timezone.utc)
            self._write(host, "agent", when, entry.what, entry.pid, entry.detail)
        if dropped:
            self.note(host, "dropped", f"{dropped} more entries of the agent's")

    def _write(self, host: str, by: str, when: datetime, what: str, pid: Optional[int], detail: str) -> None:
        with self._lock:
            self._lines += 1
            if self._lines > _MOST_LINES:
                return
            if self._lines == _MOST_LINES:
                what, detail = "dropped", "all that follows"
            try:
                self._out.write(_record(host, by, when, what, pid, detail))
                self._out.flush()
            except OSError as error:  # what goes on at hosts goes on
                self._lines = _MOST_LINES
                with contextlib.suppress(OSError):
                    self._out.close()
                self._lost(error.strerror or str(error))


def _record(host: str, by: str, when: datetime, what: str, pid: Optional[int], detail: str) -> str:
    record = {
        "time": when.isoformat(timespec="milliseconds"),
        "host": host,
        "by": by,
        "what": what,
        "pid": pid,
        "detail": detail if len(detail) <= _LONGEST else f"{detail[:_LONGEST]}… ({len(detail)} characters)",
    }
    return json.dumps(record) + "\n"


def _own_file(path: Path) -> int:
    """A descriptor of a regular file of the user's own, which nobody else may read; no link is followed."""
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)
    try:
        there = os.fstat(descriptor)
        if not stat.S_ISREG(there.st_mode):
            raise OSError(errno.EINVAL, "not a regular file")
        if there.st_uid != os.geteuid():
            raise OSError(errno.EPERM, "the file is another user's")
        os.fchmod(descriptor, 0o600)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def audited(transport: Transport, audit: Audit) -> Transport:
    """The same transport, whose connections and commands are recorded."""
    return cast(Transport, _Audited(transport, audit))


class _Audited:
    def __init__(self, transport: Transport, audit: Audit) -> None:
        self._transport = transport
        self._audit = audit
        if hasattr(transport, "told"):
            transport.told = self._note

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def connect(self) -> None:
        self._note("connect", self._transport.host.address)
        self._transport.connect()

    def open(self, command: str) -> Any:
        self._note("command", command)
        return self._transport.open(command)

    def run(self, command: str, stdin: bytes, timeout: float) -> Any:
        self._note("command", command)
        return self._transport.run(command, stdin, timeout)

    def last(self, command: str) -> None:
        self._note("command", command)
        self._transport.last(command)

    def _note(self, what: str, detail: str) -> None:
        self._audit.note(self._transport.host.name, what, detail)


def in_words(request: Mapping[str, Any]) -> str:
    """A request to an agent without its bulk: which files, which processes, what to record."""
    words = [str(request["type"])]
    for name in ("name", "sha256", "size", "kept", "dry", "only", "agent_cpu", "selector", "containers"):
        if request.get(name) is not None:
            words.append(f"{name}={json.dumps(request[name])}")
    if "sampling" in request:
        words.append(f"events={','.join(request['sampling']['events'])}")
    if "processes" in request:
        words.append(f"pids={','.join(str(process['pid']) for process in request['processes'])}")
    return " ".join(words)
