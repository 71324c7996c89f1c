"""Folders that hprofiler makes. A file describes each of them, and they are locked while they are written."""

from __future__ import annotations

import fcntl
import itertools
import logging
import os
import shutil
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, ClassVar, Generic, TypeVar

from hprofiler.base.errors import HostError, RunFolderError
from hprofiler.base.paths import is_file, is_there

_log = logging.getLogger(__name__)
PAGE_FILE = "report.html"
# Depth of a file below its folder.
_DEEPEST = 4

Record = TypeVar("Record")
AFolder = TypeVar("AFolder", bound="RecordFolder[Any]")


class UnknownFormat(ValueError):
    """A description in a format that this version does not know."""

    def __init__(self, found: object, readable: str) -> None:
        super().__init__(f"format {found}")
        self.format = found
        self.readable = readable


class RecordFolder(ABC, Generic[Record]):
    """A folder on disk. `create` makes a new one, `open` reads an old one."""

    KIND: ClassVar[str]
    """What it holds: a "run"."""
    FILE: ClassVar[str]
    """The file that describes it."""
    FOLDERS: ClassVar[tuple[str, ...]]
    FILES: ClassVar[tuple[str, ...]]
    """All else in it that is hprofiler's."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._hold: int | None = None
        self._record: Record | None = None

    @staticmethod
    @abstractmethod
    def empty() -> Record:
        """The description of a new one."""

    @staticmethod
    @abstractmethod
    def decode(text: bytes) -> Record:
        """Raises ValueError, and UnknownFormat."""

    @staticmethod
    @abstractmethod
    def encode(record: Record) -> Iterator[bytes]: ...

    @classmethod
    def create(cls: type[AFolder], path: Path, force: bool = False) -> AFolder:
        """Make a new folder; if the path holds one already, a number is added to the name.

        With `force` the old one is replaced. The folder is locked until `release`, or until this process
        ends. Raises RunFolderError for a folder with other files, for one that is still written, and if
        nothing can be written.
        """
        try:
            folder = next(folder for folder in map(cls, cls._beside(path)) if folder._claim(force))
            folder.write(cls.empty())
        except OSError as error:
            raise RunFolderError(
                f"cannot write the {cls.KIND} folder {path}: {error.strerror}",
                "choose another folder with -o",
            ) from error
        return folder

    @classmethod
    def open(cls: type[AFolder], path: Path) -> AFolder:
        """An existing folder, named directly or by its page, its description or subfolders.

        Raises RunFolderError if it is none, or its format is unknown.
        """
        folder = cls(cls._folder_of(path))
        folder._record = folder._read()
        return folder

    @property
    def record(self) -> Record:
        """Its description, read once."""
        if self._record is None:
            self._record = self._read()
        return self._record

    @property
    def page_path(self) -> Path:
        return self.path / PAGE_FILE

    def write(self, record: Record) -> None:
        """Replace the description atomically. Raises RunFolderError."""
        try:
            with replacing(self.path / self.FILE) as file:
                for piece in self.encode(record):
                    file.write(piece)
        except OSError as error:
            raise RunFolderError(
                f"cannot write the {self.KIND} folder {self.path}: {error.strerror}",
                "choose another folder with -o",
            ) from error
        self._record = record

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Lock a folder that is complete. Raises RunFolderError if it is still written, or if what the block
        writes there cannot be written."""
        try:
            hold = os.open(self.path, os.O_RDONLY)
            try:
                fcntl.flock(hold, fcntl.LOCK_EX | fcntl.LOCK_NB)
                yield
            finally:
                os.close(hold)
        except BlockingIOError:
            raise RunFolderError(
                f"the {self.KIND} in {self.path} goes on", "wait for its end, or end it with Ctrl-C there"
            ) from None
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise RunFolderError(f"cannot put the {self.KIND} in {self.path} together: {reason}") from error

    def release(self) -> None:
        """Unlock the folder."""
        if self._hold is not None:
            os.close(self._hold)
            self._hold = None

    def remove(self) -> None:
        """Delete what is hprofiler's, and the folder if it is empty then."""
        self._remove_content()
        with suppress(OSError):
            self.path.rmdir()

    def _read(self) -> Record:
        file = self.path / self.FILE
        if is_there(file) and not is_file(file):
            raise RunFolderError(f"cannot read {file}: not a regular file")
        try:
            return self.decode(file.read_bytes())
        except (FileNotFoundError, NotADirectoryError):
            raise RunFolderError(
                f"{self.path} is not a {self.KIND} folder: it has no {self.FILE}", self._near(self.path)
            ) from None
        except UnknownFormat as error:
            raise RunFolderError(
                f"{self.path} has {self.KIND} format {error.format}, "
                f"but this hprofiler reads {error.readable}",
                "use the hprofiler version that made it",
            ) from error
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise RunFolderError(f"cannot read {file}: {reason}") from error

    def _claim(self, force: bool) -> bool:
        """Lock the folder, unless it holds something to keep."""
        self.path.mkdir(parents=True, exist_ok=True)
        self._hold = os.open(self.path, os.O_RDONLY)
        claimed = False
        try:
            claimed = self._is_alone(force) and self._is_empty(force)
        finally:
            if not claimed:
                self.release()
        return claimed

    def _is_alone(self, force: bool) -> bool:
        """Whether no other hprofiler writes to the folder."""
        assert self._hold is not None
        try:
            fcntl.flock(self._hold, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if force:
                raise RunFolderError(
                    f"another {self.KIND} is writing to {self.path}",
                    "wait for it, or choose another folder with -o",
                ) from None
            return False
        except OSError as error:  # some file systems have no locks
            _log.info("%s cannot be locked: %s", self.path, error.strerror)
        return True

    def _is_empty(self, force: bool) -> bool:
        """Whether the folder is free to use; `force` makes it so."""
        if not any(self.path.iterdir()):
            return True
        if not is_file(self.path / self.FILE):
            raise RunFolderError(
                f"{self.path} exists and is not a {self.KIND} folder; it was not changed",
                "choose a new or empty folder with -o",
            )
        if force:
            self._remove_content()
        return force

    def _remove_content(self) -> None:
        """Files of the user stay."""
        for folder in (self.path / name for name in self.FOLDERS):
            if folder.is_symlink():
                folder.unlink()
            elif folder.is_dir():
                shutil.rmtree(folder)
        for name in (*self.FILES, self.FILE):
            (self.path / name).unlink(missing_ok=True)

    @classmethod
    def _beside(cls, path: Path) -> Iterator[Path]:
        """The path, then the same with a number."""
        yield path
        named = path.resolve() if path.name in ("", "..") else path  # `.` has no name
        if not named.name:
            raise RunFolderError(f"{path} contains a {cls.KIND}", "choose another folder with -o")
        for number in itertools.count(2):
            yield named.with_name(f"{named.name}-{number}")

    @classmethod
    def is_file_of(cls, path: Path) -> bool:
        """Whether the path stands for its folder: the page, or the description."""
        named = path.name in (cls.FILE, PAGE_FILE)
        return named and is_file(path) and is_file(path.with_name(cls.FILE))

    @classmethod
    def stands_for(cls, path: Path) -> bool:
        """Whether the path is such a folder, or stands for one."""
        return is_file(cls._folder_of(path) / cls.FILE)

    @classmethod
    def _folder_of(cls, path: Path) -> Path:
        """The folder that a path stands for."""
        names = (cls.FILE, PAGE_FILE, *cls.FOLDERS)
        own = path.name in names and is_there(path) and not is_file(path / cls.FILE)
        return path.parent if own and is_file(path.parent / cls.FILE) else path

    @classmethod
    def _near(cls, path: Path) -> str:
        """A remedy if the path is inside such a folder, or ""."""
        above = list(path.parents)[:_DEEPEST] if is_there(path) else []
        found = next((folder for folder in above if is_file(folder / cls.FILE)), None)
        return f"it is in a {cls.KIND} folder: name {found}" if found else ""


@contextmanager
def replacing(path: Path, mode: int = 0o666) -> Iterator[BinaryIO]:
    """A file that replaces `path` if the block succeeds, and is deleted if it fails.

    It has the `mode`, reduced by the umask. What is not a regular file, such as `/dev/null` or a pipe, is
    written to and stays.
    """
    if path.exists() and not path.is_file():
        with path.open("wb") as file:
            yield file
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with open(temporary, "wb", opener=lambda name, flags: os.open(name, flags, mode)) as file:
            yield file
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Translates errors of the operating system while what a host sends is written."""
    try:
        yield
    except OSError as error:
        reason = f"cannot write {path}: {error.strerror or error}"
        raise HostError(
            "fetch", reason, "free some space, or choose another folder with -o", code="disk-full"
        ) from error
