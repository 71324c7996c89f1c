"""`hprofiler memory`: where the memory of a job's processes is."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from hprofiler.analysis.memory import MemoryResult, analyse_memory
from hprofiler.app.memory import executor_limits
from hprofiler.base.errors import HprofilerError, UsageError
from hprofiler.base.text import printable
from hprofiler.cli.options import objects as chosen
from hprofiler.cli.terminal.exit_codes import Exit
from hprofiler.cli.terminal.ledger import outcome_record, print_degraded, print_failures
from hprofiler.cli.terminal.lines import print_json, say
from hprofiler.cli.terminal.progress import display
from hprofiler.cli.terminal.prompt import agrees, can_ask
from hprofiler.collect.checking import find_only
from hprofiler.collect.measuring import HostMeasured, Looks, measure
from hprofiler.collect.stop import Stop, on_interrupt
from hprofiler.collect.visit_group import Reach
from hprofiler.model import Host, Outcome, Selector, Status
from hprofiler.model.measures import counted
from hprofiler.model.memory import MeasuredProcess
from hprofiler.report.memory import finding_lines, memory_lines, memory_record
from hprofiler.resolve import SparkDriver

_FEW = 4
"""So many JVMs count their objects without a question."""


def command(options: argparse.Namespace) -> int:
    selector = chosen.selector(options)
    located = chosen.target(options)
    source = chosen.spark_source(options, located)
    reach = chosen.reach(options, located)
    if options.heap and not options.yes:
        refuse_unasked(located.hosts, selector, reach)
    looks = Looks(options.times, options.every, options.heap)
    stop = Stop()
    with on_interrupt(stop.request), display(len(located.hosts), 0.0) as listener:
        hosts = measure(located.hosts, selector, looks, reach, listener, stop)
    outcomes = [*(one for host in hosts for one in host.outcomes), *located.absent]
    result = _analysed(hosts, source)
    if options.json:
        print_json({**memory_record(result), "outcomes": [_outcome(one) for one in outcomes]})
    else:
        _print(result)
    _print_problems(outcomes, bool(result.processes))
    return Exit.after(stop.signal) if stop.signal else _exit_code(result, outcomes)


def refuse_unasked(hosts: Sequence[Host], selector: Selector, reach: Reach) -> None:
    """Raises UsageError if many JVMs would stand still, and the user does not agree."""
    found = find_only(hosts, selector, reach)
    jvms = sum(one.is_jvm for host in found for one in host.processes)
    if jvms <= _FEW:
        return
    question = (
        f"{counted(jvms, 'JVMs')} will stand still, one of each host at a time, while they count objects"
    )
    if not can_ask() or not agrees(f"{question}. Go on?"):
        raise UsageError(question, "narrow the selector, or add --yes")


def _analysed(hosts: Sequence[HostMeasured], source: SparkDriver | Path | None) -> MemoryResult:
    processes: list[MeasuredProcess] = [one for host in hosts for one in host.processes]
    limits = {}
    if source is not None and processes:
        try:
            limits = executor_limits(source, processes)
        except HprofilerError as error:
            say("note: ", printable(f"Spark's settings are not known: {error.reason}"), sys.stderr)
    return analyse_memory(processes, limits)


def _print(result: MemoryResult) -> None:
    if not result.processes:
        return
    print("\n".join(memory_lines(result)))
    findings = finding_lines(result.findings)
    if findings:
        print()
    for severity, text, remedy in findings:
        say(f"{severity}: ", text, sys.stdout)
        if remedy:
            say("    ", remedy, sys.stdout)


def _print_problems(outcomes: Sequence[Outcome], some: bool) -> None:
    failed = [one for one in outcomes if one.status is Status.FAILED and not one.lost]
    print_failures(failed, "", "read")
    print_degraded(outcomes)
    if not some:
        idle = next((one.reason for one in outcomes if one.status is Status.IDLE), "")
        print(f"hprofiler: nothing was read{': ' if idle else ''}{idle}", file=sys.stderr)


def _outcome(one: Outcome) -> dict[str, object]:
    return {"host": one.host, **outcome_record(one)}


def _exit_code(result: MemoryResult, outcomes: Sequence[Outcome]) -> Exit:
    if not result.processes:
        return Exit.NOTHING
    bad = {Status.FAILED, Status.DEGRADED}
    return Exit.PARTIAL if any(one.status in bad for one in outcomes) else Exit.OK
