"""What `hprofiler run` prints of its result. Imported when there is one: it needs the report."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TextIO

from hprofiler.analysis.coverage import times_in_words
from hprofiler.analysis.facts import RunFacts
from hprofiler.analysis.heaviest import heaviest
from hprofiler.analysis.machines import THRESHOLDS
from hprofiler.analysis.result import EventAnalysis
from hprofiler.analysis.words import SEE_WHAT_IS_THERE, and_more, percent, plain
from hprofiler.app.run import RunResult, failures
from hprofiler.base.bounded_json import members
from hprofiler.base.text import printable, some
from hprofiler.base.text_table import table_lines
from hprofiler.cli.terminal import lines
from hprofiler.cli.terminal.ledger import host_records, print_degraded, print_failures, print_reasons
from hprofiler.cli.terminal.lines import say
from hprofiler.model import HostRecord, Selector
from hprofiler.model.measures import amount, in_words, measure_of, named_by, no_samples
from hprofiler.report.counters import counters_text
from hprofiler.report.machines import machines_record, machines_text
from hprofiler.report.seen import process_records, seen_record, seen_text
from hprofiler.report.spark.record import findings_record
from hprofiler.report.stages import stages_record, stages_text
from hprofiler.report.text import hottest, outliers_record, outliers_table
from hprofiler.report.triggered import triggered_text
from hprofiler.report.work import may_inline, work_record, work_text
from hprofiler.runfolder import RunFolder

FINDINGS_SHOWN = 3
_HOSTS_SHOWN = 8
_PROCESSES_SHOWN = 5

# Selectors that match any program only with --engine perf or pyspy.
_OF_ANY_PROGRAM = ("text", "regex", "pipe")


def print_summary(result: RunResult, selector: Selector, outliers: bool) -> None:
    """Problems on stderr; hottest methods, outliers and the report's path on stdout."""
    print_ledger(result.results, str(result.report.page) if result.kept else "")
    if result.report.empty:
        _print_nothing(result, selector)
        return
    print(f"recorded {result.report.coverage}{' before the interrupt' if result.interrupted else ''}")
    if triggered := triggered_text(result.folder.record):
        print(printable(triggered))
    if seen := seen_text(result.report.analysis.seen):
        print(seen)
    times = times_in_words(result.report.analysis.facts)
    if len(times) > 1:  # several hosts, whose clocks may differ
        print("; ".join(times))
    for event in result.report.events:
        print()
        _print_event(result.folder, event)
        if outliers and event.total:
            print(outliers_table(event.event, event.compared))
    if told := machines_text(result.report.analysis.machines):
        print(f"\n{told}")
    if counted := counters_text(result.report.analysis.machines):
        print(f"\n{counted}")
    print(f"report: {result.report.page}")


def print_ledger(results: Sequence[HostRecord], page: str) -> None:
    """Print what was not recorded, and what is to be known of the rest, on stderr."""
    print_failures(failures(results), page)
    print_degraded(one for host in results for one in host.outcomes)
    print_reasons(results)


def _print_event(folder: RunFolder, event: EventAnalysis) -> None:
    """Totals of an event, its findings and hottest methods."""
    print_findings(event, sys.stdout)
    if not event.total:
        return
    of = event.share_of if event.attributed < event.total else ""
    print(hottest(event.hottest, event.attributed, event.event, of, event.self_only))
    if event.recorded > 1 and not event.facts.trimmed:
        print("\n".join(_processes(folder, event)))
    if work := work_text(event.work, may_inline(event.facts)):
        print(work)
    if event.stages is not None:
        print(stages_text(event.stages))


def print_findings(event: EventAnalysis, out: TextIO) -> None:
    """Totals of an event, and the first of its findings."""
    if not event.total:
        print(f"{event.event}: {why_empty(event)}", file=out)
        return
    left_out = f", {event.left_out:.1%} removed by --trim" if event.whole > event.total else ""
    print(f"{event.event}: {in_words(event.event, event.totals)}{left_out}", file=out)
    findings = [one for one in event.findings if one.code not in THRESHOLDS]  # of hosts: a line of their own
    caveats = [one for one in findings[FINDINGS_SHOWN:] if one.caveat]
    for finding in (*findings[:FINDINGS_SHOWN], *caveats):
        say("  ", printable(plain(finding.text)), out)


def _processes(folder: RunFolder, event: EventAnalysis) -> Iterator[str]:
    """The processes that cost most, and where."""
    found = heaviest(folder, event, _PROCESSES_SHOWN)
    column = measure_of(event.event).column
    several = len({one.host for one in found}) > 1
    rows = [("share", "amount", "process", f"hottest {named_by(event.event)}")]
    for one in found:
        name = f"{one.process.label} (pid {one.process.pid})"
        share = plain(percent(one.hottest.self_value, one.cost))
        rows.append(
            (
                plain(percent(one.cost, event.attributed)),
                amount(one.cost, column),
                printable(f"{one.host}: {name}" if several else name),
                printable(f"{one.hottest.shown} ({share} of it)"),
            )
        )
    if found:
        yield "  by process:"
        yield from table_lines(rows, right=(0, 1), indent=4)
        yield from and_more(event.recorded - len(found) if len(found) == _PROCESSES_SHOWN else 0, "processes")


