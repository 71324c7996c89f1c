"""What Spark knows of a recorded application, put into the run folder: facts of the recording, for stages of
samples; and the whole application, for tables."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from email.utils import parsedate_to_datetime
from functools import partial
from pathlib import Path

import msgspec

from hprofiler.app.spark_driver import driver_process, is_own
from hprofiler.base.errors import HprofilerError
from hprofiler.base.text import printable, short_host
from hprofiler.model import HERE, HostRecord, Outcome, Status
from hprofiler.report.spark.words import note_text
from hprofiler.resolve import SparkDriver
from hprofiler.spark.application import Application, Note
from hprofiler.spark.facts import LONGEST, ClockOf, DriverClock, SparkError, facts_of, write_facts
from hprofiler.spark.log.files import local_files
from hprofiler.spark.log.reading import read_application
from hprofiler.spark.rest.application import fetch_application
from hprofiler.spark.rest.server import Answer, Ask, driver_clock
from hprofiler.spark.saved import save_application

_log = logging.getLogger(__name__)
_SECONDS = 60.0
"""How long a run waits for the tasks of an application."""
_LOOK_EVERY = 10.0
_LOOK_PART = 0.02
"""How often a driver is asked while it is recorded, in seconds, and at most what part of the time."""
_REMEDY = "name the driver's page, a history server or an event log with --spark; or use --slices none"


@dataclass(frozen=True)
class _Known:
    """An application, where it was read, and when (seconds since 1970). `clock` measures its driver's."""

    application: Application
    where: str
    read: float
    clock: Callable[[], DriverClock | None] = lambda: None


class LastLook:
    """What a driver said last, which answers no more once its application has ended. A thread asks it until
    `end`."""

    def __init__(self, driver: SparkDriver) -> None:
        self.known: _Known | None = None
        self._driver = driver
        self._over = threading.Event()
        threading.Thread(target=self._look, name="hprofiler-last-look", daemon=True).start()

    def _look(self) -> None:
        pause, clock = 0.0, None
        while not self._over.wait(pause):
            began = time.monotonic()
            try:
                known = _of_driver(self._driver)
                clock = clock or known.clock()
                self.known = replace(known, clock=partial(_same, clock))
            except HprofilerError as error:  # it starts, or has ended
                _log.info("asking the driver: %s", error)
            except Exception:  # a bug must not end the recording
                _log.exception("asking the driver")
            pause = max(_LOOK_EVERY, (time.monotonic() - began) / _LOOK_PART)

    def end(self) -> None:
        self._over.set()


def _same(clock: DriverClock | None) -> DriverClock | None:
    return clock


def add_facts(
    source: SparkDriver | Path,
    folder: Path,
    results: Iterable[HostRecord],
    since: float,
    until: float,
    last_look: LastLook | None = None,
) -> Outcome | None:
    """Write what is known for a recording from `since` to `until` (seconds since 1970): what the driver said
    last, if it is gone and no history server knows its application.

    Returns an outcome if it cannot be, or something is missing in it; a run never fails for that.
    """
    results = tuple(results)
    host = results[0].name
    try:
        known = _read(source, last_look)
        application, of_hosts = known.application, _clocks(results)
        facts, notes = facts_of(application, since, until, lambda driver: of_hosts(driver) or known.clock())
        missing = [note_text(note)[:LONGEST] for note in notes]
        read = round(known.read * 1000)
        facts = msgspec.structs.replace(facts, source=known.where, read=read, notes=tuple(missing))
        if any(result.address == HERE for result in results):
            facts = msgspec.structs.replace(facts, driver_pid=driver_process(application))
        write_facts(facts, folder)
        if all(note.code != "too-slow" for note in application.notes):
            save_application(application, folder)
    except HprofilerError as error:
        reason = f"samples are not divided by Spark stage: {printable(error.reason)}"
        return Outcome(host, Status.DEGRADED, "report", reason, _REMEDY, code=SparkError.code)
    except OSError as error:
        reason = f"samples are not divided by Spark stage: cannot write it: {error.strerror}"
        return Outcome(host, Status.DEGRADED, "report", reason, "free some space", code=SparkError.code)
    except Exception as error:  # a bug here must not cost the report
        _log.exception("reading Spark's stages")
        reason = f"samples are not divided by Spark stage: unexpected {type(error).__name__}: {error}"
        return Outcome(host, Status.DEGRADED, "report", reason, code=SparkError.code)
    if facts.damaged:
        missing.append(f"{facts.damaged} lines of the event log are damaged")
    if not facts.tasks:
        missing.append("Spark knows no task that ran during the recording")
    if not missing:
        return None
    return Outcome(
        host, Status.DEGRADED, "report", f"Spark stages: {'; '.join(missing)}", code="spark-incomplete"
    )


def _read(source: SparkDriver | Path, last_look: LastLook | None = None) -> _Known:
    if isinstance(source, Path):
        where = printable(str(source))[:LONGEST]
        return _Known(read_application(local_files(source)), where, time.time())
    try:
        return _of_driver(source)
    except HprofilerError:
        try:
            if source.ended is None:
                raise
            return _of_driver(source.ended())
        except HprofilerError:
            known = last_look.known if last_look else None
            if known is None:
                raise
    known.application.notes.append(Note("driver-gone", round(time.time() - known.read)))
    return known


def _of_driver(driver: SparkDriver) -> _Known:
    ask = asking(driver)
    application = fetch_application(ask, driver.application, _SECONDS, driver.attempt)
    clock = partial(driver_clock, ask, application.id)
    return _Known(application, "the driver's REST interface", time.time(), clock)


def asking(source: SparkDriver) -> Ask:
    """Asks a driver, and notes when."""

    def ask(path: str, parameters: Mapping[str, str]) -> Answer:
        sent = time.time()
        content, date = source.get(path, parameters)
        return Answer(content, sent, time.time(), _seconds(date))

    return ask


def _seconds(date: str | None) -> float | None:
    """A `Date` header in seconds since 1970."""
    try:
        return None if date is None else parsedate_to_datetime(date[:100]).timestamp()
    except (ValueError, TypeError, OverflowError):
        return None


def _clocks(results: Iterable[HostRecord]) -> ClockOf:
    """The clock of the driver's host, if that was visited or is this machine: by the driver's process, else
    by its name or address."""
    of_driver: DriverClock | None = None
    by_name: dict[str, DriverClock] = {}
    for result in results:
        if result.clock is None:
            continue
        source = f"clock of {result.name}"[:LONGEST]
        clock = DriverClock(result.clock.offset, result.clock.uncertainty, source)
        for name in (result.name, result.address):
            by_name.setdefault(short_host(name), clock)
        labels = [result.labels, *(one.process.labels for one in result.recordings)]
        if any(one.get("role") == "driver" for one in labels):
            of_driver = clock

    def of(driver: str) -> DriverClock | None:
        known = of_driver or by_name.get(short_host(driver))
        if known is None and is_own(driver):
            return by_name.get(HERE, DriverClock(0.0, 0.0, "clock of this machine"))
        return known

    return of
