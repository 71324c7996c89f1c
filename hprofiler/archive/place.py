"""Where an archive is: a folder, or an address of fsspec (object stores, HDFS). Files are written once.

    PLACE/hprofiler-archive.json                                    the version
    PLACE/TABLE/month=2026-11/app=NAME/RUN.parquet          one run, as it was added
    PLACE/TABLE/month=2026-11/app=NAME/compact-HASH.parquet many runs

A run is in the archive when a file of `runs` has it: that is written last, and deleted first.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import socket
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from threading import get_ident
from typing import Any
from urllib.parse import quote, unquote

from hprofiler.archive.schema import MARKER, VERSION
from hprofiler.base.errors import HprofilerError, UsageError
from hprofiler.base.paths import at_home

VARIABLE = "HPROFILER_ARCHIVE"
COMPACT = "compact-"
_LOCK = "compact.lock"
# Seconds that no compaction takes.
_LONGEST_LOCK = 86_400.0
PART = ".part"
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*(?=://)", re.IGNORECASE)
# A name of a file has at most 255 bytes on most file systems.
_LONGEST = 200


class ArchiveError(HprofilerError):
    """The archive, or a file of it, cannot be read or written."""


@dataclass(frozen=True, order=True)
class File:
    """A file of each table, without the table's name: `month` is 2026-11, `stem` a run or compact-HASH."""

    month: str
    application: str
    stem: str

    @classmethod
    def of(cls, started: datetime, application: str, stem: str) -> File:
        return cls(f"{started:%Y-%m}", quote(application, safe="")[:_LONGEST], stem)

    @classmethod
    def parse(cls, path: str) -> File | None:
        match = re.fullmatch(r"[a-z]+/month=([^/]*)/app=([^/]*)/([^/.][^/]*)\.parquet", path)
        return cls(match[1], match[2], match[3]) if match else None

    def path(self, table: str) -> str:
        return f"{table}/month={self.month}/app={self.application}/{self.stem}.parquet"

    @property
    def is_compact(self) -> bool:
        return self.stem.startswith(COMPACT)

    @property
    def name(self) -> str:
        """The application's name, as far as it fits."""
        return unquote(self.application)


class Place:
    """A folder. `path` is how DuckDB names a file of it."""

    filesystem: Any = None
    """What DuckDB reads it by; None for folders."""

    def __init__(self, address: str) -> None:
        self.address = address
        self._root = at_home(address)

    def path(self, name: str) -> str:
        return str(self._root / name)

    def name_of(self, path: str) -> str:
        """The reverse of `path`."""
        return str(Path(path).relative_to(self._root))

    def files(self, folder: str) -> list[tuple[str, float]]:
        """All files below a folder, sorted, and when each was written or copied (seconds since 1970)."""
        found = []
        for path in sorted((self._root / folder).rglob("*")):
            with suppress(FileNotFoundError):
                if path.is_file():
                    stat = path.stat()  # a copy may keep the time of what was copied
                    found.append((str(path.relative_to(self._root)), max(stat.st_mtime, stat.st_ctime)))
        return found

    def has_other_files(self) -> bool:
        """Whether anything is in it, but for a file that another process writes."""
        return self._root.is_dir() and any(not path.name.endswith(PART) for path in self._root.iterdir())

    def read(self, name: str) -> bytes | None:
        """The content of a small file; None if there is none."""
        try:
            return (self._root / name).read_bytes()
        except FileNotFoundError:
            return None

    @contextmanager
    def writing(self, name: str) -> Iterator[Path]:
        """A file to write, which is at its name when the block succeeds, whole or not at all."""
        path = self._root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        aside = path.with_name(f".{path.name}.{_writer()}{PART}")
        try:
            yield aside
            aside.replace(path)
        except BaseException:
            aside.unlink(missing_ok=True)
            raise

    def delete(self, name: str) -> None:
        (self._root / name).unlink(missing_ok=True)

    @contextmanager
    def lock(self) -> Iterator[None]:
        """One process at a time may replace files. What cannot be written meanwhile is an ArchiveError."""
        with self._changing(), (self._root / _LOCK).open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise ArchiveError(
                    f"another process compacts or prunes {self.address}", "wait for it"
                ) from None
            except OSError as error:
                reason = f"cannot lock {self.path(_LOCK)}: {error.strerror}"
                raise ArchiveError(reason, "the archive's file system must support file locks") from error
            yield

    @contextmanager
    def _changing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            reason = f"cannot write to {self.address}: {error.strerror or error}"
            remedy = "run it as the user who owns the archive" if isinstance(error, PermissionError) else ""
            raise ArchiveError(reason, remedy) from error


