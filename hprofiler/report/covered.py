"""How much of what was asked for a picture is of: each says so, wherever it is taken."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hprofiler.model import Outcome
from hprofiler.model.measures import counted, interval_in_words
from hprofiler.report.facts import HostFacts, RecordingFacts, RunFacts
from hprofiler.report.words import coverage, cut_short, duration_in_words, interrupted


def run_covered(facts: RunFacts, unreadable: int = 0) -> str:
    """ "37 of 40 processes on 9 of 10 hosts, interrupted"; see `words.coverage`."""
    return coverage(facts, unreadable)[0] + interrupted(facts)


def host_covered(facts: RunFacts, host: HostFacts, problems: Sequence[Outcome]) -> str:
    """ "3 of 4 processes, interrupted"."""
    unreadable = sum(1 for problem in problems if problem.host == host.name)
    recorded = f"{len(host.recordings) - unreadable} of {counted(host.processes, 'processes')}"
    return recorded + cut_short(_alone(facts, host)) + interrupted(facts)


def sampled(facts: RunFacts) -> str:
    """How the event was sampled: "300 Hz for 60 s", "every 512 KiB for 24 of 60 s" where that ended early."""
    recordings = [one for host in facts.hosts for one in host.recordings]
    intervals = (one.interval for one in recordings)
    how = f"{facts.frequency} Hz" if facts.event == "cpu" else interval_in_words(facts.event, intervals)
    longest = max((one.seconds for one in recordings), default=0.0)
    return f"{how} for {duration_in_words(longest, facts.duration)}".strip()


def host_sampled(facts: RunFacts, host: HostFacts) -> str:
    """The same of one host."""
    return sampled(_alone(facts, host))


def recorded_for(facts: RunFacts, recording: RecordingFacts) -> str:
    """ "24 of 60 s" of a process that was not recorded for all of the time; else ""."""
    told = duration_in_words(recording.seconds, facts.duration)
    return told if " of " in told else ""


def _alone(facts: RunFacts, host: HostFacts) -> RunFacts:
    return replace(facts, hosts=(host,))
