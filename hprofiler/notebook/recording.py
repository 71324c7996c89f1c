"""`record`: a recording of the session's own application, on a thread beside the notebook's."""

from __future__ import annotations

import argparse
import contextlib
import queue
import shlex
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from types import TracebackType
from typing import TYPE_CHECKING, overload

from hprofiler.app.run import RunRequest, RunResult, failures, run
from hprofiler.base.background import start
from hprofiler.base.errors import HprofilerError, UsageError
from hprofiler.cli.commands.run import run_request
from hprofiler.cli.options import audit as audited
from hprofiler.cli.options import objects as chosen
from hprofiler.cli.options.parser import parse
from hprofiler.cli.terminal.run_text import print_findings, print_ledger, why_nothing
from hprofiler.collect.stop import Stop
from hprofiler.collect.visit_group import HostProgress, Reach
from hprofiler.model import HERE, PROCESS, PROGRAM, Host, Selector
from hprofiler.notebook.display import Progress, explained, is_notebook, show
from hprofiler.notebook.run import Run
from hprofiler.notebook.session import Session, read_session
from hprofiler.resolve import Located
from hprofiler.resolve.host_list import this_machine
from hprofiler.resolve.host_names import is_host
from hprofiler.transport.local import LocalTransport

if TYPE_CHECKING:
    from os import PathLike

LIMIT = 3600.0
"""Seconds after which the recording of a block ends, if the block does not."""
_TICK = 0.1
_TOGETHER = 5.0  # seconds within which hosts that start together do so
_AT_ONCE = 10.0  # seconds in which a run ends that was asked to end at once


@overload
def record(
    spark: object,
    *,
    seconds: float,
    events: str | Sequence[str] = "cpu",
    frequency: int = 99,
    output: str | PathLike[str] | None = None,
    options: str | Sequence[str] = (),
) -> Run: ...


@overload
def record(
    spark: object,
    *,
    seconds: None = None,
    events: str | Sequence[str] = "cpu",
    frequency: int = 99,
    output: str | PathLike[str] | None = None,
    options: str | Sequence[str] = (),
    limit: float = LIMIT,
) -> Recording: ...


def record(
    spark: object,
    *,
    seconds: float | None = None,
    events: str | Sequence[str] = "cpu",
    frequency: int = 99,
    output: str | PathLike[str] | None = None,
    options: str | Sequence[str] = (),
    limit: float = LIMIT,
) -> Run | Recording:
    """Profile the application of a SparkSession: for `seconds`, or while a `with` block runs.

        with hprofiler.record(spark, events="cpu,alloc") as run:
            df.groupBy("key").count().collect()
        run.methods

    `events` and `frequency` are those of `hprofiler run`, `output` is the run folder (default
    `hprofiler-DATE-TIME`), and `options` are further options of that command, such as
    `"--user root --thread-names"`. A block is recorded for at most `limit` seconds. Raises HprofilerError if
    nothing can be recorded.
    """
    words = ["-e", events if isinstance(events, str) else ",".join(events), "-f", str(frequency)]
    words += ["-t", f"{limit if seconds is None else seconds:g}"]
    words += [] if output is None else ["-o", str(output)]
    words += shlex.split(options) if isinstance(options, str) else options
    recording = Recording(spark, words)
    if seconds is None:
        return recording
    recording.start()
    return recording.end()


class Recording:
    """Records while a `with` block runs; the block gets its `Run`, which is there afterwards."""

    def __init__(self, spark: object, words: Sequence[str]) -> None:
        self._spark = spark
        self._words = words
        self._work: _Work | None = None
        self.run = Run()

    def __enter__(self) -> Run:
        self.start()
        return self.run

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        assert self._work is not None
        self._work.finish(as_planned=not isinstance(error, KeyboardInterrupt))
        try:
            show(self.end())
        except HprofilerError as own:
            if error is None:
                raise
            print(f"hprofiler: {own}", file=sys.stderr)  # the block's own error goes on

    def __getattr__(self, name: str) -> object:
        raise AttributeError(f"{name}: this is {self!r}")

    def __repr__(self) -> str:
        return "a recording that has not begun: use it in a `with` statement, or give record() seconds"

    @explained()
    def start(self) -> None:
        """Begin; returns when processes are recorded. Raises HprofilerError if none can be."""
        if self._work is not None:
            raise UsageError("this recording was used before", "call hprofiler.record() again")
        self._work = _Work(_plan(self._spark, self._words))
        self._work.wait_for_the_start()

    @explained()
    def end(self) -> Run:
        """Wait for the end."""
        assert self._work is not None
        result = self._work.result()
        self.run.take(result.folder.path, result.report.analysis)
        return self.run


@dataclass(frozen=True)
class _Plan:
    options: argparse.Namespace
    request: RunRequest
    reach: Reach


def _plan(spark: object, words: Sequence[str]) -> _Plan:
    """What `hprofiler run` would do with these options, for the session's application."""
    session = read_session(spark)
    try:
        options = parse(["run", *session.words, *words])
    except SystemExit:
        raise UsageError("--help and --version record nothing", "leave them out") from None
    host, _ = session.driver or ("", 0)
    if options.yarn is not None and is_host(host) and "=" in (options.host_map or "="):
        options.host_map = ",".join(filter(None, (options.host_map, f"{host}={HERE}")))
    if options.slices != "none" and not options.no_timeline:
        options.spark = options.spark or session.page
    if options.when is not None:
        raise UsageError("--when is not for a notebook: a block is recorded while it runs", "leave it out")
    selector, sampling = _with_workers(chosen.selector(options), session, words), chosen.sampling(options)
    chosen.print_cautions(sampling)
    located = _with_driver(chosen.target(options), session)
    request = run_request(options, sampling, located, selector)
    return _Plan(options, request, _with_this_machine(chosen.reach(options, located), options.become))


