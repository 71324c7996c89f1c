"""A record of what was done to hosts, for those who must show it: JSON lines in a file (docs/audit.md)."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import secrets
import stat
import threading
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import IO, Any, cast

from hprofiler.agent import Audited, Witness
from hprofiler.base.errors import HostError, UsageError
from hprofiler.base.passwords import hide_values
from hprofiler.collect.scribe import PATIENCE, Scribe
from hprofiler.transport import Transport

_LONGEST = 4096
_MOST_LINES = 1_000_000
_MOST_OF_AGENTS = 100_000
"""Lines that the agents of one host may take, so that none has the room of the others."""
_LAST_LINE = 1.0
_BUFFER = 1 << 16
"""More than any line: each is one write, which nobody else's gets into."""


class Audit:
    """Writes lines {time, run, host, by, what, pid, detail} in the order of `time`; from any thread.

    `by` is the coordinator or the agent; of what an agent did `time` is when it was heard here, and
    `host_time` when it was done, by the host's own clock. It ends at a million lines, and says so; it also
    ends where nothing more can be written, which `lost` is told.
    """

    def __init__(
        self,
        out: IO[str],
        lost: Callable[[str], None] = lambda why: None,
        run: str = "",
        patience: float = PATIENCE,
    ) -> None:
        self._scribe = Scribe(out, patience)
        self._lost = lost
        self._is_lost = False
        self._run = run
        self._lock = threading.Lock()
        self._lines = 0
        self._of_agents: dict[str, int] = {}

    @classmethod
    def append_to(
        cls,
        path: Path,
        lost: Callable[[str], None] = lambda why: None,
        detail: str = "",
        facts: Mapping[str, Any] | None = None,
        patience: float = PATIENCE,
    ) -> Audit:
        """Lines are added to the file, which its owner alone may read. UsageError where that cannot be.

        The first has the `detail` and `facts` of who does it. It is written at once: where there is no
        room, it is known before any host is touched. Others may be waited for `patience` seconds.
        """
        run = secrets.token_hex(4)
        first = _record(run, "", "coordinator", "begin", os.getpid(), detail, facts or {})
        try:
            descriptor = _own_file(path)
            os.write(descriptor, first.encode())
        except OSError as error:
            raise UsageError(f"--audit {path}: {error.strerror}") from error
        return cls(os.fdopen(descriptor, "a", _BUFFER, encoding="utf-8"), lost, run, patience)

    def note(self, host: str, what: str, detail: str = "", pid: int | None = None) -> None:
        """Something that is done from here. Values that look secret are not written."""
        self._write(host, "coordinator", what, pid, hide_values(detail), {})

    def agent_did(self, host: str, told: Audited) -> None:
        """What an agent says that it did."""
        with self._lock:
            taken = self._of_agents.get(host, 0)
            self._of_agents[host] = taken + len(told.entries)
        room = max(0, _MOST_OF_AGENTS - taken)
        for entry in told.entries[:room]:
            self._write(host, "agent", entry.what, entry.pid, entry.detail, {"host_time": _at(entry.time)})
        if told.dropped:
            self.note(host, "dropped", f"{told.dropped} more entries of the agent's")
        if taken <= _MOST_OF_AGENTS < taken + len(told.entries):
            self.note(host, "dropped", "all that agents tell from here on")

    def end(self, exit_code: int | None, detail: str) -> None:
        """The last line of a run; None where the exit code is not known."""
        self._write("", "coordinator", "end", os.getpid(), detail, {"exit_code": exit_code})

    def _write(
        self, host: str, by: str, what: str, pid: int | None, detail: str, facts: Mapping[str, Any]
    ) -> None:
        with self._lock:
            if self._is_lost:
                return
            self._lines += 1
            if what != "end":  # which has its place
                if self._lines > _MOST_LINES:
                    return
                if self._lines == _MOST_LINES:
                    what, detail = "dropped", "all that follows"
            try:
                self._scribe.write(_record(self._run, host, by, what, pid, detail, facts))
            except (OSError, ValueError) as error:  # what goes on at hosts goes on
                self._is_lost = True
                self._tell_lost(getattr(error, "strerror", None) or str(error))

    def _tell_lost(self, why: str) -> None:
        """Beside: a terminal may take nothing."""

        def tell() -> None:
            with contextlib.suppress(OSError):  # it is gone
                self._lost(why)

        with contextlib.suppress(RuntimeError):  # no thread is to be had
            telling = threading.Thread(target=tell, name="hprofiler-told", daemon=True)
            telling.start()
            telling.join(_LAST_LINE)


class VisitAudit:
    """The record as far as one host's visit goes; without an `audit` it does nothing."""

    def __init__(self, audit: Audit | None, host: str) -> None:
        self._audit = audit
        self._host = host
        self._is_whole = False

    def transport(self, transport: Transport) -> Transport:
        """The same, whose connections and commands are recorded."""
        return cast(Transport, _Audited(transport, self._audit)) if self._audit else transport

    def note(self, what: str, detail: str) -> None:
        if self._audit:
            self._audit.note(self._host, what, detail)

    def witness(self, of_another: bool) -> Witness | None:
        """Of the visit's own agent, or of one that comes after it."""
        if self._audit is None:
            return None
        return Witness(self._asks, self._another_did if of_another else self._own_did)

    @property
    def is_whole(self) -> bool:
        """Whether there is nothing more for the visit's own agent to tell."""
        return self._audit is None or self._is_whole

    def end(self) -> None:
        """The visit is over, and had an agent."""
        if not self.is_whole:
            self.note("dropped", "the agent ended without telling the rest of what it did")

    def _asks(self, request: Mapping[str, Any]) -> None:
        self.note("request", in_words(request))

    def _own_did(self, told: Audited) -> None:
        self._is_whole = told.last
        self._another_did(told)

    def _another_did(self, told: Audited) -> None:
        if self._audit:
            self._audit.agent_did(self._host, told)


def _record(
    run: str, host: str, by: str, what: str, pid: int | None, detail: str, facts: Mapping[str, Any]
) -> str:
    record = {
        "time": _written(datetime.now(timezone.utc)),
        "run": run,
        "host": host,
        "by": by,
        "what": what,
        "pid": pid,
        "detail": detail if len(detail) <= _LONGEST else f"{detail[:_LONGEST]}… ({len(detail)} characters)",
        **facts,
    }
    return json.dumps(record) + "\n"


def _at(seconds: float) -> str:
    return _written(datetime.fromtimestamp(seconds, timezone.utc))


def _written(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds")


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


class _Audited:
    def __init__(self, transport: Transport, audit: Audit) -> None:
        self._transport = transport
        self._audit = audit
        if hasattr(transport, "told"):
            transport.told = self._note

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def connect(self) -> None:
        try:
            destination = self._transport.destination()
        except HostError:  # there is no way that makes sense: what was asked for is told
            self._note("connect", self._transport.host.address)
            raise
        self._note("connect", destination)
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
        words += _sampling_in_words(request["sampling"])
    if "processes" in request:
        words.append(f"pids={','.join(str(process['pid']) for process in request['processes'])}")
    return " ".join(words)


def _sampling_in_words(sampling: Mapping[str, Any]) -> Iterator[str]:
    """How is recorded; what is left to the agent is not told."""
    yield f"events={','.join(sampling['events'])}"
    for name, value in sampling.items():
        if name != "events" and value is not None:
            yield f"{name}={json.dumps(value)}"
