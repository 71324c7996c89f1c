"""How much of what was asked for was recorded, and how it was sampled, in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from heapq import nlargest
from typing import NamedTuple

from hprofiler.analysis.facts import RunFacts
from hprofiler.model import HostRecord, Outcome, Recording
from hprofiler.model.measures import counted, duration, interval_in_words, number_and_unit
from hprofiler.runfolder import Coverage

_SHORT_SHOWN = 3
_OTHERS_SHOWN = 3
# A recording of at least this part of the time counts as complete: clocks and stops are not exact.
_ALL_OF_IT = 0.98
_IN_MINUTES = 120


def coverage_of_host(host: HostRecord, problems: Sequence[Outcome]) -> Coverage:
    """Coverage of an event on one host; `problems` are the event's stored profiles that cannot be used."""
    return Coverage.of((host,), 1, sum(problem.host == host.name for problem in problems))


def host_coverage(facts: RunFacts, host: HostRecord, problems: Sequence[Outcome]) -> str:
    """ "3 of 4 processes, interrupted"."""
    processes = coverage_of_host(host, problems).processes
    recorded = f"{processes.recorded} of {counted(processes.found, 'processes')}"
    return recorded + cut_short(_alone(facts, host)) + interrupted(facts)


def sampled(facts: RunFacts) -> str:
    """How the event was sampled: "300 Hz for 60 s", "every 512 KiB for 24 of 60 s" where that ended early."""
    return _sampled(facts, facts.seconds)


def times_in_words(facts: RunFacts) -> list[str]:
    """How exactly it is known when samples were taken; nothing where it is not known."""
    widths = [one.times.width for host in facts.hosts for one in host.recordings if one.times]
    if not widths:
        return []
    words = [f"times of samples in steps of {duration(max(widths) / 1e6)}", clock_in_words(facts.hosts)]
    return [one for one in words if one]


def clock_in_words(hosts: Sequence[HostRecord]) -> str:
    """ "hosts' clocks agree within 0.4 ms", with the clock that is farthest off; "" of fewer than two."""
    clocks = [(host.clock, host.name) for host in hosts if host.clock is not None and host.recordings]
    if len(clocks) < 2:
        return ""
    # Each is known against this machine's; the doubts of two add up.
    within = sum(nlargest(2, (clock.uncertainty for clock, _ in clocks)))
    ahead, name = max(((clock.offset, name) for clock, name in clocks), key=lambda one: abs(one[0]))
    if not ahead:
        return f"hosts' clocks agree within {duration(within)}"
    how = f"{duration(abs(ahead))} {'ahead' if ahead > 0 else 'behind'}"
    return f"hosts' times are put together within {duration(within)}; the clock of {name} is {how}"


def host_sampled(facts: RunFacts, host: HostRecord) -> str:
    """The same of one host, from when its first process was recorded."""
    ended = max((one.ended for one in host.recordings), default=0.0)
    joined = min((one.joined for one in host.recordings), default=0.0)
    return _sampled(_alone(facts, host), ended - joined)


def _sampled(facts: RunFacts, seconds: float) -> str:
    how = (
        f"{facts.record.sampling.frequency} Hz"
        if facts.event == "cpu"
        else interval_in_words(facts.event, (one.interval for one in facts.recordings))
    )
    return f"{how} for {duration_in_words(seconds, facts.duration)}".strip()


def recorded_for(facts: RunFacts, recording: Recording) -> str:
    """ "24 of 60 s" of a process that was not recorded for all of the time; else ""."""
    is_short = 0 < recording.seconds < facts.duration * _ALL_OF_IT
    return part_of_time(recording.seconds, facts.duration) if is_short else ""


def _alone(facts: RunFacts, host: HostRecord) -> RunFacts:
    return replace(facts, hosts=(host,))


class CoverageText(NamedTuple):
    """How much was recorded: "37 of 40 processes on 9 of 10 hosts".

    `complete` says whether that is all, if it is of one event. `interrupted` is the text, and whether the run
    was interrupted. `busy` hosts are those that matter: neither idle nor needless.
    """

    text: str
    complete: bool
    interrupted: str
    counts: Coverage
    busy: int


def coverage(facts: RunFacts, unreadable: int = 0) -> CoverageText:
    """ "37 of 40 processes on 9 of 10 hosts, 2 idle, 1 without a shell", and whether that is all there was.

    "no process matches on 3 hosts" where all were searched, and had none.
    Idle hosts count as complete, and so do containers without a shell that were not asked for by name.
    `unreadable` processes do not count as recorded. Hosts that were recorded for less time than asked for are
    named with their time.
    """
    known = Coverage.of(facts.hosts, 1, unreadable)
    hosts, processes = known.hosts, known.processes
    needless = sum(host.needless for host in facts.hosts)
    busy = hosts.all - hosts.idle - needless
    preposition, places = ("in", "containers") if facts.inside else ("on", "hosts")
    if hosts.idle and not busy:
        text = f"no process matches {preposition} {counted(hosts.idle, places)}"
    else:
        text = f"{processes.recorded} of {counted(processes.found, 'processes')}"
        text += f" {preposition} {hosts.recorded} of {counted(busy, places)}"
        text += f", {hosts.idle} idle" if hosts.idle else ""
    text += f", {needless} without a shell" if needless else ""
    text += cut_short(facts)
    return CoverageText(text, known.complete, text + interrupted(facts), known, busy)


def others_missing(facts: RunFacts, found: int) -> str:
    """ "heep: not recorded, wall: 1 of 2 processes" of other events, of which less was recorded."""
    less = {event: n for event, n in facts.recorded.items() if n < facts.recorded.get(facts.event, 0)}
    of_all = f"of {counted(found, 'processes')}"
    parts = [f"{event}: {f'{n} {of_all}' if n else 'not recorded'}" for event, n in less.items()]
    more = len(parts) - _OTHERS_SHOWN
    return ", ".join(parts[:_OTHERS_SHOWN]) + (f", {counted(more, 'more events')}" if more > 0 else "")


def interrupted(facts: RunFacts) -> str:
    return ", cut off" if facts.unfinished else ", interrupted" if facts.record.interrupted else ""


def cut_short(facts: RunFacts) -> str:
    """ ", n3: 24 of 60 s" of hosts that were not recorded for all of the time."""
    parts: list[str] = []
    for host in facts.hosts:
        if host.short:
            who = host.name if len(host.short) == len(host.recorded) else host.short[0].where
            least = min(one.seconds or 0.0 for one in host.short)
            parts.append(f", {who}: {part_of_time(least, facts.duration)}")
    more = len(parts) - _SHORT_SHOWN
    return "".join(parts[:_SHORT_SHOWN]) + (f", {more} more cut short" if more > 0 else "")


def duration_in_words(seconds: float, asked: float) -> str:
    """ "60 s", or "24 of 60 s" where less was recorded than was asked for; 0 seconds means unknown."""
    if 0 < seconds < asked * _ALL_OF_IT:
        return part_of_time(seconds, asked)
    return duration(asked)


def part_of_time(seconds: float, asked: float) -> str:
    """ "24 of 60 s", "3.2 of 10.0 min", "24 s of 10.0 min"; never the whole duration."""
    part, whole = number_and_unit(seconds), number_and_unit(asked)
    if asked < _IN_MINUTES or part == whole:
        rough = asked < _IN_MINUTES and f"{seconds:.3g}" != f"{asked:.3g}"
        return f"{seconds:.{3 if rough else 6}g} of {asked:.6g} s"
    return f"{part[0] if part[1] == whole[1] else ' '.join(part)} of {' '.join(whole)}"
