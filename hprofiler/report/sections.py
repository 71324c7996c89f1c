"""What the page says beside its pictures, ready for JSON: summaries of events, the run's ledger and facts.

`flamegraph/viewer/data/page.js` describes the members; the viewer builds the page from them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from hprofiler._flamegraph import BROKEN_STACKS, Distance
from hprofiler.analysis.attribution import Attribution, ends_of_run
from hprofiler.analysis.coverage import (
    coverage_of_host,
    duration_in_words,
    interrupted,
    others_missing,
    sampled,
    times_in_words,
)
from hprofiler.analysis.facts import PERF, RunFacts
from hprofiler.analysis.outliers import what_differs, who
from hprofiler.analysis.result import (
    AnalysisResult,
    EventAnalysis,
    HostAnalysis,
    methods_that_follow,
    reasons_without_samples,
)
from hprofiler.analysis.subject import Finding
from hprofiler.analysis.waits import shown_row
from hprofiler.analysis.words import SEE_WHAT_IS_THERE, moment
from hprofiler.base.bounded_json import members
from hprofiler.model import HostRecord, Outcome, Recording, Status
from hprofiler.model.event_names import is_each_one, is_method
from hprofiler.model.measures import (
    amount,
    counted,
    duration,
    ends_in_classes,
    figures,
    in_words,
    interval_in_words,
    measure_of,
    no_samples,
    size,
    summed,
)
from hprofiler.report.page import PageData, PageEvent
from hprofiler.report.pictures import left_out
from hprofiler.report.seen import seen_part, seen_share
from hprofiler.report.triggered import triggered_text
from hprofiler.report.work import work_rows
from hprofiler.runfolder import safe_name

Record = dict[str, object]

_CPU_HEADS = ["Samples", "Expected", "Lost", "CPU time"]
_ODD_SHOWN = 20
_HOSTS_NAMED = 5
_ORDER = (Status.FAILED, Status.DEGRADED, Status.OK, Status.IDLE)


def event_of_page(facts: RunFacts) -> PageEvent:
    """What the page says of the event itself; a sample of CPU time is shown in seconds, too."""
    measure = measure_of(facts.event)
    totals = summed(one.totals for one in facts.recordings)
    second = None
    if facts.event == "cpu" and totals.get("samples"):
        column, unit = measure.columns[1]
        # Profiles of several engines have as many samples as their CPU time has at this frequency.
        mixed = 1e9 / facts.record.sampling.frequency if facts.is_mixed else 0.0
        second = (column, unit, mixed or totals.get(column, 0) / totals["samples"])
    return PageEvent(
        facts.event,
        measure.title,
        *measure.column,
        measure.wider,
        facts.seconds,
        second,
        *ends_of_run(facts.event),
    )


def with_left_out(event: PageEvent, attribution: Attribution) -> PageEvent:
    """The event with what its tables leave out, as those in the terminal do."""
    broken = BROKEN_STACKS if attribution.broken and not attribution.self_only else ""
    frames = attribution.profiler_frames
    return replace(event, profiler=frames, broken=broken, self_only=attribution.self_only)


def event_summary(data: PageData, analysis: EventAnalysis) -> Record:
    """What the page says of one event."""
    facts = analysis.facts
    others = others_missing(facts, analysis.coverage.counts.processes.found)
    chips = [
        chip(moment(facts.record.started) + interrupted(facts)),
        chip(sampled(facts)),
        *([chip(triggered)] if (triggered := triggered_text(facts.record)) else []),
        chip(analysis.coverage.text, not analysis.coverage.complete),
        *([chip(others, True)] if others else []),
        *([chip(*share)] if (share := seen_share(analysis.seen)) else []),
    ]
    if analysis.total:
        chips.append(chip(in_words(facts.event, analysis.totals)))
        only = left_out(facts, analysis.total, analysis.whole)
        chips += [chip(only)] if only else []
    return summary(
        [finding_record(one) for one in analysis.findings],
        chips,
        analysis.second,
        None if analysis.total else _empty(analysis),
        _lead(analysis.event, analysis) if analysis.total else "",
        _hosts(data, analysis),
        work_rows(data, analysis) if analysis.total else None,
    )


def file_summary(attribution: Attribution, findings: Sequence[Finding]) -> Record:
    """What the page of one profile says of a value of it."""
    column = attribution.original.values[0]
    return summary(
        [finding_record(one) for one in findings],
        [chip(amount(attribution.original.total(), column))],
        methods_that_follow(attribution, findings[0]),
        lead=_lead(attribution.event, attribution),
    )


def finding_record(finding: Finding) -> Record:
    return {"method": finding.method, "parts": finding.parts}


def summary(
    findings: Sequence[Record],
    chips: Sequence[Record],
    second: str = "",
    empty: Record | None = None,
    lead: str = "",
    hosts: Record | None = None,
    work: Sequence[Record] | None = None,
) -> Record:
    """What the page says of an event: above the views, below them, and in the view of hosts."""
    return {
        "findings": findings,
        "second": second,
        "chips": chips,
        "empty": empty,
        "lead": lead,
        "hosts": hosts,
        "work": work,
    }


def chip(text: str, partial: bool = False) -> Record:
    """A short fact of the headline; `partial` where something is missing."""
    return {"text": text, "partial": partial}


def _empty(analysis: EventAnalysis) -> Record:
    """Why an event has no samples, and what to do."""
    facts = analysis.facts
    one_event = len(facts.events) == 1
    answer = "Nothing was recorded" if one_event else f"No samples of {measure_of(facts.event).title}"
    why = "No samples were taken:"
    remedy = ""
    if facts.trimmed and any(summed(one.totals for one in facts.recordings).values()):
        answer = "Nothing is left to show"
        why = "No stack has a frame of the job’s own code:"
        roots = ", ".join(facts.roots)
        reasons = [
            reason_record((), f"The report is trimmed to code below {roots}. Regenerate it without --trim.")
        ]
    else:
        found = reasons_without_samples(facts.hosts, analysis.problems)
        reasons = [reason_record(hosts, reason, remedy) for (reason, remedy), hosts in found.items()]
        if not reasons and analysis.recorded:
            because = no_samples(facts.event, analysis.recorded, facts.expected, bool(facts.live_cut))
            reasons = [reason_record((), f"{because[0].upper()}{because[1:]}.")]
        if not reasons:
            reasons = [reason_record((), "The run ended before any process was found.")]
        if len(reasons) == 1:
            why = ""
    idle = any(host.idle for host in facts.hosts)
    if idle and not any(host.processes for host in facts.hosts):
        remedy = SEE_WHAT_IS_THERE
    return {"answer": answer, "why": why, "reasons": reasons, "remedy": remedy}


def reason_record(hosts: Sequence[str], text: str, remedy: str = "") -> Record:
    """Why there is nothing to see."""
    where = list(dict.fromkeys(hosts))
    named = where[:_HOSTS_NAMED]
    return {"hosts": named, "more": len(where) - len(named), "text": text, "remedy": remedy}


def _lead(event: str, attributed: EventAnalysis | Attribution) -> str:
    """What the columns of methods mean."""
    if attributed.self_only:
        return "Self is the cost of a method’s own code. Totals are not known: too many stacks are broken."
    if ends_in_classes(event):
        return "Self is what a method allocates by itself; total includes everything it calls."
    if is_method(event):
        return "Self counts the calls made by a method; total counts those by everything it calls, too."
    return "Self is the cost of a method’s own code; total includes everything it calls."


def _hosts(data: PageData, analysis: EventAnalysis) -> Record:
    """Every host with what it contributed and how far it is from the others; idle ones apart.

    Containers that need not be searched are only in the ledger.
    """
    facts, compared = analysis.facts, analysis.compared
    known = {one.name: one for one in analysis.hosts}
    odd_hosts = {one.host for one in compared.odd_hosts}
    odd = [one for one in compared.odd_processes if one.host not in odd_hosts]
    heads = _CPU_HEADS if facts.event == "cpu" else measure_of(facts.event).heads
    distances = {one.host: one.distance for one in compared.hosts}
    return {
        "heads": list(heads),
        "compared": len(compared.hosts) > 1,
        "rows": [
            _host(data, analysis, host, known.get(host.name), distances.get(host.name))
            for host in facts.hosts
            if not host.idle and not host.needless
        ],
        "odd": [{"who": who(one), "what": what_differs(one)} for one in odd[:_ODD_SHOWN]],
        "more_odd": max(0, len(odd) - _ODD_SHOWN),
        "idle": [host.name for host in facts.hosts if host.idle],
    }


def _host(
    data: PageData,
    analysis: EventAnalysis,
    host: HostRecord,
    known: HostAnalysis | None,
    distance: Distance | None,
) -> Record:
    facts, processes = analysis.facts, coverage_of_host(host, analysis.problems).processes
    hottest = next(iter(known.hottest.items()), None) if known else None
    nothing = "no samples of the job's code" if facts.trimmed else "no samples"
    return {
        "host": data.number_of_host(host.name),
        "name": host.name,
        "recorded": processes.recorded,
        "processes": processes.found,
        "taken": sum(one.samples.taken for one in host.recordings),
        "counts": _counts(facts.event, host.recordings),
        "total": known.total if known else None,
        "hottest": [shown_row(hottest[0]), hottest[1] / known.attributed] if known and hottest else None,
        "why_empty": "" if known else nothing if host.recordings else "not recorded",
        "unlike": None if distance is None else distance_record(distance),
    }


def distance_record(distance: Distance) -> Record:
    return {
        **members(distance, "divergence", "noise", "cosine", "moved", "outlier"),
        "methods": [[one.name, one.share, one.usual] for one in distance.methods],
    }


def _counts(event: str, recordings: Sequence[Recording]) -> list[tuple[str, float]]:
    """Of each count the text and the number. Samples of CPU time can be expected and lost."""
    if not recordings:
        return []
    if event == "cpu":
        kinds = ("taken", "expected", "lost")
        sums = [sum(getattr(one.samples, kind) for one in recordings) for kind in kinds]
        seconds = sum(one.cpu_seconds for one in recordings)
        return [*((f"{value:,}", value) for value in sums), (duration(seconds), seconds)]
    totals = summed(one.totals for one in recordings)
    values = [(totals.get(column[0], 0), column) for column in measure_of(event).columns]
    return [
        (f"{figures(value, column[0]):,.0f}" if column[1] == "count" else amount(value, column), value)
        for value, column in values
    ]


def run_record(analysis: AnalysisResult) -> Record:
    """All that holds for the run as a whole."""
    ledger = ledger_record(analysis.facts, analysis.problems, analysis.notes)
    seen = seen_part(analysis.seen, analysis.facts)
    return {"seen": [seen.record()] if seen.title else [], "ledger": ledger, "facts": _facts(analysis)}


@dataclass(frozen=True)
class _Line:
    """A line of the ledger: of a process with its recordings, or of a `host` with its timings and bytes."""

    outcome: Outcome
    recordings: Sequence[Recording] = ()
    host: HostRecord | None = None


def ledger_record(facts: RunFacts, problems: Sequence[Outcome], notes: Sequence[Outcome] = ()) -> Record:
    """What happened to each host and process; the worst first. `notes` are of profiles that can be used."""
    found = (*_lines(facts, problems), *map(_Line, notes))
    lines = sorted(found, key=lambda line: _ORDER.index(line.outcome.status))
    searched = not any(host.processes for host in facts.hosts)
    if searched:
        none = any(host.idle for host in facts.hosts)
        lead = "No process matches, and nothing was recorded" if none else "Nothing was recorded"
    else:
        how = "until the run was interrupted" if facts.record.interrupted else "as asked"
        lead = f"All processes found were recorded {how}"
    return {
        "samples": "cpu" in facts.events,
        "all_well": lead,
        "fine": "hosts that were searched" if searched else "hosts and processes without problems",
        "lines": [_line_record(line) for line in lines],
    }


def _line_record(line: _Line) -> Record:
    outcome, recordings, host = line.outcome, line.recordings, line.host
    cpu = next((one.samples for one in recordings if one.event == "cpu"), None)
    attached = [one.attach_seconds for one in recordings if one.attach_seconds is not None]
    received = [one.bytes_received for one in recordings if one.bytes_received is not None]
    sent = host.bytes_received if host else sum(received)
    took = [f"{size(host.bytes_sent)} sent to it"] if host and host.bytes_sent else []
    if any(one.joined for one in recordings):
        last = max(one.ended for one in recordings)
        took += [f"joined after {duration(recordings[0].joined)}, recorded until {duration(last)}"]
    if host:
        took += [f"{stage} {duration(seconds)}" for stage, seconds in host.timings.items() if seconds]
    return {
        "status": outcome.status.value,
        "stage": outcome.stage if outcome.status is Status.FAILED else "",
        "host": outcome.host,
        "process": outcome.label or (recordings[0].label if recordings else ""),
        "pid": outcome.pid,
        "used": [_used(one) for one in recordings],
        "samples": [cpu.expected, cpu.taken, cpu.lost] if cpu else None,
        "attached": duration(max(attached)) if attached else "",  # one attach for all events of a process
        "sent": size(sent) if sent else "",
        "reason": outcome.reason,
        "remedy": outcome.remedy,
        "took": ", ".join(took),
    }


def _lines(facts: RunFacts, problems: Sequence[Outcome]) -> Iterable[_Line]:
    for problem in problems:
        yield _Line(problem)
    broken = Counter((problem.host, problem.pid) for problem in problems)
    for host in facts.hosts:
        of_host = [outcome for outcome in host.outcomes if outcome.pid is None]
        if not of_host and (host.bytes_sent or host.bytes_received):
            of_host = [Outcome(host.name, Status.OK, "", code="recorded")]
        for number, outcome in enumerate(of_host):  # the first line says what the host took
            yield _Line(outcome, host=None if number else host)
        recordings: dict[int | None, list[Recording]] = {}
        for one in host.recordings:
            recordings.setdefault(one.pid, []).append(one)
        of_processes = [outcome for outcome in host.outcomes if outcome.pid is not None]
        known = {outcome.pid for outcome in of_processes}
        for outcome in of_processes:
            of_process = recordings.get(outcome.pid, [])
            if outcome.status is not Status.OK or broken[host.name, outcome.pid] < max(1, len(of_process)):
                yield _Line(outcome, of_process)
        for pid, of_process in recordings.items():
            if pid not in known and broken[host.name, pid] < len(of_process):
                outcome = Outcome(
                    host.name, Status.OK, "record", pid=pid, label=of_process[0].label, code="recorded"
                )
                yield _Line(outcome, of_process)


def _used(recording: Recording) -> str:
    """ "async-profiler ctimer, 1,363 samples", "async-profiler alloc every 4 MiB, 1.3 GiB allocated" ..."""
    how = interval_in_words(recording.event, [recording.interval]) if recording.event != "cpu" else ""
    amounts = in_words(recording.event, recording.totals) or counted(recording.samples.taken, "samples")
    return f"{recording.engine} {recording.source} {how}".strip() + f", {amounts}"


def _facts(analysis: AnalysisResult) -> list[tuple[str, str, list[str]]]:
    """How the run was made, so that it can be made again: a label, "text" or "code", and its lines."""
    facts = analysis.facts
    events = ", ".join(_with_frequency(facts, event) for event in facts.events)
    within = "" if facts.time is None else f" in {facts.time}"
    in_all = [
        in_words(event, summed(one.totals for one in facts.recordings if one.event == event))
        for event in facts.events
    ]
    finished = moment(facts.finished, seconds=True) + interrupted(facts)
    rows: list[tuple[str, str, list[str]]] = [
        ("Command", "code", [" ".join(facts.record.command)]),
        ("Target", "text", [facts.target]),
        ("Selector", "code", [facts.record.selector]),
        ("Requested", "text", [f"{events}{within}, engine {facts.record.sampling.engine}"]),
        ("Trimmed to", "code", [*facts.roots, *facts.program_roots] if facts.trimmed else []),
        ("Recorded", "text", [analysis.coverage]),
        ("Recorded for", "text", [duration_in_words(facts.seconds, facts.duration)]),
        ("Times", "text", times_in_words(facts)),
        ("Recorded with", "text", [_commonest(facts, lambda one: f"{one.engine} {one.source}")]),
        ("Total", "text", in_all),
        ("Started", "text", [moment(facts.record.started, seconds=True)]),
        ("Finished", "text", [finished.removeprefix(", ")]),
        ("hprofiler", "text", [facts.record.hprofiler]),
        ("JVMs", "text", [_commonest(facts, lambda one: one.process.jvm_version)]),
        ("Other files", "text", _files([one.event for one in analysis.events if one.total])),
    ]
    shown = [(label, kind, [line for line in lines if line]) for label, kind, lines in rows]
    return [row for row in shown if row[2]]


def _with_frequency(facts: RunFacts, event: str) -> str:
    """ "cpu at 99 Hz", and counters of perf's; others are not sampled so many times a second."""
    by_perf = any(one.engine == PERF and one.event == event for one in facts.recordings)
    has = event == "cpu" or (by_perf and event != "offcpu" and not is_each_one(event))
    return f"{event} at {facts.record.sampling.frequency} Hz" if has else event


def _commonest(facts: RunFacts, name: Callable[[Recording], str]) -> str:
    """ "17.0.9 (15), 8 (1)": each process counts once, however many of its events were recorded."""
    used = dict.fromkeys((name(one), host.name, one.pid) for host in facts.hosts for one in host.recordings)
    times = Counter(named for named, _, _ in used if named)
    return ", ".join(f"{named} ({number})" for named, number in times.most_common())


def _files(events: Sequence[str]) -> list[str]:
    """Where the pictures are; nothing where there are none."""
    if not events:
        return []
    one, *others = [safe_name(event) for event in events]
    more = f", the same for {' and '.join(others)}" if others else ""
    where = f"cluster/{one}, cluster/{one}-mean and hosts/HOST/{one}"
    return [f"{where}, each as .svg, .folded and .pb.gz (pprof){more}"]
