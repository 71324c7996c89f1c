"""The run folder: the files of a run.

    DIR/run.json                            command, versions, target, every host and process with its outcome
    DIR/spark.json                          a Spark application's jobs, stages and tasks
    DIR/report.html                         the page of all events
    DIR/cluster/EVENT.{svg,folded,pb.gz}    and EVENT-mean.*
    DIR/hosts/HOST/EVENT.*                  one host
    DIR/hosts/HOST/metrics.json.gz          what the host's kernel and JVMs published every second
    DIR/hosts/HOST/PID/EVENT.pb.gz          one process; threads are labels
    DIR/hosts/HOST/PID/EVENT.time           the same with the times of its samples, as the agent sent it
    DIR/hosts/HOST/PID/EVENT.part-N-M       parts of it, while it is recorded
    DIR/hosts/HOST/PID/recording.jfr        the engine's own file, with --keep-raw

Names on disk are made from names of hosts and events, which are not trusted: they cannot leave the folder.
"""

from __future__ import annotations

import fcntl
import hashlib
import itertools
import logging
import os
import re
import shlex
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from hprofiler.base.errors import RunFolderError
from hprofiler.base.paths import is_file, is_folder, is_there
from hprofiler.base.text import printable
from hprofiler.runfolder.schema import FORMAT, Coverage, RunRecord, UnknownFormat, pieces, read

__all__ = ["FORMAT", "Coverage", "RunFolder", "RunRecord", "replacing", "safe_name"]

_log = logging.getLogger(__name__)

RUN_FILE = "run.json"
PAGE_FILE = "report.html"
SPARK_FILE = "spark.json"
APPLICATION_FILE = "spark-application.msgpack"
METRICS_FILE = "metrics.json.gz"
# Files and folders that stand for the run folder they are in.
_STANDS_FOR_ALL = (RUN_FILE, PAGE_FILE, "cluster", "hosts")
# Depth of a profile below its run folder.
_DEEPEST = 4


