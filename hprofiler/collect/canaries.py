"""Canaries: one process of each kind of JVM is recorded alone first; the others only if that goes well."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

from hprofiler.base.errors import HostError
from hprofiler.model import Process

TRIES = 5
"""Canaries of one kind, on all hosts, that may fail before anything is recorded."""
NO_CANARY = "examine that process, or record without a canary: leave out --canary"


class Kind(NamedTuple):
    """JVMs of one version on one processor, recorded by one engine: what breaks one may break all."""

    arch: str
    version: str
    engine: str

    def __str__(self) -> str:
        return f"JDK {self.version} on {self.arch} by {self.engine}"


def kind_of(arch: str, process: Process, engine: str) -> Kind | None:
    """None for a process that is not a JVM."""
    return Kind(arch, process.jvm_version or "unknown", engine) if process.is_jvm else None


class Canaries:
    """Which kinds of JVM may be recorded; shared by the visits of all hosts."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._under_way: set[Kind] = set()
        self._verdicts: dict[Kind, str] = {}
        self._failed: Counter[Kind] = Counter()

    def verdict(
        self, kind: Kind, who: str, record: Callable[[], str | None], check: Callable[[], None]
    ) -> str | None:
        """Why processes of this kind must not be recorded; "" if they may.

        The first caller's process, `who`, is the canary: `record` returns the verdict, or None if it shows
        nothing about the kind, and so does this method. Then the next caller's process is the canary, up to
        `TRIES` times. Other callers wait; `check` raises when they must not wait any longer. Losing the
        host during the recording counts against the kind.
        """
        with self._changed:
            while kind in self._under_way:
                self._changed.wait(1.0)
                check()
            if kind in self._verdicts:
                return self._verdicts[kind]
            self._under_way.add(kind)
        verdict: str | None = None
        try:
            verdict = record()
        except HostError as lost:
            verdict = f"the canary for {kind} failed: the host of {who} was lost: {lost.reason}"
            reason = f"{lost.reason}; {who} was being recorded as a canary"
            raise lost.reworded(reason) from lost
        finally:
            self._store(kind, verdict)
        return verdict

    def passed(self, kind: Kind) -> str | None:
        """The engine whose canary of this kind went well, whatever engine `kind` names; None without one."""
        with self._changed:
            passed = (one for one, verdict in self._verdicts.items() if not verdict)
            return next((one.engine for one in passed if one[:2] == kind[:2]), None)

    def _store(self, kind: Kind, verdict: str | None) -> None:
        with self._changed:
            self._under_way.discard(kind)
            if verdict is None:
                self._failed[kind] += 1
                if self._failed[kind] == TRIES:
                    verdict = f"{TRIES} canaries for {kind} could not be recorded"
            if verdict is not None:
                self._verdicts[kind] = verdict
            self._changed.notify_all()