class _Address(Place):
    """What fsspec knows: `s3://bucket/archive`, `hdfs://…`, `memory://…`."""

    def __init__(self, address: str) -> None:
        self.address = address
        try:
            import fsspec
        except ImportError as error:
            remedy = "pip install 'hprofiler[fsspec]', and the library for this kind of address (s3fs, gcsfs)"
            raise UsageError(f"{address} needs the library fsspec", remedy) from error
        try:
            self.filesystem, self._folder = fsspec.core.url_to_fs(address)
        except (ImportError, ValueError) as error:
            raise UsageError(f"cannot open {address}: {error}", "install the library for it") from error
        protocol = self.filesystem.protocol
        self._protocol = protocol if isinstance(protocol, str) else protocol[0]
        self._folder = self._folder.rstrip("/")

    def path(self, name: str) -> str:
        return f"{self._protocol}://{self._folder}/{name}"

    def name_of(self, path: str) -> str:
        return path.removeprefix(f"{self._protocol}://{self._folder}/")

    def files(self, folder: str) -> list[tuple[str, float]]:
        self.filesystem.invalidate_cache()
        found = self.filesystem.find(f"{self._folder}/{folder}", detail=True)
        return [(path[len(self._folder) + 1 :], _written(found[path])) for path in sorted(found)]

    def has_other_files(self) -> bool:
        try:
            return any(not name.endswith(PART) for name in self.filesystem.ls(self._folder, detail=False))
        except FileNotFoundError:
            return False

    def read(self, name: str) -> bytes | None:
        try:
            content: bytes = self.filesystem.cat_file(f"{self._folder}/{name}")
        except FileNotFoundError:
            return None
        return content

    @contextmanager
    def writing(self, name: str) -> Iterator[Path]:
        target = f"{self._folder}/{name}"
        with tempfile.TemporaryDirectory(prefix="hprofiler-archive-") as folder:
            path = Path(folder, "file")
            yield path
            aside = f"{target}.{_writer()}{PART}"
            self.filesystem.makedirs(target.rpartition("/")[0], exist_ok=True)
            self.filesystem.put_file(str(path), aside)
            self.filesystem.mv(aside, target)

    def delete(self, name: str) -> None:
        with suppress(FileNotFoundError):
            self.filesystem.rm_file(f"{self._folder}/{name}")

    @contextmanager
    def lock(self) -> Iterator[None]:
        with self._changing():
            held = self.read(_LOCK)
            if held is not None and _has_ended(held):
                self.delete(_LOCK)
                held = None
            mine = json.dumps([socket.gethostname(), os.getpid(), time.time()]).encode()
            if held is None:
                self._create(_LOCK, mine)
                held = self.read(_LOCK)
            if held != mine:
                host, pid, since = _holder(held or b"")
                raise ArchiveError(
                    f"another process compacts or prunes {self.address}: pid {pid} on {host}, "
                    f"since {time.ctime(since)}",
                    f"wait for it; if it was killed, delete {self.path(_LOCK)}",
                )
            try:
                yield
            finally:
                self.delete(_LOCK)

    def _create(self, name: str, content: bytes) -> None:
        """A file where there is none yet. What cannot do that overwrites it."""
        path = f"{self._folder}/{name}"
        try:
            self.filesystem.pipe_file(path, content, mode="create")
        except FileExistsError:
            pass
        except (TypeError, ValueError, NotImplementedError):
            self.filesystem.pipe_file(path, content)


def _holder(lock: bytes) -> tuple[str, int, float]:
    """Host, pid and start of who wrote a lock's file."""
    try:
        host, pid, since = json.loads(lock)
        return str(host), int(pid), float(since)
    except (ValueError, TypeError):
        return "an unknown host", 0, 0.0


def _has_ended(lock: bytes) -> bool:
    """Whether who wrote it was killed. Two processes at once do no harm, only the same work twice."""
    host, pid, since = _holder(lock)
    if host == socket.gethostname() and pid:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        except OSError:  # it is another user's
            pass
    return time.time() - since > _LONGEST_LOCK


def _writer() -> str:
    return f"{socket.gethostname()}.{os.getpid()}.{get_ident()}"


def _written(info: dict[str, Any]) -> float:
    """When a file was written; libraries disagree on the name. Now, if that is not known."""
    for name in ("mtime", "LastModified", "last_modified", "updated", "created"):
        value = info.get(name)
        if isinstance(value, datetime):
            return value.timestamp()
        if isinstance(value, (int, float)):
            return float(value)
    return time.time()


def place_of(address: str) -> Place:
    """The place of an address; `file://` is a folder. It may not exist yet."""
    scheme = match.group().lower() if (match := _SCHEME.match(address)) else ""
    if scheme == "file":
        path = address.partition("://")[2]
        return Place(path[path.find("/") :])
    return _Address(address) if scheme else Place(address)


def open_place(address: str, create: bool = False) -> Place:
    """An archive. Raises UsageError for what is none, ArchiveError for one of another version."""
    place = place_of(address)
    try:
        marker = place.read(MARKER)
        if marker is None and create:
            if place.has_other_files():
                raise UsageError(
                    f"{address} is not an archive, and not empty", "choose a new or empty folder"
                )
            with place.writing(MARKER) as path:
                path.write_text(json.dumps({"version": VERSION}) + "\n")
            return place
    except OSError as error:
        raise ArchiveError(f"cannot open {address}: {error.strerror or error}") from error
    if marker is None:
        there = place.has_other_files()
        remedy = "name another folder" if there else f"hprofiler archive add RUN --to {address} makes one"
        raise UsageError(f"{address} is not an archive: it has no {MARKER}", remedy)
    try:
        version = json.loads(marker)["version"]
    except (ValueError, TypeError, KeyError) as error:
        raise ArchiveError(f"{place.path(MARKER)} is damaged") from error
    if version != VERSION:
        raise ArchiveError(
            f"{address} has version {version} of the tables, and this hprofiler knows {VERSION}",
            "use a newer hprofiler",
        )
    return place
