"""The story of a run: hosts → recordings → run folder → report."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

from hprofiler import __version__
from hprofiler.base.errors import HprofilerError, PicturesError, RunFolderError
from hprofiler.collect import USUAL, Care, Listener, Reach, Stop, collect, on_interrupt, with_causes
from hprofiler.model import Host, HostResult, Outcome, Recording, Sampling, Selector, Status
from hprofiler.resolve import Located
from hprofiler.runfolder import FORMAT, RunFolder

if TYPE_CHECKING:
    from hprofiler.report import Report


_CAME_SECONDS = 10.0
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class RunRequest:
    """Everything a run needs to know; `command` is what the user typed, without passwords."""

    located: Located
    selector: Selector
    sampling: Sampling
    output: Path
    force: bool
    command: tuple[str, ...]
    raw_names: bool = False
    threads: bool = False
    trim: bool = False
    care: Care = USUAL


@dataclass(frozen=True)
class Coverage:
    """How much of what was meant is in the pictures: "37 of 40 processes on 9 of 10 hosts".

    A recording is a process x an event; a process counts as recorded when one of its events was. Those that
    are `short` were recorded, and not for all of the time for which they could have been.
    """

    hosts_all: int
    hosts_reached: int
    hosts_recorded: int
    hosts_idle: int
    hosts_failed: int
    processes_found: int
    processes_recorded: int
    processes_short: int
    recordings_expected: int
    recordings_made: int

    @property
    def complete(self) -> bool:
        """No event of a process that was found, no host, and no time is missing."""
        whole = self.recordings_made == self.recordings_expected and not self.processes_short
        return self.hosts_failed == 0 and whole


@dataclass(frozen=True)
class RunResult:
    """What a run came to; `report.empty` when there was not one sample.

    `signal` is the one that ended it early, where it was `interrupted`.
    """

    folder: RunFolder
    coverage: Coverage
    results: tuple[HostResult, ...]
    interrupted: bool
    report: Report
    signal: int = 0


class RecordLost(HprofilerError):
    """run.json cannot be written. `results` and `coverage` are what it would have told."""

    def __init__(
        self, folder: RunFolder, why: RunFolderError, results: tuple[HostResult, ...], coverage: Coverage
    ) -> None:
        remedy = "free some space there, or choose another folder with -o"
        super().__init__(f"{why.reason}: there is no report", folder.how_to_read_profiles() or remedy)
        self.results = results
        self.coverage = coverage


def run(request: RunRequest, reach: Reach, listener: Listener) -> RunResult:
    """Record, keep and draw.

    Raises RunFolderError before anything is touched when nothing can be written, RecordLost when later what
    became of the hosts cannot, PicturesError when the recordings are kept but the report cannot be made.
    """
    folder = RunFolder.create(request.output, request.force)
    try:
        return _run_into(folder, request, reach, listener)
    finally:
        folder.release()


def _run_into(folder: RunFolder, request: RunRequest, reach: Reach, listener: Listener) -> RunResult:
    from hprofiler.report import make_report
    from hprofiler.runfolder.sink import FolderSink

    started = datetime.now(timezone.utc)
    stop = Stop()
    sink = FolderSink(folder)
    with on_interrupt(stop.request):  # until run.json says what lies in the folder
        results = tuple(
            collect(
                request.located.hosts,
                request.selector,
                request.sampling,
                reach,
                sink,
                listener,
                stop,
                request.care,
            )
        )
        results += tuple(_not_visited(line) for line in request.located.absent)
        coverage = coverage_of(results, len(request.sampling.events))
        record = _run_record(request, results, coverage, started, stop.level > 0)
        try:
            folder.write_run(record)
        except RunFolderError as error:
            raise RecordLost(folder, error, results, coverage) from error
    interrupted = stop.signal > 0  # also by one that came while it was written
    later = f"the recordings are kept: `hprofiler report {folder.path}` makes the pictures"
    try:
        came = () if interrupted else _came_since(request.located, results[0].host.name)
        if came:
            results = _with_lines(results, came)
            folder.write_run({**record, "hosts": [_host_record(result) for result in results]})
        report = make_report(folder.path, request.raw_names, request.threads, request.trim)
    except (RunFolderError, OSError) as error:
        raise PicturesError(f"cannot make the report: {error}", later) from error
    except KeyboardInterrupt as interrupt:
        interrupt.args = (later,)
        raise
    return RunResult(folder, coverage, results, interrupted, report, stop.signal)


def _came_since(located: Located, first: str) -> tuple[Outcome, ...]:
    """Ledger lines of what began during the recording. Ctrl-C, or a target that hangs, costs only these."""

    def unknown(why: str) -> tuple[Outcome, ...]:
        reason = f"what began during the recording is not known: {why}"
        return (Outcome(first, Status.DEGRADED, "find", reason),)

    def ask() -> None:
        try:
            answers.put(tuple(located.came_since()))
        except HprofilerError as error:
            answers.put(unknown(error.reason))
        except Exception as error:  # a mistake of ours must not cost the report
            _log.exception("asking what came since")
            answers.put(unknown(f"unexpected {type(error).__name__}: {error}"))

    answers: SimpleQueue[tuple[Outcome, ...]] = SimpleQueue()
    with on_interrupt(lambda number: answers.put(unknown("interrupted"))):
        try:
            threading.Thread(target=ask, name="hprofiler-came-since", daemon=True).start()
            return answers.get(timeout=_CAME_SECONDS)
        except RuntimeError as error:
            return unknown(str(error))
        except Empty:
            return unknown(f"no answer within {_CAME_SECONDS:g} s")


def _not_visited(line: Outcome) -> HostResult:
    """What belongs to the target and cannot be visited counts as a host."""
    return HostResult(Host(line.host, ""), None, (), (line,))


def _with_lines(results: tuple[HostResult, ...], lines: Sequence[Outcome]) -> tuple[HostResult, ...]:
    """Each host's lines with it; those of hosts that were not visited are with the first."""
    names = {result.host.name for result in results}
    ledgers = {name: [line for line in lines if line.host == name] for name in names}
    ledgers[results[0].host.name] += [line for line in lines if line.host not in names]
    return tuple(
        replace(result, outcomes=with_causes(result.outcomes, ledgers[result.host.name]))
        for result in results
    )


