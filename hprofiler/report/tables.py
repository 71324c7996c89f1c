"""The page's table of hosts, and the run's facts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial

from hprofiler.analysis.coverage import interrupted
from hprofiler.analysis.facts import PERF, HostFacts, RecordingFacts, RunFacts
from hprofiler.analysis.outliers import Compared, Unlike, what_differs, who
from hprofiler.analysis.result import AnalysisResult, EventAnalysis
from hprofiler.analysis.words import moment, percent
from hprofiler.model.event_names import has_frequency
from hprofiler.model.measures import amount, duration, figures, in_words, measure_of, summed
from hprofiler.report.hottest import Numbered
from hprofiler.report.html import method, number_cell, share_cell, table, text, view_link
from hprofiler.report.ledger import ledger_section
from hprofiler.runfolder import safe_name

_ODD_SHOWN = 20


def hosts_section(analysis: EventAnalysis, numbered: Sequence[Numbered]) -> str:
    """Every host with what it contributed and how alike it is, the odd ones first; idle ones are not blamed.

    Of containers that nobody has to look into the ledger is enough.
    """
    facts, compared = analysis.facts, analysis.compared
    shares = {one[1].key: one for one in numbered}
    odd = {one.key for one in compared.odd_hosts}
    busy = [host for host in facts.hosts if not host.idle and not host.needless]
    busy.sort(key=lambda host: host.key not in odd)
    rows = [_host_row(facts, host, shares.get(host.key), numbered) for host in busy]
    marks = [f'data-host="{shares[host.key][0]}"' if host.key in shares else "" for host in busy]
    heads = ["Host", ">Processes", *_count_heads(facts.event), "%Share", "Hottest method"]
    if len(compared.hosts) > 1:
        heads.append("Unlike the others")
        rows = [row + _unlike(compared.by_host.get(host.key)) for row, host in zip(rows, busy, strict=False)]
    listed = table(heads, rows, "hosts", marks) if rows else ""
    return f'<section class="hosts"><h2>Hosts</h2>{listed}{_odd_processes(compared)}{_idle(facts)}</section>'


def _unlike(one: Unlike | None) -> str:
    """The distance from the other hosts, marked where it is no chance."""
    if one is None:
        return '<td class="unlike"></td>'
    distance = one.distance
    title = text(
        f"Jensen–Shannon divergence {distance.divergence:.6f} bits, {distance.noise:.6f} by chance; "
        f"cosine {distance.cosine:.4f}; {percent(distance.moved, 1)} of the samples are elsewhere"
    )
    number = f"{distance.divergence:.4f}"
    if not one.outlier:
        return f'<td class="unlike soft" title="{title}" data-sort="{distance.divergence}">{number}</td>'
    return (
        f'<td class="unlike name" title="{title}" data-sort="{distance.divergence}">'
        f'<span class="state degraded">unlike {number}</span> '
        f'<span class="soft">{text(what_differs(one))}</span></td>'
    )


def _odd_processes(compared: Compared) -> str:
    """The processes that are unlike the others on hosts that are not."""
    told = {one.key for one in compared.odd_hosts}
    odd = [one for one in compared.odd_processes if one.key not in told]
    if not odd:
        return ""
    listed = "".join(
        f"<li><bdi>{text(who(one))}</bdi>: {text(what_differs(one))}</li>" for one in odd[:_ODD_SHOWN]
    )
    more = f"<li>and {len(odd) - _ODD_SHOWN} more</li>" if len(odd) > _ODD_SHOWN else ""
    return f'<div class="lead">Processes unlike the others:<ul>{listed}{more}</ul></div>'


def _count_heads(event: str) -> list[str]:
    """Samples of CPU time can be expected and lost; other events have their totals."""
    heads = ["Samples", "Expected", "Lost", "CPU time"] if event == "cpu" else measure_of(event).heads
    return [f">{head}" for head in heads]


def _counts(event: str, recordings: Sequence[RecordingFacts]) -> list[str]:
    """The cells below these heads."""
    if event == "cpu":
        sums = [
            sum(getattr(one.samples, kind) for one in recordings) for kind in ("taken", "expected", "lost")
        ]
        seconds = sum(one.cpu_seconds for one in recordings)
        return [
            *(number_cell(f"{value:,}", value) for value in sums),
            number_cell(duration(seconds), seconds),
        ]
    totals = summed(one.totals for one in recordings)
    columns = measure_of(event).columns
    values = [(totals.get(column[0], 0), column) for column in columns]
    return [
        number_cell(
            f"{figures(value, column[0]):,.0f}" if column[1] == "count" else amount(value, column), value
        )
        for value, column in values
    ]


def _host_row(facts: RunFacts, host: HostFacts, known: Numbered | None, numbered: Sequence[Numbered]) -> str:
    name = f"<bdi>{text(host.name)}</bdi>"
    if known is not None and len(numbered) > 1:
        name = f'<a href="{view_link(facts.event, f"host:{known[0]}")}">{name}</a>'
    counts = _counts(facts.event, host.recordings)
    if not host.recordings:
        counts = ['<td class="number"></td>'] * len(counts)
    cells = "".join([_processes(host), *counts])
    share = "<td></td>"
    if known is not None:
        totals = [one.total for _, one in numbered]
        share = share_cell(known[1].total, sum(totals), "total", max(totals))
    return f'<td>{name}</td>{cells}{share}<td class="name">{_hottest(facts, host, known)}</td>'


def _processes(host: HostFacts) -> str:
    recorded = host.recorded
    if host.processes == 0:
        return '<td class="number"></td>'
    shown = f"{recorded} of {host.processes}" if recorded < host.processes else str(recorded)
    return number_cell(shown, recorded)


def _hottest(facts: RunFacts, host: HostFacts, known: Numbered | None) -> str:
    if known is None:
        nothing = "not one sample of the job's own" if facts.trimmed else "not one sample"
        return f'<span class="soft">{text(nothing) if host.recordings else "not recorded"}</span>'
    _, shares = known
    if not shares.hottest:
        return ""
    name, value = next(iter(shares.hottest.items()))
    return f'{method(name)} <span class="soft">{percent(value, shares.attributed)}</span>'


def _idle(facts: RunFacts) -> str:
    idle = [host.name for host in facts.hosts if host.idle]
    if not idle:
        return ""
    names = ", ".join(f"<bdi>{text(name)}</bdi>" for name in idle)
    return f'<p class="lead">Idle, nothing there matched: {names}.</p>'


def run_section(analysis: AnalysisResult) -> str:
    """What holds for the run as a whole: its ledger, and how it was made."""
    facts = analysis.facts
    drawn = [one.event for one in analysis.events if one.total]
    events = ", ".join(map(partial(_with_frequency, facts), facts.events))
    asked = f"{events} for {duration(facts.duration)}, engine {facts.engine}"
    recordings = [one for host in facts.hosts for one in host.recordings]
    totals = {event: summed(one.totals for one in recordings if one.event == event) for event in facts.events}
    in_all = [in_words(event, told) for event, told in totals.items()]
    rows: list[tuple[str, str]] = [
        ("Command", f"<code>{text(' '.join(facts.command))}</code>"),
        ("Target", text(facts.target)),
        ("Selector", f"<code>{text(facts.selector)}</code>"),
        ("Asked for", text(asked)),
        (
            "Trimmed to",
            ", ".join(f"<code>{text(root)}</code>" for root in facts.roots) if facts.trimmed else "",
        ),
        ("Recorded", text(analysis.coverage.text)),
        ("Recorded with", text(_engines(facts))),
        ("In all", "<br>".join(map(text, filter(None, in_all)))),
        ("Started", text(moment(facts.started, seconds=True))),
        (
            "Finished",
            text(moment(facts.finished, seconds=True)) + interrupted(facts),
        ),
        ("hprofiler", text(facts.version)),
        ("JVMs", text(_jvms(facts))),
        ("Beside this page", _files(drawn)),
    ]
    listed = "".join(f"<dt>{label}</dt><dd>{value}</dd>" for label, value in rows if value)
    how = f'<section id="facts"><h2>Run</h2><dl class="facts">{listed}</dl></section>'
    return f'<section id="run">{ledger_section(facts, analysis.problems)}{how}</section>'


def _with_frequency(facts: RunFacts, event: str) -> str:
    """ "cpu at 99 Hz", and counters of perf's; others are not sampled so many times a second."""
    recordings = [one for host in facts.hosts for one in host.recordings]
    by_perf = any(one.engine == PERF and one.event == event for one in recordings)
    sampled_by_it = event == "cpu" or (by_perf and has_frequency(event))
    return f"{event} at {facts.frequency} Hz" if sampled_by_it else event


