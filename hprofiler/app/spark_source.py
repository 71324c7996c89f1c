"""Finds what knows a Spark application: a path, an address, or an application's id."""

from __future__ import annotations

import re
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from typing import Any, cast

from hprofiler.base.errors import HprofilerError, UsageError
from hprofiler.base.passwords import shown_url
from hprofiler.base.paths import at_home, is_file, is_there
from hprofiler.resolve import SparkDriver, YarnOptions
from hprofiler.runfolder import RUN_FILE
from hprofiler.spark.application import Application, Note
from hprofiler.spark.facts import SparkError
from hprofiler.spark.log.files import LogFile, archived_files, in_order, local_files
from hprofiler.spark.log.reading import read_application
from hprofiler.spark.rest.application import fetch_application
from hprofiler.spark.rest.server import Answer, Server, find_application
from hprofiler.spark.saved import saved_application

_HDFS = ("hdfs", "webhdfs", "swebhdfs")
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*(?=://)", re.IGNORECASE)
_HOST = re.compile(r"[\w.-]+:[0-9]+(?:/|$)")
_PIECE = 1 << 20
_SECONDS = 60.0
_NO_LOG = "name the event log of one application: a file, or a folder eventlog_v2_…"


def read_source(source: str, yarn: YarnOptions) -> Application:
    """The application of a SOURCE, as the command line names it. Raises HprofilerError."""
    from hprofiler.resolve.yarn.ids import application_of

    scheme = match.group().lower() if (match := _SCHEME.match(source)) else ""
    if not scheme and is_there(at_home(source)):
        return _of_folder(at_home(source))
    if scheme == "file":
        path = source.partition("://")[2]  # which may have a "?" or "#" in it
        return read_application(local_files(at_home(path[path.find("/") :])))
    application = application_of(source)
    if application is not None:
        from hprofiler.resolve.yarn.locating import tracked

        return _of_server(tracked(application, yarn))
    if scheme in ("http", "https") or _HOST.match(source):
        from hprofiler.resolve import spark_driver

        return _of_server(spark_driver(source, yarn.ca_file))
    if scheme in _HDFS:
        return read_application(_hdfs_files(source, yarn))
    if scheme:
        return read_application(_fsspec_files(source))
    return read_application(local_files(at_home(source)))


def _of_folder(path: Path) -> Application:
    """Of a run folder, or an event log."""
    if not is_file(path / RUN_FILE):
        return read_application(local_files(path))
    application = saved_application(path)
    if application is None:
        raise SparkError(f"{path} knows no Spark application", "name its event log")
    return application


def _of_server(server: SparkDriver) -> Application:
    """By the event log, which a history server gives as an archive; else by the REST interface."""
    from hprofiler.resolve.yarn.rest import NotFound

    def ask(path: str, parameters: Mapping[str, str]) -> Answer:
        sent = time.time()
        return Answer(server.get(path, parameters)[0], sent, time.time(), None)

    try:
        asked = Server(ask, time.monotonic() + _SECONDS)
        found = find_application(asked, server.application, server.attempt)
    except NotFound as error:
        remedy = "check the address: http://history:18080/history/APPLICATION, or http://driver:4040"
        raise SparkError(error.reason, remedy) from error
    failure = ""
    if server.open is not None:
        with tempfile.TemporaryFile() as archive:
            try:
                with server.open(f"{found.path}/logs") as body:
                    while piece := body.read(_PIECE):
                        archive.write(piece)
                files, _ = archived_files(archive, found.attempt)
            except NotFound:  # a driver has no such path
                files = []
            except (HprofilerError, zipfile.BadZipFile) as error:
                files, failure = [], str(error)
            if files:
                application = read_application(files)
                application.notes += found.notes
                return application
    application = fetch_application(ask, found.id, attempt=server.attempt)
    if failure and application.end:  # a running driver has no log to give
        application.notes.append(Note("not-downloaded", detail=failure))
    return application


def _hdfs_files(address: str, yarn: YarnOptions) -> list[LogFile]:
    from hprofiler.resolve.hdfs import HdfsPath, hdfs_path
    from hprofiler.resolve.yarn.rest import Rest

    rest, path = Rest(yarn.ca_file), hdfs_path(address)

    def opener(file: HdfsPath) -> Callable[[], AbstractContextManager[Any]]:
        return lambda: file.open(rest)

    names = path.names(rest)
    if names is None:
        return [LogFile(shown_url(address), opener(path))]
    found = [LogFile(name, opener(path.joined(name))) for name in in_order(names)]
    if not found:
        raise SparkError(f"{shown_url(address)} holds no event log", _NO_LOG)
    return found


class _LibraryStream:
    """A file of fsspec, whose libraries each have exceptions of their own."""

    def __init__(self, address: str, stream: Any) -> None:
        self._address, self._stream = address, stream

    def read(self, size: int, /) -> bytes:
        with _explained(self._address):
            return cast(bytes, self._stream.read(size))


@contextmanager
def _of_library(address: str, open_: Callable[[], Any]) -> Iterator[_LibraryStream]:
    with _explained(address):
        stream = open_()
    with closing(stream):
        yield _LibraryStream(address, stream)


@contextmanager
def _explained(address: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        if isinstance(error, HprofilerError):
            raise
        raise _failed(address, error) from error


def _failed(address: str, error: Exception) -> SparkError:
    reason = str(error) or type(error).__name__
    return SparkError(f"{address}: {reason}", "check the address, and your login")


def _fsspec_files(address: str) -> list[LogFile]:
    """Files of an object store, or of anything else that fsspec knows."""
    scheme = address.partition("://")[0]
    try:
        import fsspec
    except ImportError as error:
        remedy = "install hprofiler[fsspec], and the library for this kind of address (s3fs, gcsfs, adlfs)"
        raise UsageError(f"{scheme}:// needs the library fsspec", remedy) from error
    try:
        files, path = fsspec.core.url_to_fs(address)
    except (ImportError, ValueError) as error:
        raise UsageError(f"{scheme}://: {error}", "install the library that it names") from error
    except Exception as error:  # every library has its own
        raise _failed(shown_url(address), error) from error
    with _explained(shown_url(address)):
        listed = [] if files.isfile(path) else files.ls(path, detail=False)

    def opener(file: str) -> Callable[[], AbstractContextManager[Any]]:
        return lambda: _of_library(shown_url(address), lambda: files.open(file, "rb"))

    if not listed:
        return [LogFile(shown_url(address), opener(path))]
    names = in_order(one.rpartition("/")[2] for one in listed)
    found = [LogFile(name, opener(f"{path.rstrip('/')}/{name}")) for name in names]
    if not found:
        raise SparkError(f"{shown_url(address)} holds no event log", _NO_LOG)
    return found
