"""Receives the results of a host, with limits of size and time."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Protocol

from hprofiler.agent.messages import MetricsMessage, PausesMessage, ProfileHeader, RawHeader
from hprofiler.agent.session import AgentSession
from hprofiler.base.errors import HostError, HprofilerError
from hprofiler.base.text import printable
from hprofiler.collect.ledger import Ledger
from hprofiler.collect.visit import Visit
from hprofiler.model import Host, Process, Recording, Status
from hprofiler.model.metrics import Metrics

SLOWEST = 100_000  # slowest accepted transfer, in bytes per second
PART = 1 << 20  # bytes of a payload per time limit

MOST_PROFILES = 1 << 30
"""Limit of one host's profiles and pauses, in bytes; so much more for each hour."""
PAUSE = 64
"""Bytes per pause: less in memory, and in run.json."""
NUMBER = 8
"""Bytes per number of metrics."""
MOST_RAW = 4 << 30
"""Limit of one host's raw recordings, in bytes; so much more for each hour."""
_HOUR = 3600.0
_FEWER = "record fewer processes (-j) or events (-e), or for a shorter time"

Header = ProfileHeader | RawHeader


class ProfileSink(Protocol):
    """Where profiles go. Called on many threads.

    The pieces raise HostError if the data is damaged or the connection is lost: let it through, and keep
    nothing.
    """

    def profile(
        self, host: Host, recording: Recording, pieces: Iterator[bytes], more: bool = False
    ) -> Recording:
        """Keep one compact profile (`flamegraph/FORMAT.md`); returns the recording with its totals and times.

        With `more` it is a part of a recording that goes on. The last part completes it.

        Raises HprofilerError for bytes that are not a profile of the event.
        """

    def raw(self, host: Host, process: Process, name: str, pieces: Iterator[bytes]) -> None:
        """Keep the engine's file `name`."""

    def metrics(self, host: Host, metrics: Metrics, more: bool = False) -> None:
        """Keep what the host did during the recording. Raises HprofilerError for impossible times.

        With `more` it is what the host did since the last call. The last call has all.
        """


class Fetching:
    """The results of one host's visit. Work on this machine has no time limit: a slow coordinator must not
    fail hosts."""

    def __init__(self, visit: Visit, sink: ProfileSink) -> None:
        self._visit = visit
        self._host = visit.host
        self._sink = sink
        self._began = time.monotonic()
        self._kept: dict[type[Header], int] = {ProfileHeader: 0, RawHeader: 0}

    def time_for(self, size: int) -> float:
        """Seconds for the next part of a payload of which `size` bytes are missing."""
        return self._visit.reach.timeout + min(size, PART) / SLOWEST

    def fetch(self, session: AgentSession, header: Header, ledger: Ledger) -> None:
        """Receive what the header announced. What cannot be kept becomes an outcome."""
        with ExitStack() as own_work:
            pieces = self._arriving(session.payload(header), header.size, own_work)
            try:
                self._keep(header, pieces, ledger)
            except (HprofilerError, OSError) as error:
                for _ in pieces:  # unread bytes would be taken for the next profile
                    pass
                remedy = error.remedy if isinstance(error, HprofilerError) else ""
                ledger.problem(header.pid, printable(str(error)), remedy)

    def pauses(self, message: PausesMessage, ledger: Ledger) -> None:
        """Keep what the collectors of a process did, or did since the last call."""
        try:
            self._count(ProfileHeader, len(message.end) * PAUSE)
        except HostError as error:
            ledger.problem(message.pid, error.reason, error.remedy)
            return
        ledger.paused(message.pauses)

    def metrics(self, message: MetricsMessage) -> None:
        """Keep what the host did during the recording, or since the last call. A recording without it is
        complete."""
        with self._visit.without_limits():
            try:
                self._count(ProfileHeader, len(message.time) * len(message.series) * NUMBER)
                self._sink.metrics(self._host, message.metrics, message.more)
            except HprofilerError as error:
                if message.more:
                    return  # the last message has all
                reason = printable(f"its metrics were left out: {error}")
                self._visit.note(Status.DEGRADED, "fetch", reason, error.remedy, code="metrics-left-out")

    def _arriving(self, pieces: Iterator[bytes], size: int, own_work: ExitStack) -> Iterator[bytes]:
        """Each part has a time limit; the work after the last part has none."""
        came, due = 0, PART
        for piece in pieces:
            came += len(piece)
            if came >= due:
                due = came + PART
                self._visit.limit(self.time_for(size - came))
            yield piece
        own_work.enter_context(self._visit.without_limits())

    def _keep(self, header: Header, pieces: Iterator[bytes], ledger: Ledger) -> None:
        process = ledger.process(header.pid)
        more = isinstance(header, ProfileHeader) and header.more
        self._count(type(header), header.size)
        if isinstance(header, RawHeader):
            self._sink.raw(self._host, process, header.name, pieces)
            return
        recording = Recording(
            process=process,
            event=header.event,
            engine=header.engine,
            source=header.source,
            interval=header.interval,
            samples=header.samples,
            seconds=header.seconds,
            cpu_seconds=header.cpu_seconds,
            resident_bytes=header.resident_bytes,
            attach_seconds=header.attach_seconds,
            bytes_received=header.size,
            callers_unsure=header.callers_unsure,
            **ledger.began(header.pid)._asdict(),
        )
        ledger.recorded(self._sink.profile(self._host, recording, pieces, more), more)

    def _count(self, kind: type[Header], size: int) -> None:
        """Raises HostError if the host sends too much."""
        most, what, remedy = MOST_PROFILES, "profiles", _FEWER
        if kind is RawHeader:
            most, what, remedy = MOST_RAW, "raw recordings", f"{_FEWER}, or without --keep-raw"
        # Parts of long recordings are put together as they come, so that less is kept of them.
        most = int(most * (1 + (time.monotonic() - self._began) / _HOUR))
        if self._kept[kind] + size > most:
            raise HostError(
                "fetch",
                f"not kept: its host has more than {most >> 20} MiB of {what}",
                remedy,
                code="too-large",
                parameters={"most": most},
            )
        self._kept[kind] += size


def not_all_came(seconds: float, why: str = "") -> HostError:
    """The failure of a host that was too slow to send its results."""
    reason = f"{why}it did not send all its recordings within {seconds:.0f} s"
    return HostError("fetch", reason, "" if why else f"raise --timeout, or {_FEWER}")
