"""The folder of a dump: what all threads of a job's processes were doing, at one look or several.

    DIR/dump.json                      command, versions, target, every host and process with its outcome
    DIR/report.html                    the page
    DIR/hosts/HOST/NAME-PID-LOOK.txt   the threads of one process at one look, as jstack prints them

Texts are written as they arrive; what they say of a process is read by `flamegraph/src/formats/thread_dump`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import msgspec

from hprofiler.base import bounded_json
from hprofiler.base.text import printable
from hprofiler.model import Seconds, Target
from hprofiler.model.dump import Dump, DumpedHost
from hprofiler.runfolder import safe_name
from hprofiler.runfolder.record_folder import (
    PAGE_FILE,
    RecordFolder,
    UnknownFormat,
    replacing,
    writing,
)

FORMAT = 1
DUMP_FILE = "dump.json"
MOST_BYTES = 1 << 30
"""Longest dump.json that is read."""


class DumpRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The typed content of dump.json. There are `looks`, one `every` so many seconds. With `owners` JVMs
    also said who owns the locks of java.util.concurrent."""

    format: int = FORMAT
    hprofiler: str = ""
    command: tuple[str, ...] = ()
    target: Target = Target("", "")
    notes: tuple[str, ...] = ()
    selector: str = ""
    looks: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)] = 1
    every: Seconds = 0.0
    owners: bool = False
    started: str = ""
    finished: str = ""
    interrupted: bool = False
    hosts: tuple[DumpedHost, ...] = ()

    @property
    def processes(self) -> int:
        return sum(host.processes for host in self.hosts)

    @property
    def dumped(self) -> int:
        """How many processes answered at least once."""
        return sum(len(host.dumped) for host in self.hosts)


def read(text: bytes) -> DumpRecord:
    """Decode a dump.json. Raises ValueError. It may come from elsewhere: control characters are removed."""
    if len(text) > MOST_BYTES:
        raise ValueError(f"it has more than {MOST_BYTES >> 30} GiB")
    content = bounded_json.read(text, len(text))
    if not isinstance(content, dict):
        raise ValueError("not a JSON object")
    if (found := content.get("format")) != FORMAT:
        raise UnknownFormat(found, f"{FORMAT}")
    try:
        return msgspec.convert(bounded_json.printable_value(content), DumpRecord, str_keys=True)
    except msgspec.ValidationError as error:
        raise ValueError(str(error)) from error


def pieces(record: DumpRecord) -> Iterator[bytes]:
    content = msgspec.to_builtins(record, str_keys=True, enc_hook=list)
    yield msgspec.json.encode(bounded_json.printable_value(content))


class DumpFolder(RecordFolder[DumpRecord]):
    """A dump's folder on disk. `create` makes a new one, `open` reads an old one."""

    KIND = "dump"
    FILE = DUMP_FILE
    FOLDERS = ("hosts",)
    FILES = (PAGE_FILE,)
    empty = DumpRecord
    decode = staticmethod(read)
    encode = staticmethod(pieces)

    def text_path(self, host: str, dump: Dump) -> Path:
        """Where the text of a dump is, always inside `hosts/`; names from hosts are not trusted."""
        return self.path / "hosts" / safe_name(printable(host)) / safe_name(dump.file)

    def keep(self, host: str, dump: Dump, text: Iterator[bytes]) -> Dump:
        """Write the text of a dump as it arrives; the dump with the name of its file. Threads may share this.

        Texts are not masked, so only the owner may read them. Raises HostError if it cannot be written.
        """
        name = re.sub(r"[^A-Za-z0-9_-]+", "_", dump.label)[:60].strip("_") or "process"
        dump = replace(dump, file=f"{name}-{int(dump.pid)}-{int(dump.look)}.txt")
        path = self.text_path(host, dump)
        with writing(path), replacing(path, mode=0o600) as file:
            for piece in text:
                file.write(piece)
        return dump
