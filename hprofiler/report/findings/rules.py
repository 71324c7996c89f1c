"""What else a user should know: what is missing, who is unlike the others, what the JVMs do themselves."""

from __future__ import annotations

from collections import Counter

from hprofiler._flamegraph import WAIT_FRAMES
from hprofiler.base.text import without_pids
from hprofiler.model import Outcome, Status
from hprofiler.model.measures import counted
from hprofiler.report.comparison import Unlike
from hprofiler.report.facts import HostFacts, RecordingFacts
from hprofiler.report.findings.answers import shown
from hprofiler.report.findings.evidence import summed
from hprofiler.report.findings.subject import Finding, Subject
from hprofiler.report.outliers import sentence, who
from hprofiler.report.words import percent

_FEW = 100
_GARBAGE = 0.1
_COMPILERS = 0.15
_KERNEL = 0.4
_LEFT_OUT = "left out of sentences and tables, not of the graph"
_CORES = 0.05
# A host's share of the JVM's own work that explains why it is unlike the others.
_TIMES = 2.0
_POINTS = 0.05
_LONGEST_REASON = 200

_WORK = {"gc": "GC", "jit": "the JIT compilers", "kernel": "the kernel"}


def few_samples(subject: Subject) -> list[Finding]:
    """So few samples that shares say little."""
    samples = subject.samples
    if not 0 < samples < _FEW:
        return []
    points = 100 / samples**0.5
    only = f"Only {counted(samples, subject.sampled)} {'was' if samples == 1 else 'were'}"
    each = subject.sampled != "samples"
    taken = "recorded" if each else "taken of threads that are not idle" if subject.told.idle else "taken"
    more = "Record longer (-t)." if each else "Record longer (-t) or more often."
    return [Finding(f"{only} {taken}: shares may be off by {points:.0f} points. {more}")]


def kinds_of_wait(subject: Subject) -> list[Finding]:
    """What threads wait for, by the frames for it with which stacks of off-CPU time begin."""
    waits = [subject.methods[kind] for kind in WAIT_FRAMES if kind in subject.methods]
    if subject.event != "offcpu" or not waits:
        return []
    waits.sort(key=lambda one: -one.total_value)
    told = ", ".join(f"{one.name} {percent(one.total_value, subject.total)}" for one in waits)
    return [Finding(f"By kind of wait{subject.told.besides}: {told}.")]


def profiler(subject: Subject) -> list[Finding]:
    """How much of what was sampled is the profiler's own work."""
    own = subject.told.profiler
    if not own:
        return []
    share = percent(own, subject.cluster.total())
    return [Finding(f"The profiler’s own work, {share} of all {subject.measure.wider}, is {_LEFT_OUT}.")]


def missing(subject: Subject) -> list[Finding]:
    """Processes and hosts that are not in the profile, with the commonest reason."""
    every = subject.facts.hosts if subject.facts else ()
    hosts = [host for host in every if not host.idle and not host.needless]
    found = sum(host.processes for host in hosts)
    recorded = sum(host.recorded for host in hosts) - len(subject.problems)
    silent = [host for host in hosts if _failed(host)]
    what = []
    if recorded < found:
        what.append(f"{found - recorded} of {counted(found, 'processes')}")
    if silent:
        what.append(f"{len(silent)} of {counted(len(hosts), 'hosts')}")
    if not what:
        return []
    one = len(silent) + found - recorded == 1
    text = f"{' and '.join(what)} {'is' if one else 'are'} missing here{_because(subject)}."
    return [Finding(text)]


def _failed(host: HostFacts) -> bool:
    """Nobody knows what is there."""
    return not host.processes and any(
        one.status is Status.FAILED and one.pid is None for one in host.outcomes
    )


def _told_missing(host: HostFacts) -> list[Outcome]:
    """What failed there, and what is said of processes that are not recorded, were it a note.

    Where processes are lost with their host they say why, and the host has nothing to add.
    """
    recorded = {one.pid for one in host.recordings}
    lost = any(one.lost for one in host.outcomes)
    return [
        one
        for one in host.outcomes
        if (one.status is Status.FAILED and not (lost and one.pid is None))
        or (one.status is Status.DEGRADED and one.pid is not None and one.pid not in recorded)
    ]


def _because(subject: Subject) -> str:
    outcomes = [one for host in (subject.facts.hosts if subject.facts else ()) for one in _told_missing(host)]
    told = [one.reason for one in (*outcomes, *subject.problems) if one.reason]
    reasons = Counter(map(without_pids, told))
    if not reasons:
        return ""
    ((most, times),) = reasons.most_common(1)
    reason = most if times > 1 else told[0]
    others = f", and {counted(len(reasons) - 1, 'other reasons')}" if len(reasons) > 1 else ""
    often = f" ({times} times)" if times > 1 else ""
    return f": {_cut(reason)}{often}{others}"


def _cut(reason: str) -> str:
    """As many of its words as there is room for."""
    if len(reason) <= _LONGEST_REASON:
        return reason
    return f"{reason[: _LONGEST_REASON + 1].rsplit(' ', 1)[0][:_LONGEST_REASON]} …"


def unlike(subject: Subject) -> list[Finding]:
    """A host or process that is unlike the others, and why."""
    odd = subject.compared.odd_hosts
    if odd:
        work = _work_of(subject, odd[0])
        return [
            Finding(work or sentence(subject.compared), _method(odd[0]) if not work else None, odd[0].key)
        ]
    processes = subject.compared.odd_processes
    if not processes:
        return []
    return [Finding(sentence(subject.compared), _method(processes[0]), processes[0].key)]


