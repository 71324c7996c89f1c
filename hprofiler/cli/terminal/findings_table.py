"""The table of `hprofiler doctor`: hosts and findings, the worst first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, TextIO

from hprofiler.agent.messages import CheckedProcess, Finding
from hprofiler.base.text import some
from hprofiler.cli.terminal.lines import print_table, say
from hprofiler.collect.checking import HostChecked, kinds
from hprofiler.model import VAGUE_CODES, Status
from hprofiler.model.measures import counted

SEVERITIES = ("error", "warning", "info", "ok")
WHO_SHOWN = 3
IGNORED_SHOWN = 10

_SEVERITY = {
    Status.FAILED: "error",
    Status.DEGRADED: "warning",
    Status.IDLE: "info",
    Status.OK: "ok",
}
_COLOURS = {"error": "bold red", "warning": "yellow", "info": "cyan", "ok": "green"}


class _Line(NamedTuple):
    """A finding and its processes; none if it concerns the host."""

    finding: Finding
    who: tuple[str, ...]


def print_findings(checked: Sequence[HostChecked], out: TextIO) -> None:
    """Print hosts and findings, the worst first; in colour on a terminal without NO_COLOR."""
    by_host = [(host, sorted(_lines(host), key=_rank)) for host in checked]
    for host, lines in sorted(by_host, key=lambda pair: _rank(pair[1][0]) if pair[1] else len(SEVERITIES)):
        say(f"{host.host.name}: ", _summary([host]), out)
        rows = [row for line in lines for row in _rows(line)]
        if rows:
            print_table(rows, out=out, indent=2, styles=_COLOURS)
    if len(checked) > 1:
        print(f"{len(checked)} hosts: {_summary(checked)}", file=out)


def print_canaries(checked: Sequence[HostChecked], asked: bool, out: TextIO) -> None:
    """Print which kinds of JVM would have a canary, or could."""
    found = ", ".join(f"{count} of {kind}" for kind, count in kinds(checked).most_common())
    if found and asked:
        say("canary: ", f"first, one process of each kind would be recorded for 2 s: {found}", out)
    elif found:
        say("canary: ", f"no canary; --canary first records one process of each kind: {found}", out)


def _rows(line: _Line) -> Iterator[tuple[str, str, str]]:
    found = line.finding
    who = f"{some(line.who, WHO_SHOWN)}: " if line.who else ""
    yield found.severity, found.about, f"{who}{found.text}"
    if found.remedy:
        yield "", "", f"→ {found.remedy}"


def _summary(checked: Sequence[HostChecked]) -> str:
    verdicts = [one.status for host in checked for one in host.verdicts]
    if not verdicts:
        return "nothing would be recorded"
    good, part = verdicts.count(Status.OK), verdicts.count(Status.DEGRADED)
    words = f"{good} of {counted(len(verdicts), 'processes')} would be recorded as asked"
    words += f", {part} with a warning" if part else ""
    return words + (f", {len(verdicts) - good - part} not" if good + part < len(verdicts) else "")


def _rank(line: _Line) -> int:
    return SEVERITIES.index(line.finding.severity)


def _lines(host: HostChecked) -> list[_Line]:
    lines = [
        _Line(Finding(_SEVERITY[line.status], "host", line.reason, line.remedy), ()) for line in host.outcomes
    ]
    alike: dict[object, tuple[Finding, list[str]]] = {}
    for process, verdict in zip(host.processes, host.verdicts, strict=False):
        for key, finding in _of_process(verdict):
            alike.setdefault(key, (finding, []))[1].append(f"{process.label} (pid {process.pid})")
    lines += [_Line(finding, tuple(who)) for finding, who in alike.values()]
    lines += [_Line(finding, ()) for finding in host.findings]
    told = 0 if host.processes else 1  # the line of an idle host shows the first finding
    for one in host.ignored[told:IGNORED_SHOWN]:
        lines.append(_Line(Finding("info", "find", f"left out: pid {one.pid} ({one.reason})"), ()))
    return lines


def _of_process(verdict: CheckedProcess) -> Iterator[tuple[object, Finding]]:
    """Verdict and findings of a process, each with a key that is the same for processes of one line.

    The key of a verdict has its codes. Vague codes have many causes, so there the text is the key.
    """
    finding = Finding(_SEVERITY[verdict.status], "run", _told(verdict), verdict.remedy)
    codes = tuple(note.code for note in verdict.notes) or (verdict.code,)
    known = (verdict.status, verdict.engine, tuple(verdict.sources.items()), codes)
    yield (known if VAGUE_CODES.isdisjoint(codes) else finding), finding
    for finding in verdict.findings:
        yield finding, finding


def _told(verdict: CheckedProcess) -> str:
    """Engine and sources of a process, and the reason if they differ from the options."""
    if verdict.status is Status.FAILED:
        return verdict.reason
    sources = ", ".join(
        event if event == source else f"{event} ({source})" for event, source in verdict.sources.items()
    )
    reason = f"; {verdict.reason}" if verdict.reason else ""
    return f"{sources} by {verdict.engine}{reason}"
