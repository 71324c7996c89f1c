"""A dump: hosts → what all threads of their processes do → the folder of a dump."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

from hprofiler.base.version import __version__
from hprofiler.collect.dumping import Looks
from hprofiler.collect.dumping import dump as collect
from hprofiler.collect.limits import USUAL, Care
from hprofiler.collect.stop import Stop, on_interrupt
from hprofiler.collect.visit_group import Listener, Reach
from hprofiler.model import Selector
from hprofiler.model.dump import DumpedHost
from hprofiler.resolve import Located
from hprofiler.runfolder.dumps import DumpFolder, DumpRecord


@dataclass(frozen=True)
class DumpRequest:
    """Everything a dump needs to know; `command` is what the user typed, without passwords."""

    located: Located
    selector: Selector
    looks: Looks
    output: Path
    force: bool
    command: tuple[str, ...]
    care: Care = USUAL
    keep_empty: bool = True


@dataclass(frozen=True)
class DumpResult:
    """The folder exists if it was `kept`: without `keep_empty`, a dump of nothing leaves none."""

    folder: DumpFolder
    record: DumpRecord
    kept: bool = True


def dump(request: DumpRequest, reach: Reach, listener: Listener, stop: Stop) -> DumpResult:
    """Dump and keep. Raises RunFolderError if nothing can be written."""
    folder = DumpFolder.create(request.output, request.force)
    try:
        with on_interrupt(stop.request):  # until dump.json is written
            started = datetime.now(timezone.utc)
            located = request.located
            hosts = collect(
                located.hosts,
                request.selector,
                request.looks,
                reach,
                folder,
                listener,
                stop,
                request.care,
            )
            # Parts of the target that cannot be visited count as hosts.
            hosts += [DumpedHost(name=one.host, outcomes=(one,)) for one in located.absent]
            record = _record(request, hosts, started, stop)
            folder.write(record)
        kept = request.keep_empty or record.dumped > 0
        if not kept:
            folder.remove()
        return DumpResult(folder, record, kept)
    finally:
        folder.release()


def _record(request: DumpRequest, hosts: Sequence[DumpedHost], started: datetime, stop: Stop) -> DumpRecord:
    return DumpRecord(
        hprofiler=__version__,
        command=request.command,
        target=request.located.target,
        notes=tuple(request.located.notes),
        selector=request.selector.text,
        looks=request.looks.times,
        every=request.looks.every,
        owners=request.looks.owners,
        started=started.isoformat(timespec="seconds"),
        finished=datetime.now(timezone.utc).isoformat(timespec="seconds"),
        interrupted=stop.level > 0,
        hosts=tuple(hosts),
    )