def _jvms(facts: RunFacts) -> str:
    """The versions of the recorded JVMs, the commonest first, with how many had it."""
    return _commonest(facts, lambda one: one.jvm_version)


def _engines(facts: RunFacts) -> str:
    """What was really used, the commonest first, with how many processes it was for."""
    return _commonest(facts, lambda one: f"{one.engine} {one.source}")


def _commonest(facts: RunFacts, name: Callable[[RecordingFacts], str]) -> str:
    """ "17.0.9 (15), 8 (1)": each process counts once, however many of its events were recorded."""
    used = dict.fromkeys((name(one), host.key, one.pid) for host in facts.hosts for one in host.recordings)
    times = Counter(named for named, _, _ in used if named)
    return ", ".join(f"{named} ({number})" for named, number in times.most_common())


def _files(events: Sequence[str]) -> str:
    """Where the pictures are; "" where there are none."""
    if not events:
        return ""
    names = [text(safe_name(event)) for event in events]
    one = names[0]
    first = f"<code>cluster/{one}</code>, <code>cluster/{one}-mean</code> and <code>hosts/HOST/{one}</code>"
    others = " and ".join(f"<code>{name}</code>" for name in names[1:])
    others = f", the same for {others}" if others else ""
    return f"{first}, each as <code>.svg</code>, <code>.folded</code> and <code>.pb.gz</code> (pprof){others}"