def _with_workers(selector: Selector, session: Session, words: Sequence[str]) -> Selector:
    """In local mode the Python workers of the driver's JVM and this Python come along, and the run has the
    application's name."""
    if not session.pid:
        return selector
    driver = chosen.selector(parse(["run", "-j", "spark-driver", *words]))
    return replace(
        selector,
        text=session.name or selector.text,
        roots=driver.roots,
        program_roots=driver.program_roots,
        children=driver.children,
        starters=driver.starters,
    )


def _with_driver(located: Located, session: Session) -> Located:
    """The target with the session's driver, which is on this machine.

    In local mode it is the target; on YARN it is found by the ResourceManager.
    """
    if located.target.kind == "local":
        known = {PROCESS: f"driver {session.name}", PROGRAM: session.name} if session.name else {}
        (here,) = located.hosts
        return replace(
            located, hosts=[replace(here, labels={"role": "driver"}, processes={session.pid: known})]
        )
    if located.target.kind != "kubernetes" or session.driver is None:
        return located
    name = this_machine().hosts[0].name
    labels = {"role": "driver", "executor": "driver", PROCESS: "driver"}
    driver = Host(name, HERE, containers={f"spark_driver_{session.driver[1]}": labels})
    return replace(located, hosts=[driver, *located.hosts])


def _with_this_machine(reach: Reach, become: str | None) -> Reach:
    """Reach this machine without SSH."""

    def is_here(host: Host) -> bool:
        return (host.address, host.user, host.port) == (HERE, None, None)

    return replace(
        reach,
        transport_for=lambda host: (
            LocalTransport(host, become) if is_here(host) else reach.transport_for(host)
        ),
    )


class _Work:
    """A run on a thread of its own; progress is shown, and Ctrl-C heard, on the caller's."""

    def __init__(self, plan: _Plan) -> None:
        self._plan = plan
        self._stop = Stop()
        self._reported = False
        self._progress = Progress(len(plan.request.located.hosts))
        self._steps: queue.SimpleQueue[HostProgress] = queue.SimpleQueue()
        self._result = start(lambda: run(plan.request, plan.reach, self._steps.put, self._stop))

    def finish(self, as_planned: bool) -> None:
        """End the recording, unless it has ended by itself."""
        limit = self._plan.request.sampling.duration
        if not self._result.done():
            self._stop.finish() if as_planned else self._stop.request()
        else:
            self._progress.say(
                f"the recording ended before the block: its processes ended, or its limit of {limit:g} s was "
                "reached (limit=)"
            )

    def wait_for_the_start(self) -> None:
        """Until all hosts record that can. Raises HprofilerError if there is none."""
        try:
            self._wait(lambda: self._progress.is_recording(_TOGETHER))
        except KeyboardInterrupt:
            self._stop.request()
            self._stop.request()
            with contextlib.suppress(KeyboardInterrupt):
                self._wait(lambda: False, _AT_ONCE)
            audited.end(self._plan.options, None, "interrupted")
            raise
        if self._result.done():
            self.result()
        else:
            self._progress.recording()

    def result(self) -> RunResult:
        """Wait for the end. Ctrl-C keeps what was recorded; the second one ends everything at once.

        Raises HprofilerError if nothing was recorded.
        """
        while not self._result.done():
            try:
                self._wait(lambda: False)
            except KeyboardInterrupt:
                if self._stop.level > 1:
                    raise
                self._stop.request()
        if not self._reported:
            self._reported = True
            self._report()
        return self._result.result()

    def _wait(self, until: Callable[[], bool], seconds: float = float("inf")) -> None:
        """Show progress until something is true, the run has ended, or so many seconds have passed."""
        left = seconds
        while not (self._result.done() and self._steps.empty()) and not until() and left > 0:
            try:
                self._progress.take(self._steps.get(timeout=_TICK))
            except queue.Empty:
                left -= _TICK

    def _report(self) -> None:
        try:
            result = self._result.result()
            print_ledger(result.results, str(result.report.page) if result.kept else "")
            if not result.coverage.processes.recorded:
                raise _nothing(result, self._plan)
        except BaseException as error:
            audited.end(self._plan.options, None, str(error))
            raise
        audited.end(self._plan.options, 0, "ok")
        self._progress.end(f"recorded {result.report.coverage}: {result.report.page}")
        if not is_notebook():
            for event in result.report.events:
                print_findings(event, sys.stderr)


def _nothing(result: RunResult, plan: _Plan) -> HprofilerError:
    """Why nothing was recorded, with the first failure's remedy."""
    searched = [one.name for one in result.results if one.found_nothing]
    reason = f"nothing recorded: {why_nothing(result, plan.request.selector, searched)}"
    failed = failures(result.results)
    if not failed:
        return HprofilerError(reason)
    return HprofilerError(f"{reason}; {failed[0].where}: {failed[0].reason}", failed[0].remedy)