def _method(one: Unlike) -> str | None:
    telling = one.telling
    return telling.name if telling and not telling.name.startswith("(rare ") else None


def _work_of(subject: Subject, odd: Unlike) -> str:
    """ "host7 spends 3.0 times the others' share in GC: 27 % against 9 %", where that is the difference."""
    works = subject.evidence.hosts if subject.evidence else {}
    if odd.key not in works or len(works) < 2:
        return ""
    others = summed(work for key, work in works.items() if key != odd.key)
    for kind, name in _WORK.items():
        here, there = works[odd.key].share(kind), others.share(kind)
        if here >= _TIMES * there and here - there >= max(_POINTS, odd.distance.moved / 2):
            times = f"{here / there:.1f} times the others’ share" if there else "time, unlike the others,"
            return f"{who(odd)} spends {times} in {name}: {percent(here, 1)} against {percent(there, 1)}."
    return ""


def broken(subject: Subject) -> list[Finding]:
    """Stacks of JVMs that perf could not follow."""
    recordings = {
        (host.name, one.pid): one
        for host in (subject.facts.hosts if subject.facts else ())
        for one in host.recordings
    }
    lost, off = 0.0, 0
    for host in subject.facts.hosts if subject.facts else ():
        for outcome in host.outcomes:
            recording = recordings.get((host.name, outcome.pid or -1))
            share = _broken_share(outcome, subject.event)
            if recording is not None and share:
                lost, off = lost + share * recording.samples.taken, off + 1
    taken = sum(one.samples.taken for one in recordings.values())
    if not off or lost < 0.02 * taken:
        return []
    text = f"About {100 * lost / taken:.0f}\u202f% of the stacks are broken: PreserveFramePointer is off"
    return [Finding(f"{text} on {counted(off, 'processes')}.")]


def _broken_share(outcome: Outcome, event: str) -> float:
    """The share of the event's stacks that the agent found broken in a JVM without frame pointers, 0 to 1."""
    for note in outcome.every_note:
        share = note.parameters.get("share")
        if note.code == "no-frame-pointers" and note.parameters.get("event") == event and share:
            return min(float(share), 1.0)
    return 0.0


def garbage(subject: Subject) -> list[Finding]:
    return _own_work(subject, "gc", _GARBAGE, "garbage collection takes {share} of CPU time.")


def compilers(subject: Subject) -> list[Finding]:
    text = "the JIT compilers take {share} of CPU time, as while JVMs warm up."
    return _own_work(subject, "jit", _COMPILERS, text)


def kernel(subject: Subject) -> list[Finding]:
    """Most time in the kernel, and who calls it."""
    found = _own_work(subject, "kernel", _KERNEL, "kernel code takes {share} of CPU time{caller}.")
    if not found:
        return []
    # Of what pruning put together nobody knows who called it.
    ((caller, cost),) = subject.walk.kernel_callers.most_common(1) or [("", 0)]
    named = caller and 2 * cost > sum(subject.walk.kernel_callers.values())
    called = f", most of it called by {shown(caller)}" if named else ""
    before, after = found[0].text.split("{caller}")
    at = len(before) + len(called) - len(shown(caller))
    return [Finding(f"{before}{called}{after}", caller, at=at) if named else Finding(before + after)]


def _own_work(subject: Subject, kind: str, least: float, text: str) -> list[Finding]:
    if subject.evidence is None:
        return []
    share = subject.evidence.cluster().share(kind)
    if share == 0 or subject.surely(share) < least:
        return []
    told = text.replace("{share}", percent(share, 1))
    return [Finding(told[:1].upper() + told[1:])]


def idle_threads(subject: Subject) -> list[Finding]:
    """How much of the time no sentence and no table is about, and of about how many threads that was."""
    every, busy, left = subject.cluster, subject.told.profile, subject.told.idle
    if not left:
        return []
    recordings = [one for host in (subject.facts.hosts if subject.facts else ()) for one in host.recordings]
    units = [unit for _, unit in every.values]
    threads = ""
    if "nanoseconds" in units and (seconds := _seconds(recordings)[0]):
        value, each = units.index("nanoseconds"), 1e9 * seconds / len(recordings)
        idle_ones, all_ones = ((every.total(value) - busy.total(value)) / each, every.total(value) / each)
        threads = f": about {idle_ones:.0f} of {all_ones:.0f} threads"
    share = percent(left, every.total())
    return [Finding(f"Idle threads, {share} of all {subject.measure.wider}, are {_LEFT_OUT}{threads}.")]


def idle(subject: Subject) -> list[Finding]:
    """Processes that hardly use the CPU."""
    recordings = [one for host in (subject.facts.hosts if subject.facts else ()) for one in host.recordings]
    seconds, cpu = _seconds(recordings)
    if subject.event != "cpu" or not seconds or not cpu:
        return []
    if any(one.cpu_seconds > _CORES * one.seconds for one in recordings):
        return []
    average = " on average" if len(recordings) > 1 else ""
    text = f"Mostly idle: {counted(len(recordings), 'processes')} used {cpu / seconds:.2g} CPUs{average}."
    return [Finding(f"{text} What they wait for: -e offcpu.")]


def _seconds(recordings: list[RecordingFacts]) -> tuple[float, float]:
    return sum(one.seconds for one in recordings), sum(one.cpu_seconds for one in recordings)
