"""A run: hosts → recordings → run folder → report."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from hprofiler.base.background import TooLate, result_within, start
from hprofiler.base.errors import Defect, HprofilerError, NotFired, PicturesError, RunFolderError
from hprofiler.base.version import __version__
from hprofiler.collect.following import Following
from hprofiler.collect.ledger import with_causes
from hprofiler.collect.limits import USUAL, Care
from hprofiler.collect.recording import collect
from hprofiler.collect.stop import Stop, on_interrupt
from hprofiler.collect.visit_group import HostProgress, Listener, Reach
from hprofiler.model import HostRecord, JobAccount, Outcome, Sampling, Selector, Status
from hprofiler.model.job import Manager
from hprofiler.model.measures import duration
from hprofiler.model.trigger import Fired, Trigger
from hprofiler.resolve import Located, SparkDriver
from hprofiler.runfolder import Coverage, RunFolder, RunRecord

if TYPE_CHECKING:
    from hprofiler.app.spark import LastLook
    from hprofiler.app.triggers import Waiting
    from hprofiler.report import Report
    from hprofiler.runfolder.window import Kept, Window


_NEW_PROCESSES_SECONDS = 1.0
_ACCOUNT_SECONDS, _SHORT_ACCOUNT_SECONDS = 15.0, 3.0
_LAST_LOOK = 5.0
"""Seconds that the watch for a trigger has to end."""
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class RunRequest:
    """Everything a run needs to know; `command` is what the user typed, without passwords.

    With `joins`, processes that start during the recording join it; with `until_over` it ends with the job,
    after the time of `sampling` at the latest; it waits `wait` seconds for the first process. With a
    `trigger` it begins once its condition is true, which is waited for `patience` seconds. With `keep_last`
    it begins at once, is over when the condition is true, after `patience` or when the user ends it, and only
    so many of its last seconds are kept. Without `keep_empty`, a run without a recording leaves no folder.
    `spark` is where the stages of a Spark application are known; without `slices` samples are not divided by
    them.
    """

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
    keep_empty: bool = True
    spark: SparkDriver | Path | None = None
    slices: bool = True
    joins: bool = False
    until_over: bool = False
    wait: float = 0.0
    most_hosts: int = 1000
    trigger: Trigger | None = None
    patience: float = threading.TIMEOUT_MAX
    keep_last: float | None = None

    def following(self) -> Following | None:
        if not self.joins:
            return None
        return Following(self.located.look, self.until_over, self.wait, self.most_hosts)


@dataclass(frozen=True)
class RunResult:
    """The result of a run; `report.empty` without samples.

    `signal` ended it early if it was `interrupted`. The folder exists if it was `kept`.
    """

    folder: RunFolder
    coverage: Coverage
    results: tuple[HostRecord, ...]
    interrupted: bool
    report: Report
    signal: int = 0
    kept: bool = True


class RecordLost(HprofilerError):
    """run.json cannot be written. `results` and `coverage` are what it would contain."""

    def __init__(
        self, folder: RunFolder, why: RunFolderError, results: tuple[HostRecord, ...], coverage: Coverage
    ) -> None:
        remedy = "free some space there, or choose another folder with -o"
        super().__init__(f"{why.reason}: the report was not made", folder.how_to_read_profiles() or remedy)
        self.results = results
        self.coverage = coverage


def run(request: RunRequest, reach: Reach, listener: Listener, stop: Stop | None = None) -> RunResult:
    """Record, keep and draw. With `stop`, another thread may end the recording.

    Raises RunFolderError if nothing can be written (before anything is touched), RecordLost if run.json
    cannot be written, PicturesError if the recordings are kept but the report cannot be made, and Defect for
    a bug, which says what is kept.
    """
    folder = RunFolder.create(request.output, request.force)
    stop = stop or Stop(ends_well=request.keep_last is not None)
    try:
        if (trigger := request.trigger) is None:
            result = _run_into(folder, request, reach, listener, stop)
        elif request.keep_last is None:
            request, fired = _when_true(request, trigger, reach, listener)
            result = _run_into(folder, request, reach, listener, stop, lambda: fired)
        else:
            with _until_true(request, trigger, reach, listener, stop) as waiting:
                result = _run_into(folder, request, reach, listener, stop, waiting)
        if request.keep_empty or result.coverage.processes.recorded:
            return result
        folder.remove()
        return replace(result, kept=False)
    except NotFired:
        folder.remove()
        raise
    except KeyboardInterrupt:
        if not folder.record.hosts:  # between the wait for a condition and the recording
            folder.remove()
        raise
    except HprofilerError:
        raise
    except Exception as error:
        raise _defect(error, folder.how_to_read_profiles()) from error
    finally:
        folder.release()


def _when_true(
    request: RunRequest, trigger: Trigger, reach: Reach, listener: Listener
) -> tuple[RunRequest, Fired]:
    """Wait for the condition; the request with the target as it is then, and what made it true."""
    from hprofiler.report.triggered import fired_text

    waiting = _waiting(request, trigger, reach, listener)
    waiting.run(request.patience)
    fired = waiting.the_fired()
    listener(HostProgress("", "trigger"))
    listener(HostProgress("", "stop", fired_text(fired)))
    located = request.located
    with contextlib.suppress(HprofilerError):  # the follower asks again
        if located.look is not None:
            hosts = list(located.look().hosts[: request.most_hosts])
            located = replace(located, hosts=hosts or located.hosts)
    return replace(request, located=located), fired


@contextlib.contextmanager
def _until_true(
    request: RunRequest, trigger: Trigger, reach: Reach, listener: Listener, stop: Stop
) -> Iterator[Callable[[], Fired | None]]:
    """Watch beside a recording, and end it when the condition is true. The value says what made it so; None
    if the user ended it before, or nobody can watch any more: a host that hangs may be why."""
    waiting = _waiting(request, trigger, reach, listener)

    def watch() -> None:
        try:
            waiting.run(request.patience)
        finally:
            if waiting.is_lost and not waiting.fired:
                lost = f"'{trigger}' cannot be watched for any more: {waiting.why_not}"
                listener(HostProgress("", "stop", f"{lost}; ending the recording"))
            if not waiting.is_ended:
                stop.finish()

    worker = threading.Thread(target=watch, name="hprofiler-trigger", daemon=True)
    worker.start()

    def fired() -> Fired | None:
        waiting.end()
        worker.join(_LAST_LOOK)
        may_lack = stop.asked or stop.signal or waiting.is_lost
        return waiting.fired if may_lack else waiting.the_fired()

    try:
        yield fired
    finally:
        waiting.end()


def _waiting(request: RunRequest, trigger: Trigger, reach: Reach, listener: Listener) -> Waiting:
    from hprofiler.app.triggers import Waiting

    source = request.spark if isinstance(request.spark, SparkDriver) else request.located.driver
    whom = trigger, request.located, request.selector, reach, source, request.most_hosts
    return Waiting(*whom, listener, request.until_over)


def _run_into(
    folder: RunFolder,
    request: RunRequest,
    reach: Reach,
    listener: Listener,
    stop: Stop,
    fired: Callable[[], Fired | None] = lambda: None,
) -> RunResult:
    """`fired` says in the end what made the condition of a trigger true; it may raise NotFired."""
    from hprofiler.runfolder.parts import forget_figures, settle
    from hprofiler.runfolder.sink import FolderSink
    from hprofiler.runfolder.window import Window

    started = datetime.now(timezone.utc)
    window = Window(request.keep_last) if request.keep_last is not None else None
    sink = FolderSink(folder, window)
    following = request.following()

    def so_far(results: Sequence[HostRecord]) -> RunRecord:
        if window is None:
            return _record(request, results, started, stop, finished=False)
        longest = max((one.ended for host in results for one in host.recordings), default=0.0)
        record = _record(request, window.figures(folder, results), started, stop, finished=False)
        return msgspec.structs.replace(record, last_of=longest)

    unfinished = _Unfinished(folder, so_far)
    with on_interrupt(stop.request), _last_look(request) as last_look:  # until run.json is written
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
                following,
                unfinished.write if request.sampling.part else None,
            )
        )
        unfinished.end()
        ended = stop.when or time.time()
        trigger = fired()
        follows = request.until_over or request.located.look is not None
        is_over = follows and stop.finished and not (stop.asked or trigger)
        kept = _cut(window, folder, results, None if is_over else ended) if window else None
        if window and kept:
            started, results = datetime.fromtimestamp(kept.start / 1e6, timezone.utc), kept.hosts
            if not any(result.recordings for result in results):
                results = _with_lines(results, [_all_ended(results[0].name, window, kept)])
        with contextlib.suppress(OSError, ValueError):  # the report says which profiles cannot be used
            settle(folder, results)
        new_processes = _ask_for_new_processes(request.located, results[0].name, following)
        account = _ask_for_account(request.located)
        # Parts of the target that cannot be visited count as hosts.
        visited = {result.name for result in results}
        absent = [one for one in request.located.absent if one.host not in visited]  # nor later
        results += tuple(HostRecord(name=one.host, outcomes=(one,)) for one in absent)
        record = _record(request, results, started, stop)
        record = msgspec.structs.replace(record, trigger=trigger)
        if kept:
            kept_sampling = replace(record.sampling, duration=round(kept.seconds, 3))
            record = msgspec.structs.replace(record, sampling=kept_sampling, last_of=kept.recorded)
        try:
            folder.write(record)
        except RunFolderError as error:
            raise RecordLost(folder, error, results, record.coverage) from error
        with contextlib.suppress(OSError):
            forget_figures(folder)
    interrupted = stop.signal > 0  # also a signal during the write
    later = f"the recordings are kept; run `hprofiler report {folder.path}` to make the report"
    try:
        from hprofiler.report import make_report  # imported while the target answers

        new: list[Outcome] = []
        if request.spark is not None and any(result.recordings for result in results):
            from hprofiler.app.spark import add_facts

            now = datetime.now(timezone.utc).timestamp()
            missing = add_facts(request.spark, folder.path, results, started.timestamp(), now, last_look)
            new += [missing] if missing else []
        new += () if interrupted else new_processes()  # asked for meanwhile
        results = _with_lines(results, new) if new else results
        job = account(_ACCOUNT_SECONDS if not interrupted else _SHORT_ACCOUNT_SECONDS)
        if new or job:
            folder.write(msgspec.structs.replace(record, hosts=results, job=job))
        names = (request.raw_names, request.threads, request.trim)
        report = make_report(folder.path, *names, slices=request.slices)
        notes = report.analysis.facts.notes
        faults = [fault for fault in report.analysis.faults if fault not in notes]
        results = _with_lines(results, (*notes, *faults))
    except (HprofilerError, OSError) as error:
        raise PicturesError(f"cannot make the report: {error}", later) from error
    except KeyboardInterrupt as interrupt:
        interrupt.args = (later,)
        raise
    except Exception as error:
        raise _defect(error, later) from error
    return RunResult(folder, record.coverage, results, interrupted, report, stop.signal)


def _cut(
    window: Window, folder: RunFolder, results: Sequence[HostRecord], ended: float | None
) -> Kept | None:
    """What is kept of a run."""
    try:
        return window.cut(folder, results, ended)
    except (OSError, ValueError) as error:
        reason = f"cannot cut the recording to its last {window.seconds:g} s: {error}"
        remedy = f"free some space; `hprofiler report {folder.path}` shows about as much"
        raise RunFolderError(reason, remedy) from error


def _all_ended(host: str, window: Window, kept: Kept) -> Outcome:
    ago = f"the last process ended {duration(kept.quiet)} before"
    reason = f"nothing was recorded in the last {duration(window.seconds)}: {ago}"
    remedy = "use -t job: a recording ends with its job then"
    return Outcome(host, Status.DEGRADED, "record", reason, remedy, code="all-ended")


@contextlib.contextmanager
def _last_look(request: RunRequest) -> Iterator[LastLook | None]:
    """Of a run that ends with a Spark application: its driver is gone then."""
    if not request.until_over or not isinstance(request.spark, SparkDriver):
        yield None
        return
    from hprofiler.app.spark import LastLook

    last_look = LastLook(request.spark)
    try:
        yield last_look
    finally:
        last_look.end()


class _Unfinished:
    """Writes run.json while the recording goes on, without the time of its end."""

    def __init__(self, folder: RunFolder, record: Callable[[Sequence[HostRecord]], RunRecord]) -> None:
        self._folder = folder
        self._record = record
        self._writing = threading.Lock()
        self._is_over = False

    def write(self, results: Sequence[HostRecord]) -> None:
        with self._writing:
            if not self._is_over:
                self._folder.write(self._record(results))

    def end(self) -> None:
        """Nothing is written after this."""
        with self._writing:
            self._is_over = True


def _defect(error: Exception, kept: str) -> Defect:
    return Defect(f"a bug in hprofiler ({type(error).__name__}: {error})", kept)


def _ask_for_new_processes(
    located: Located, first: str, following: Following | None
) -> Callable[[], tuple[Outcome, ...]]:
    """Ask on a thread what has started during the recording, and was not visited; the result waits for the
    outcomes.

    If the target does not answer within `_NEW_PROCESSES_SECONDS`, only these outcomes are missing.
    """

    def unknown(why: str) -> tuple[Outcome, ...]:
        reason = f"cannot list the processes that started during the recording: {why}"
        return (Outcome(first, Status.DEGRADED, "find", reason, code="new-processes-unknown"),)

    seen = following.containers if following else ()
    try:
        answer = start(lambda: tuple(located.new_processes(seen)))
    except RuntimeError as error:
        why = str(error)
        return lambda: unknown(why)
    deadline = time.monotonic() + _NEW_PROCESSES_SECONDS

    def wait() -> tuple[Outcome, ...]:
        try:
            return result_within(answer, max(0.0, deadline - time.monotonic()))
        except TooLate:
            return unknown(f"no answer within {_NEW_PROCESSES_SECONDS:g} s")
        except HprofilerError as error:
            return unknown(error.reason)
        except Exception as error:  # a bug here must not cost the report
            _log.exception("asking for new processes")
            return unknown(f"unexpected {type(error).__name__}: {error}")

    return wait


def _ask_for_account(located: Located) -> Callable[[float], JobAccount | None]:
    """Ask on a thread what the manager of the job says of it; the result waits so many seconds for it."""
    if located.account is None:
        return lambda seconds: None
    try:
        answer = start(located.account)
    except RuntimeError as error:
        _log.info("asking for the account of the job: %s", error)
        return lambda seconds: None
    asked = time.monotonic()

    def wait(seconds: float) -> JobAccount | None:
        try:
            return result_within(answer, max(0.0, asked + seconds - time.monotonic()))
        except TooLate:
            why = f"no answer within {seconds:g} s"
        except HprofilerError as error:
            why = error.reason
        except Exception as error:  # a bug here must not cost the report
            _log.exception("asking for the account of the job")
            why = f"unexpected {type(error).__name__}: {error}"
        manager: Manager = "kubernetes" if located.target.kind == "kubernetes" else "yarn"
        return JobAccount(manager=manager, problem=why[:2000])

    return wait


def _with_lines(results: tuple[HostRecord, ...], lines: Sequence[Outcome]) -> tuple[HostRecord, ...]:
    """Outcomes by host; those of unvisited hosts go to the first."""
    names = {result.name for result in results}
    ledgers = {name: [line for line in lines if line.host == name] for name in names}
    ledgers[results[0].name] += [line for line in lines if line.host not in names]
    return tuple(
        msgspec.structs.replace(result, outcomes=with_causes(result.outcomes, ledgers[result.name]))
        for result in results
    )


def _record(
    request: RunRequest,
    results: Sequence[HostRecord],
    started: datetime,
    stop: Stop,
    finished: bool = True,
) -> RunRecord:
    """The content of run.json. The time limit of a recording that ended as planned was not its length."""
    is_planned = stop.finished or request.keep_last is not None
    lengths = [one.ended for result in results for one in result.recordings if is_planned]
    sampling = replace(request.sampling, duration=round(max(lengths), 3)) if lengths else request.sampling
    return RunRecord(
        hprofiler=__version__,
        command=request.command,
        target=request.located.target,
        notes=tuple(request.located.notes),
        selector=request.selector.text,
        roots=request.selector.roots,
        program_roots=request.selector.program_roots,
        sampling=sampling,
        care=asdict(request.care),
        started=started.isoformat(timespec="seconds"),
        finished=datetime.now(timezone.utc).isoformat(timespec="seconds") if finished else "",
        interrupted=stop.level > 0 and not stop.finished,
        coverage=Coverage.of(results, len(request.sampling.events)),
        hosts=tuple(results),
    )


def failures(results: Sequence[HostRecord]) -> list[Outcome]:
    """The ledger's lines that say failed, but for processes that were lost with their host."""
    return [
        outcome
        for result in results
        for outcome in result.outcomes
        if outcome.status is Status.FAILED and not outcome.lost
    ]
