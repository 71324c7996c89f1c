"""The audit file (`--audit`, docs/audit.md): a JSON line for each thing that is done to a host."""

from __future__ import annotations

import contextlib
import errno
import json
import logging
import os
import secrets
import stat
import sys
from collections.abc import Callable, Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import IO, Any

from hprofiler.agent.messages import Action
from hprofiler.base.errors import UsageError
from hprofiler.base.passwords import hide_values

_LONGEST = 4096
_MOST_OF_AGENTS = 100_000
"""Lines that the agents of one host may write, so that no host fills the disk."""
_BUFFER = 1 << 16
"""More than any line, so that each is one write."""


class Audit:
    """Writes lines {time, run, host, by, what, pid, detail} in the order of `time`; from any thread.

    `by` is the coordinator or the agent. Of an agent's action `time` is when it was heard here, `host_time`
    when it was done by the host's clock. If a line cannot be written the file ends, and `lost` is called.
    """

    def __init__(self, out: IO[str], lost: Callable[[str], None] = lambda why: None, run: str = "") -> None:
        self._handler = _Handler(out, lost)
        self._handler.setFormatter(_JsonFormatter())
        self._logger = logging.Logger("hprofiler.audit")
        self._logger.addHandler(self._handler)
        self._run = run

    @classmethod
    def append_to(
        cls,
        path: Path,
        lost: Callable[[str], None] = lambda why: None,
        detail: str = "",
        facts: Mapping[str, Any] | None = None,
    ) -> Audit:
        """Append lines to the file, which only its owner may read. UsageError if that is not possible.

        The first line, with the `detail` and `facts` of who runs the command, is written at once: a full disk
        is known before any host is touched.
        """

        def refuse(why: str) -> None:
            raise UsageError(f"--audit {path}: {why}")

        try:
            out = os.fdopen(_open(path), "a", _BUFFER, encoding="utf-8")
        except OSError as error:
            raise UsageError(f"--audit {path}: {error.strerror}") from error
        audit = cls(out, refuse, secrets.token_hex(4))
        audit.write("", "coordinator", "begin", detail, os.getpid(), **(facts or {}))
        audit._handler.lost = lost
        return audit

    def note(self, host: str, what: str, detail: str = "") -> None:
        """Something that is done from here. Values that look secret are not written."""
        self.write(host, "coordinator", what, hide_values(detail))

    def end(self, exit_code: int | None, detail: str) -> None:
        """The last line of a run; the exit code is None where it is not known."""
        self.write("", "coordinator", "end", detail, os.getpid(), exit_code=exit_code)

    def write(self, host: str, by: str, what: str, detail: str, pid: int | None = None, **facts: Any) -> None:
        if len(detail) > _LONGEST:
            detail = f"{detail[:_LONGEST]}… ({len(detail)} characters)"
        line = {"run": self._run, "host": host, "by": by, "what": what, "pid": pid, "detail": detail}
        self._logger.info({**line, **facts})


class _JsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        """Called with the handler's lock held, so that times are in order."""
        assert isinstance(record.msg, dict)
        return json.dumps({"time": _iso(datetime.now(timezone.utc)), **record.msg})


class _Handler(logging.StreamHandler):  # type: ignore[type-arg]  # a generic since Python 3.11
    def __init__(self, out: IO[str], lost: Callable[[str], None]) -> None:
        super().__init__(out)
        self.lost = lost
        self._ended = False

    def emit(self, record: logging.LogRecord) -> None:
        if not self._ended:
            super().emit(record)

    def handleError(self, record: logging.LogRecord) -> None:
        error = sys.exc_info()[1]
        self._ended = True
        with contextlib.suppress(OSError):
            self.stream.close()
        self.lost(getattr(error, "strerror", None) or str(error))


class VisitAudit:
    """The audit of one host's visit. It is its agents' `Witness`."""

    def __init__(self, audit: Audit, host: str) -> None:
        self._audit = audit
        self._host = host
        self._lines = 0

    def note(self, what: str, detail: str) -> None:
        self._audit.note(self._host, what, detail)

    def asks(self, request: Mapping[str, Any]) -> None:
        self.note("request", describe(request))

    def did(self, action: Action) -> None:
        self._lines += 1
        if self._lines < _MOST_OF_AGENTS:
            done = _iso(datetime.fromtimestamp(action.time, timezone.utc))
            self._audit.write(self._host, "agent", action.what, action.detail, action.pid, host_time=done)
        elif self._lines == _MOST_OF_AGENTS:
            self.note("dropped", "no further actions of this host's agents are logged")


def _iso(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds")


def _open(path: Path) -> int:
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


def describe(request: Mapping[str, Any]) -> str:
    """A request to an agent without its bulk: which files, which processes, what to record."""
    words = [str(request["type"])]
    for name in ("name", "sha256", "size", "dry", "agent_cpu", "selector", "containers"):
        if request.get(name) is not None:
            words.append(f"{name}={json.dumps(request[name])}")
    for name, value in request.get("sampling", {}).items():
        if name == "events":
            words.append(f"events={','.join(value)}")
        elif value is not None:  # otherwise it is left to the agent
            words.append(f"{name}={json.dumps(value)}")
    if "processes" in request:
        words.append(f"pids={','.join(str(process['pid']) for process in request['processes'])}")
    return " ".join(words)