def coverage_of(results: Sequence[HostResult], events: int = 1) -> Coverage:
    """Count hosts and processes; a host is failed when a ledger line of its own says so."""
    found = sum(len(_recorded(result) | _told(result)) + len(result.unseen) for result in results)
    recorded = [len(_recorded(result)) for result in results]
    return Coverage(
        hosts_all=len(results),
        hosts_reached=sum(result.facts is not None for result in results),
        hosts_recorded=sum(n > 0 for n in recorded),
        hosts_idle=sum(result.idle for result in results),
        hosts_failed=sum(_host_failed(result) for result in results),
        processes_found=found,
        processes_recorded=sum(recorded),
        processes_short=sum(len(_short(result)) for result in results),
        recordings_expected=found * events,
        recordings_made=sum(len(result.recordings) for result in results),
    )


def _recorded(result: HostResult) -> set[int]:
    return {recording.process.pid for recording in result.recordings}


def _told(result: HostResult) -> set[int]:
    return {outcome.pid for outcome in result.outcomes if outcome.pid is not None}


def _short(result: HostResult) -> set[int]:
    cut = {one.pid for one in result.outcomes if one.pid is not None and one.seconds is not None}
    return cut & _recorded(result)


def _host_failed(result: HostResult) -> bool:
    return any(outcome.pid is None and outcome.status is Status.FAILED for outcome in result.outcomes)


def _run_record(
    request: RunRequest,
    results: Sequence[HostResult],
    coverage: Coverage,
    started: datetime,
    interrupted: bool,
) -> dict[str, Any]:
    """The content of run.json."""
    return {
        "format": FORMAT,
        "hprofiler": __version__,
        "command": list(request.command),
        "target": request.located.target,
        "notes": list(request.located.notes),
        "selector": request.selector.text,
        "roots": list(request.selector.roots),
        "sampling": request.sampling,
        "care": request.care,
        "started": started.isoformat(timespec="seconds"),
        "finished": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "interrupted": interrupted,
        "coverage": _coverage_record(coverage),
        "hosts": [_host_record(result) for result in results],
    }


def _coverage_record(coverage: Coverage) -> dict[str, dict[str, int]]:
    return {
        "hosts": {
            "all": coverage.hosts_all,
            "reached": coverage.hosts_reached,
            "recorded": coverage.hosts_recorded,
            "idle": coverage.hosts_idle,
            "failed": coverage.hosts_failed,
        },
        "processes": {
            "found": coverage.processes_found,
            "recorded": coverage.processes_recorded,
            "short": coverage.processes_short,
        },
        "recordings": {"expected": coverage.recordings_expected, "made": coverage.recordings_made},
    }


def _host_record(result: HostResult) -> Mapping[str, Any]:
    return {
        "name": result.host.name,
        "address": result.host.address,
        "labels": dict(result.host.labels),
        "facts": result.facts,
        "timings": {stage: round(seconds, 3) for stage, seconds in result.timings.items()},
        "bytes_sent": result.bytes_sent,
        "bytes_received": result.bytes_received,
        "recordings": [_recording_record(recording) for recording in result.recordings],
        "outcomes": list(result.outcomes),
        "unseen": list(result.unseen),
    }


def _recording_record(recording: Recording) -> Recording:
    """Command lines stay out of run.json: they may hold what is nobody's business."""
    return replace(recording, process=replace(recording.process, command=""))


def failures(results: Sequence[HostResult]) -> list[tuple[str, str, str]]:
    """(where, reason, remedy) of each ledger line that says failed, hosts in order.

    Of processes that were lost with their host the host's line tells.
    """
    return [
        (outcome.where, outcome.reason, outcome.remedy)
        for result in results
        for outcome in result.outcomes
        if outcome.status is Status.FAILED and not outcome.lost
    ]
