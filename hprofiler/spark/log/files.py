"""The files of an event log: one file, the folder of a rolling log, or a folder of Databricks.

What is known of them is their names, so that folders of other file systems are read alike.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import IO

from hprofiler.base.paths import is_file, is_folder
from hprofiler.base.text import some
from hprofiler.spark.facts import SparkError
from hprofiler.spark.log.codecs import Stream

_BUFFER = 1 << 20
_ZIP = b"PK\x03\x04"
_ATTEMPT = re.compile(r"_(\d{1,9})(?:\.[a-z0-9]+)*$")
_ROLLED = re.compile(r"events_(\d{1,9})_.*")
_LOG = re.compile(r"eventlog_v2_|application_\d|app-\d|local-\d|spark-")
_DATABRICKS = re.compile(r"eventlog(?:-(\d{4}-\d\d-\d\d--\d\d-\d\d))?(?:\.\w{1,5})?")


@dataclass(frozen=True)
class LogFile:
    """A file of a log, opened when its turn comes. `name` is for messages."""

    name: str
    open: Callable[[], AbstractContextManager[Stream]]


def local_files(path: Path) -> list[LogFile]:
    """The files of a local event log, oldest first; of the only one in a folder. Raises SparkError if there
    is none."""
    if is_file(path):
        return _unzipped(path) or [_local(path)]
    if not is_folder(path):
        raise SparkError(f"{path} does not exist", "name an event log, or the address of the Spark driver")
    try:
        names = [file.name for file in path.iterdir() if is_file(file)]
    except OSError as error:
        raise SparkError(f"{path}: {error.strerror}", "check that you may read it") from error
    found = in_order(names)
    if found:
        return [_local(path / name) for name in found]
    logs = sorted(one for one in path.iterdir() if _LOG.match(one.name))
    if len(logs) == 1:
        return local_files(logs[0])
    remedy = f"name one log: {logs[0]}" if logs else "name a file, or a folder eventlog_v2_…"
    raise SparkError(f"{path} is not the event log of one application", remedy)


def _unzipped(path: Path) -> list[LogFile]:
    """The files in the archive that a history server gave away; none for other files."""
    try:
        with path.open("rb") as file:
            if file.read(len(_ZIP)) != _ZIP:
                return []
        files, others = archived_files(path)
    except (OSError, zipfile.BadZipFile) as error:
        raise SparkError(f"{path}: {error}", "download it again") from error
    if others:
        raise SparkError(f"{path} has several event logs", f"unpack it, and name one: {some(others, 5)}")
    return files


def archived_files(archive: Path | IO[bytes], attempt: str = "") -> tuple[list[LogFile], list[str]]:
    """The files of an event log in a ZIP archive, oldest first: those of an attempt, if the archive has logs
    of several. Then the names of its other logs. Raises BadZipFile."""
    packed = zipfile.ZipFile(archive)
    by_log: dict[str, list[str]] = {}
    for info in packed.infolist():
        folder, _, name = info.filename.rpartition("/")
        if not info.is_dir() and not name.startswith("appstatus_"):
            by_log.setdefault(folder if in_order([name]) else info.filename, []).append(info.filename)
    logs = sorted(by_log, key=lambda log: (_of_attempt(log) == attempt, log), reverse=True)
    if not logs:
        return [], []
    by_name = {path.rpartition("/")[2]: path for path in by_log[logs[0]]}

    def opener(path: str) -> Callable[[], AbstractContextManager[IO[bytes]]]:
        return lambda: packed.open(path)

    names = in_order(by_name) or list(by_name)
    return [LogFile(name, opener(by_name[name])) for name in names], logs[1:]


def _of_attempt(log: str) -> str:
    """The number of its attempt, as the name of a log has it."""
    found = _ATTEMPT.search(log.rpartition("/")[2])
    return found.group(1) if found else ""


def in_order(names: Iterable[str]) -> list[str]:
    """The names in a folder that are the event log of one application, oldest first; none if there is no log.

    A compacted file has what is left of all files before it, and of the one with its own number.
    """
    names = list(names)
    rolled = sorted(
        (int(match.group(1)), ".compact" in name, name)
        for name in names
        if (match := _ROLLED.fullmatch(name))
    )
    if rolled:
        compact = max((number for number, is_compact, _ in rolled if is_compact), default=-1)
        return [
            name
            for number, is_compact, name in rolled
            if number > compact or (number == compact and is_compact)
        ]
    # Databricks: the newest part has no date.
    dated = ((match.group(1) or "~", name) for name in names if (match := _DATABRICKS.fullmatch(name)))
    return [name for _, name in sorted(dated)]


def gaps(names: Iterable[str]) -> tuple[int, str]:
    """How many files a rolling log lacks, and where the first ones are missing."""
    names = list(names)
    numbers = sorted({int(match.group(1)) for name in names if (match := _ROLLED.fullmatch(name))})
    if not numbers:
        return 0, ""
    before = [numbers[0] - 1 if any(".compact" in name for name in names) else 0, *numbers]
    found = [(low + 1, high - 1) for low, high in pairwise(before) if high > low + 1]
    shown = [f"events_{low}" if low == high else f"events_{low} to {high}" for low, high in found[:5]]
    return sum(high - low + 1 for low, high in found), some(shown, 4)


def _local(path: Path) -> LogFile:
    return LogFile(str(path), lambda: path.open("rb", buffering=_BUFFER))