def _print_nothing(result: RunResult, selector: Selector) -> None:
    """Why nothing was recorded, and what to do next."""
    searched = [one.name for one in result.results if one.found_nothing]
    what = why_nothing(result, selector, searched)
    print(f"hprofiler: nothing recorded: {what}", file=sys.stderr)
    if not result.coverage.processes.found and not result.folder.record.last_of:
        for hint in _next_steps(result, selector, searched):
            print(f"  {hint}", file=sys.stderr)
    if result.kept:
        print(f"  see {result.report.page}", file=sys.stderr)


def why_nothing(result: RunResult, selector: Selector, searched: list[str]) -> str:
    found = result.coverage.processes.found
    codes = {line.code for host in result.results for line in host.outcomes}
    if "all-ended" in codes:
        return "all processes had ended before the seconds that are kept"
    if result.coverage.processes.recorded:
        why = "; ".join(f"{event.event}: {why_empty(event)}" for event in result.report.events)
        return f"{result.report.coverage}, but there are no samples: {why}"
    if found:
        if found == 1:
            return "the only matching process could not be recorded"
        return f"none of {found:,} matching processes could be recorded"
    missed = [one.name for one in result.results if one.name not in searched]
    if searched:
        if selector.kind == "pids" and len(result.results) == 1:
            return "; ".join(line.reason for line in result.results[0].outcomes)
        where = some(searched, _HOSTS_SHOWN, "hosts")
        where += f"; not searched: {some(missed, _HOSTS_SHOWN, 'hosts')}" if missed else ""
        return f"no process matches {selector.text!r}; searched {where}"
    return "interrupted before any host was searched" if result.interrupted else "no host could be searched"


def _next_steps(result: RunResult, selector: Selector, searched: list[str]) -> Iterator[str]:
    """Why no process was found."""
    if searched and selector.kind == "pids" and len(result.results) > 1:
        yield "the process may have ended; it must run on the host that is searched"
    elif searched:
        yield SEE_WHAT_IS_THERE
        if not selector.native and selector.kind in _OF_ANY_PROGRAM:
            yield "only JVMs were searched; --engine perf also records other programs, and -j python Python"
    elif result.interrupted:
        yield "list what a run would record: hprofiler ps, with the same -j and host options"
    else:
        yield "check what prevents the recording: hprofiler doctor, with the same -j and host options"


def why_empty(event: EventAnalysis) -> str:
    if not event.recorded:
        return "not recorded"
    if event.whole:
        return "no stack contains a root of the selector; `hprofiler report DIR` shows all stacks"
    facts = event.facts
    return f"no samples: {no_samples(event.event, event.recorded, facts.expected, bool(facts.live_cut))}"


def print_json(result: RunResult) -> None:
    """The result for `--json`."""
    record = result.folder.record
    lines.print_json(
        {
            "folder": str(result.folder.path.resolve()) if result.kept else None,
            "report": str(result.report.page.resolve()) if result.kept else None,
            "interrupted": result.interrupted,
            "trigger": record.trigger and asdict(record.trigger),
            "last_of": record.last_of,
            "target": asdict(record.target),
            "coverage": asdict(record.coverage),
            "failures": [
                members(one, "where", "code", "parameters", "reason", "remedy")
                for one in failures(result.results)
            ],
            "processes": process_records(result.report.analysis.seen),
            "seen": seen_record(result.report.analysis.seen),
            "events": [_event_record(event) for event in result.report.events],
            "metrics": machines_record(result.report.analysis.machines),
            "hosts": host_records(result.results),
            "spark": _spark_record(result.report.analysis.facts),
        }
    )


def _spark_record(facts: RunFacts) -> dict[str, object] | None:
    """What stands out in the Spark application; `hprofiler spark RUN --json` has its figures."""
    if facts.job is None:
        return None
    return {"application": facts.job.application.id, "findings": findings_record(facts.job.findings)}


def _event_record(event: EventAnalysis) -> dict[str, object]:
    """The hottest methods count `value` in `unit`; their shares are of `hottest_of`."""
    value, unit = measure_of(event.event).column
    methods = [
        {"method": m.name, "self": m.self_value, "total": m.total_value if m.known else None}
        for m in event.hottest
    ]
    return {
        "event": event.event,
        "processes": event.recorded,
        "totals": dict(event.totals),
        "value": value,
        "unit": unit,
        "left_out": event.left_out,
        "findings": [
            {
                "code": one.code,
                "parameters": one.parameters,
                "text": plain(one.text),
                "method": one.method,
                "host": one.host,
            }
            for one in event.findings
        ],
        "self_only": event.self_only,
        "untrusted": [
            members(one, "host", "pid", "label", "code", "share") for one in event.facts.untrusted.values()
        ],
        "callers_unsure": members(event.unsure_callers, "processes", "share", "methods")
        if event.unsure_callers
        else None,
        "hottest": methods,
        "hottest_of": event.attributed,
        "outliers": outliers_record(event.compared),
        "slices": stages_record(event.stages) if event.stages else None,
        "work": work_record(event.work),
    }