class RunFolder:
    """A run folder on disk. `create` makes a new one, `open` reads an old one."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._hold: int | None = None
        self._record: RunRecord | None = None

    @classmethod
    def create(cls, path: Path, force: bool = False) -> RunFolder:
        """Make the folder of a new run; if it holds a run already, a number is added to the name.

        With `force` the old run is replaced. The folder is locked until `release`, or until this process
        ends. Raises RunFolderError for a folder with other files, for a run that is still active, and if
        nothing can be written.
        """
        try:
            folder = next(folder for folder in map(cls, _beside(path)) if folder._claim(force))
            folder.write(RunRecord())
        except OSError as error:
            raise RunFolderError(
                f"cannot write the run folder {path}: {error.strerror}", "choose another folder with -o"
            ) from error
        return folder

    @classmethod
    def open(cls, path: Path) -> RunFolder:
        """An existing run folder, named directly or by its page, run.json or subfolders.

        Raises RunFolderError if it is not a run folder, or its format is unknown.
        """
        folder = cls(_run_of(path))
        folder._record = folder._read()
        return folder

    @property
    def record(self) -> RunRecord:
        """The content of run.json, read once."""
        if self._record is None:
            self._record = self._read()
        return self._record

    def _read(self) -> RunRecord:
        file = self.path / RUN_FILE
        if is_there(file) and not is_file(file):
            raise RunFolderError(f"cannot read {file}: not a regular file")
        try:
            return read(file.read_bytes())
        except (FileNotFoundError, NotADirectoryError):
            raise RunFolderError(
                f"{self.path} is not a run folder: it has no {RUN_FILE}", _near(self.path)
            ) from None
        except UnknownFormat as error:
            raise RunFolderError(
                f"{self.path} has run format {error.format}, but this hprofiler reads 2 and {FORMAT}",
                "use the hprofiler version that made it",
            ) from error
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise RunFolderError(f"cannot read {file}: {reason}") from error

    def write(self, record: RunRecord) -> None:
        """Replace run.json atomically. Raises RunFolderError."""
        try:
            with replacing(self.path / RUN_FILE) as file:
                for piece in pieces(record):
                    file.write(piece)
        except OSError as error:
            raise RunFolderError(
                f"cannot write the run folder {self.path}: {error.strerror}", "choose another folder with -o"
            ) from error
        self._record = record

    @property
    def cluster_dir(self) -> Path:
        return self.path / "cluster"

    def host_dir(self, host: str) -> Path:
        """The host's folder, always inside `hosts/`.

        Runs of earlier versions keep their names of containers.
        """
        host = printable(host)
        hosts = self.path / "hosts"
        folder, old = hosts / safe_name(host), hosts / _hashed(host)
        return old if "/" in host and not is_there(folder) and is_folder(old) else folder

    def profile_path(self, host: str, pid: int, event: str) -> Path:
        return self.host_dir(host) / str(int(pid)) / f"{safe_name(event)}.pb.gz"

    def times_path(self, host: str, pid: int, event: str) -> Path:
        profile = self.profile_path(host, pid, event)
        return profile.with_name(times_name(profile))

    def raw_path(self, host: str, pid: int, name: str) -> Path:
        return self.host_dir(host) / str(int(pid)) / safe_name(name)

    def metrics_path(self, host: str) -> Path:
        return self.host_dir(host) / METRICS_FILE

    @property
    def page_path(self) -> Path:
        return self.path / PAGE_FILE

    def how_to_read_profiles(self) -> str:
        """Where the profiles are if run.json is missing, or ""."""
        hosts = self.path / "hosts"
        names = sorted({path.name for path in hosts.glob("*/*/*.pb.gz")})
        if not names:
            return ""
        name = "cpu.pb.gz" if "cpu.pb.gz" in names else names[0]
        files = f"{shlex.quote(str(hosts))}/*/*/{shlex.quote(name)}"
        return f"the profiles are in {hosts}; `hprofiler convert {files} -o out.html` reads them"

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Lock the folder of a run that has ended. Raises RunFolderError if it goes on, or if what the block
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
                f"the run in {self.path} goes on", "wait for its end, or end it with Ctrl-C there"
            ) from None
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise RunFolderError(f"cannot put the run in {self.path} together: {reason}") from error

    def release(self) -> None:
        """Unlock the folder."""
        if self._hold is not None:
            os.close(self._hold)
            self._hold = None

    def remove(self) -> None:
        """Delete the run, and the folder if it is empty then."""
        self._remove_run()
        with suppress(OSError):
            self.path.rmdir()

    def _claim(self, force: bool) -> bool:
        """Lock the folder, unless it holds a run to keep."""
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
        """Whether no other run uses the folder."""
        assert self._hold is not None
        try:
            fcntl.flock(self._hold, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if force:
                raise RunFolderError(
                    f"another run is writing to {self.path}", "wait for it, or choose another folder with -o"
                ) from None
            return False
        except OSError as error:  # some file systems have no locks
            _log.info("%s cannot be locked: %s", self.path, error.strerror)
        return True

    def _is_empty(self, force: bool) -> bool:
        """Whether the folder holds no run; `force` deletes it."""
        if not any(self.path.iterdir()):
            return True
        if not is_file(self.path / RUN_FILE):
            raise RunFolderError(
                f"{self.path} exists and is not a run folder; it was not changed",
                "choose a new or empty folder with -o",
            )
        if force:
            self._remove_run()
        return force

    def _remove_run(self) -> None:
        """Remove the files of a run only; files of the user stay."""
        for folder in (self.cluster_dir, self.path / "hosts"):
            if folder.is_symlink():
                folder.unlink()
            elif folder.is_dir():
                shutil.rmtree(folder)
        for name in (PAGE_FILE, SPARK_FILE, APPLICATION_FILE, RUN_FILE):
            (self.path / name).unlink(missing_ok=True)


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


def times_name(profile: Path) -> str:
    """The name of the file beside a process's `EVENT.pb.gz` that says when its samples were taken."""
    return f"{profile.name.removesuffix('.pb.gz')}.time"


def safe_name(name: str) -> str:
    """A file name for any text: the text if it is safe, else its safe part and a hash.

    In POD/CONTAINER the slash becomes ~, which no safe text contains.
    """
    if re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}", name):
        return name
    if re.fullmatch(r"(?=.{1,100}$)[a-z0-9][a-z0-9.-]*(/[a-z0-9][a-z0-9.-]*){1,2}", name):
        return name.replace("/", "~")
    return _hashed(name)


def _hashed(name: str) -> str:
    readable = re.sub(r"[^A-Za-z0-9_-]+", "_", name)[:60].strip("_")
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    return f"{readable or 'host'}-{digest}"


def _beside(path: Path) -> Iterator[Path]:
    """The path, then the same with a number."""
    yield path
    named = path.resolve() if path.name in ("", "..") else path  # `.` has no name
    if not named.name:
        raise RunFolderError(f"{path} contains a run", "choose another folder with -o")
    for number in itertools.count(2):
        yield named.with_name(f"{named.name}-{number}")


def is_run_file(path: Path) -> bool:
    """Whether the path stands for its run folder: the page, or run.json."""
    return path.name in (RUN_FILE, PAGE_FILE) and is_file(path) and is_file(path.with_name(RUN_FILE))


def _run_of(path: Path) -> Path:
    """The run folder that a path stands for."""
    own = path.name in _STANDS_FOR_ALL and is_there(path) and not is_file(path / RUN_FILE)
    return path.parent if own and is_file(path.parent / RUN_FILE) else path


def _near(path: Path) -> str:
    """A remedy if the path is inside a run folder, or ""."""
    above = list(path.parents)[:_DEEPEST] if is_there(path) else []
    found = next((folder for folder in above if is_file(folder / RUN_FILE)), None)
    return f"it is in a run folder: name {found}" if found else ""
