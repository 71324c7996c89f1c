"""The page's ledger: what happened to each host and process, and what it took."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from hprofiler.analysis.facts import HostFacts, RecordingFacts, RunFacts
from hprofiler.model import Outcome, Status
from hprofiler.model.measures import counted, duration, in_words, interval_in_words, size
from hprofiler.report.html import number_cell, table, text

# More notes than this are folded away: they are of many processes, and tell the same of each.
_NOTES_SHOWN = 20
_HEADS = ("State", "Host", "Process", "Recorded with")
# Samples of CPU time can be expected and lost.
_SAMPLES = ("expected", "taken", "lost")
_COSTS = (">Attached", ">Sent", "What happened")
_ORDER = (Status.FAILED, Status.DEGRADED, Status.OK, Status.IDLE)
_NO_NUMBER = '<td class="number"></td>'


def ledger_section(facts: RunFacts, problems: Sequence[Outcome]) -> str:
    """What happened to each host and process: what went wrong and the notes in sight, the rest folded."""
    with_samples = "cpu" in facts.events
    lines = sorted(_lines(facts, problems), key=lambda line: _ORDER.index(line.outcome.status))
    rows = [(line.outcome, line.row(with_samples)) for line in lines]
    trouble = [html for one, html in rows if one.status in (Status.FAILED, Status.DEGRADED)]
    notes = [html for one, html in rows if one.status is Status.OK and one.reason]
    fine = [
        html
        for one, html in rows
        if one.status is Status.IDLE or (one.status is Status.OK and not one.reason)
    ]
    heads = [*_HEADS, *(f">{kind.capitalize()}" for kind in _SAMPLES if with_samples), *_COSTS]
    parts = ['<section id="ledger"><h2>What happened</h2>']
    if trouble:
        parts.append(table(heads, trouble, "ledger"))
    else:
        noted = f", with {counted(len(notes), 'notes')}" if notes else ""
        parts.append(f'<p class="lead">{_all_well(facts)}{noted}.</p>')
    if notes:
        parts.append(_folded(counted(len(notes), "notes"), heads, notes, len(notes) <= _NOTES_SHOWN))
    if fine:
        more = "more lines" if trouble or notes else "lines"
        parts.append(_folded(f"{counted(len(fine), more)} of {_fine(facts)}", heads, fine))
    parts.append("</section>")
    return "\n".join(parts)


def _all_well(facts: RunFacts) -> str:
    """The lead of a ledger without trouble."""
    if not any(host.processes for host in facts.hosts):
        none = any(host.idle for host in facts.hosts)
        return "No process matches, and nothing was recorded" if none else "Nothing was recorded"
    how = "until the run was interrupted" if facts.interrupted else "as asked"
    return f"Everything that was found was recorded {how}"


def _fine(facts: RunFacts) -> str:
    """What is folded away: where nothing was found nothing went well."""
    return "what went well" if any(host.processes for host in facts.hosts) else "what was searched"


def _folded(summary: str, heads: Sequence[str], rows: Sequence[str], is_open: bool = False) -> str:
    shown = " open" if is_open else ""
    listed = table(heads, rows, "ledger")
    return f"<details{shown}><summary>{summary}</summary>{listed}</details>"


@dataclass(frozen=True)
class _Line:
    """A line of the ledger: of a process with its recordings, or of a `host` with what it took as a whole."""

    outcome: Outcome
    recordings: Sequence[RecordingFacts] = ()
    host: HostFacts | None = None

    def row(self, with_samples: bool) -> str:
        """The cells."""
        one = self.outcome
        label = one.label or (self.recordings[0].label if self.recordings else "")
        process = f"<bdi>{text(label)}</bdi>" if label else ""
        if one.pid is not None:
            process = f'{process} <span class="soft">pid {one.pid}</span>'
        used = "<br>".join(text(_used(recording)) for recording in self.recordings)
        stage = f' <span class="soft">at {text(one.stage)}</span>' if _failed_at(one) else ""
        remedy = f'<div class="remedy">{text(one.remedy)}</div>' if one.remedy else ""
        return (
            f'<td><span class="state {one.status.value}">{one.status.value}</span>{stage}</td>'
            f"<td><bdi>{text(one.host)}</bdi></td><td>{process}</td><td>{used}</td>"
            f"{self._samples() if with_samples else ''}{self._attached()}{self._sent()}"
            f'<td class="words">{text(one.reason)}{remedy}{self._took()}</td>'
        )

    def _samples(self) -> str:
        """Those of CPU time."""
        cpu = next((one.samples for one in self.recordings if one.event == "cpu"), None)
        if cpu is None:
            return _NO_NUMBER * len(_SAMPLES)
        numbers = (getattr(cpu, kind) for kind in _SAMPLES)
        return "".join(number_cell(f"{number:,}", number) for number in numbers)

    def _attached(self) -> str:
        """All events of a process are recorded by one attach."""
        known = [one.attach_seconds for one in self.recordings if one.attach_seconds is not None]
        return number_cell(duration(max(known)), max(known)) if known else _NO_NUMBER

    def _sent(self) -> str:
        known = [one.bytes_received for one in self.recordings if one.bytes_received is not None]
        sent = self.host.bytes_received if self.host else sum(known)
        return number_cell(size(sent), sent) if sent else _NO_NUMBER

    def _took(self) -> str:
        """What was sent to a host, and its time by stage."""
        if self.host is None:
            return ""
        told = [f"{size(self.host.bytes_sent)} sent to it"] if self.host.bytes_sent else []
        told += [f"{stage} {duration(seconds)}" for stage, seconds in self.host.timings.items() if seconds]
        return f'<div class="took">{text(", ".join(told))}</div>' if told else ""


def _failed_at(outcome: Outcome) -> bool:
    return outcome.status is Status.FAILED and bool(outcome.stage)


def _lines(facts: RunFacts, problems: Sequence[Outcome]) -> Iterable[_Line]:
    for problem in problems:
        yield _Line(problem)
    broken = Counter((problem.host, problem.pid) for problem in problems)
    for host in facts.hosts:
        yield from _host_lines(host)
        recordings: dict[int | None, list[RecordingFacts]] = {}
        for one in host.recordings:
            recordings.setdefault(one.pid, []).append(one)
        of_processes = [outcome for outcome in host.outcomes if outcome.pid is not None]
        told = {outcome.pid for outcome in of_processes}
        for outcome in of_processes:
            of_process = recordings.get(outcome.pid, [])
            if outcome.status is not Status.OK or broken[host.name, outcome.pid] < max(1, len(of_process)):
                yield _Line(outcome, of_process)
        for pid, of_process in recordings.items():
            if pid not in told and broken[host.name, pid] < len(of_process):
                outcome = Outcome(
                    host.name, Status.OK, "record", pid=pid, label=of_process[0].label, code="recorded"
                )
                yield _Line(outcome, of_process)


def _host_lines(host: HostFacts) -> Iterable[_Line]:
    """What is told of the host itself; the first line says what it took, and is never missing."""
    outcomes = [outcome for outcome in host.outcomes if outcome.pid is None]
    if not outcomes and (host.bytes_sent or host.bytes_received):
        outcomes = [Outcome(host.name, Status.OK, "", code="recorded")]
    for number, outcome in enumerate(outcomes):
        yield _Line(outcome, host=None if number else host)


def _used(recording: RecordingFacts) -> str:
    """ "async-profiler ctimer, 1,363 samples", "async-profiler alloc every 4 MiB, 1.3 GiB allocated" ..."""
    how = interval_in_words(recording.event, [recording.interval]) if recording.event != "cpu" else ""
    told = in_words(recording.event, recording.totals) or counted(recording.samples.taken, "samples")
    return f"{recording.engine} {recording.source} {how}".strip() + f", {told}"
