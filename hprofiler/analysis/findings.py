"""What stands out, in sentences with figures. A rule speaks only where it matters, and beyond chance.

A rule is a function here and a place in `RULES`, below; it takes what is known of an event and gives its
findings, or none.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

from hprofiler._flamegraph import Profile
from hprofiler.analysis.attribution import Attribution, Method
from hprofiler.analysis.coverage import CoverageText
from hprofiler.analysis.facts import RunFacts
from hprofiler.analysis.faults import Faults
from hprofiler.analysis.outliers import Compared, Unlike, shares_of, who
from hprofiler.analysis.subject import WORTH_A_HEADLINE, Finding, Part, Subject, Work, says, share_of_work
from hprofiler.analysis.trust import NO_FRAME_POINTERS, broken_share
from hprofiler.analysis.waits import KINDS, LOCKS, RUNNING
from hprofiler.analysis.words import percent, short_name
from hprofiler.analysis.work import EventWork
from hprofiler.model import VAGUE_CODES, HostRecord, Outcome, Recording, Status, number_of
from hprofiler.model.event_names import is_method
from hprofiler.model.measures import CPU_VALUES, counted, duration, measure_of

# More are not read. The first is the answer; the others are in the order of `RULES`, the most important
# first.
MOST = 5
# Names come from hosts; a sentence stays one.
_LONGEST = 500
# With fewer samples no share is worth a headline.
_FEWEST = 10
# So many methods are alike if each takes this part of the hottest's share, and chance explains the rest.
_SEVERAL = 3
_ALIKE = 0.8
_ALIKE_SIGMAS = 2.0
_FAMILY = 0.1
_DOER = 0.1
_LONGEST_NAME = 200
# Where stacks end in a class: who is behind it.
_DOES = {"alloc": "Allocated most by", "live": "Allocated most by"}
_GIL = {
    "[holds the GIL]": "of their time with the GIL",
    "[runs without the GIL]": "running without it",
    "[waiting]": "waiting",
}
_FEW = 100
# Compiled code of a JVM that did not list it.
_NAMELESS = re.compile(r"\[perf-\d+\.map\]$")
_LOCKS_NAMED = 3
_GARBAGE = 0.1
_COMPILERS = 0.15
# The least part that the JVMs' own work has where it is the answer.
_LEADS = 0.3
_KERNEL = 0.4
_LEFT_OUT = "left out of sentences and tables, not of the graph"
# A host's share of the JVM's own work that explains why it is unlike the others.
_TIMES = 2.0
_POINTS = 0.05
_LONGEST_REASON = 200
_LARGEST_INTERVAL = 1 << 40
_ALLOCATED = measure_of("alloc").column

# The JVMs' own work that may be the answer, by code.
OWN_WORK = {"gc": "garbage collection", "jit": "the JIT compilers, as while JVMs warm up"}
_WORK = {"gc": "GC", "jit": "the JIT compilers", "kernel": "the kernel"}


def findings(
    facts: RunFacts,
    cluster: Profile,
    attribution: Attribution,
    compared: Compared,
    work: EventWork,
    coverage: CoverageText,
    problems: Sequence[Outcome],
    faults: Faults,
) -> list[Finding]:
    """What stands out in an event that has samples: the answer first, then at most `MOST` - 1 more.

    If the answer is the JVMs' own work, the method that takes most is next.

    `cluster` is all processes' profile, the value shown first; `problems` are stored profiles that could
    not be used; `faults` gets the rules that failed.
    """
    subject = Subject(facts, cluster, compared, work, coverage, problems, attribution)
    found = [*leading_work(subject), answer(subject)]
    for rule in RULES:
        with faults.within(f"the finding {rule.__name__.replace('_', ' ')} of {facts.event}"):
            found += rule(subject)
    return [_bounded(one) for one in chosen(found)]


def chosen(found: Sequence[Finding]) -> list[Finding]:
    """The first `MOST`, and what is wrong with them."""
    caveats = [one for one in found if one.caveat]
    return [one for one in found if not one.caveat][:MOST] + caveats


def findings_of_file(attribution: Attribution) -> list[Finding]:
    """What stands out in one profile with samples, of which nothing else is known."""
    subject = Subject(None, attribution.original, Compared(), EventWork(), None, (), attribution)
    if not subject.methods:
        return [says("no-frames", "No stack has a frame.")]
    found = [
        *skipped_stubs(subject),
        answer(subject),
        *throttled_samples(subject),
        *kinds_of_wait(subject),
        *idle_threads(subject),
    ]
    found += [*families(subject), *hottest_itself(subject), *left_out_broken(subject)]
    return [_bounded(one) for one in found]


def _bounded(finding: Finding) -> Finding:
    if len(finding.text) <= _LONGEST:
        return finding
    room, parts = _LONGEST, []
    for kind, text in finding.parts:
        if len(text) > room:
            parts.append((kind, f"{text[:room]}…"))
            break
        parts.append((kind, text))
        room -= len(text)
    return replace(finding, parts=tuple(parts))


def answer(subject: Subject) -> Finding:
    """The method of the job's own that takes most, and on what; else the hottest method."""
    owner, hottest = subject.owner, subject.hottest
    if subject.attribution.only_profiler:
        text = f"Nothing but the profiler’s own work was sampled{subject.attribution.besides}."
        return says("only-profiler", text)
    if owner is None and _too_few(subject):
        what = "class" if subject.of_classes else "caller" if is_method(subject.event) else "method"
        text = f"Too few {subject.sampled} for shares: the hottest {what} is "
        if hottest.wait:
            text = f"Too few {subject.sampled} for shares: most time is spent {hottest.wait.doing.spent} "
        return about("too-few-samples", hottest, text, ".")
    if subject.attribution.self_only:
        text = "Too many stacks are broken for totals. The method with the highest self cost is "
        share = _share(hottest.self_value, subject)
        if _NAMELESS.match(hottest.name):
            text = "Too many stacks are broken for totals, and most code has no names: "
            return says("self-only", text, share, f"{_of(subject)} is in Java methods without names.")
        return about("self-only", hottest, text, ": ", share, ".")
    if owner is not None:
        least = () if owner.method.known else ("At least ",)
        share = _share(owner.total, subject)
        points = f", of which {100 * owner.cost / subject.total:.1f} points {owner.family.points}."
        name = owner.method.name
        takes = f"{_of(subject)} {_verb(subject)} "
        return says("own-method", *least, share, takes, _name(name), points, method=name, with_calls=True)
    share = _share(hottest.self_value, subject)
    alike = _alike(subject)
    if alike >= _SEVERAL and hottest.self_value >= WORTH_A_HEADLINE * subject.total:
        what = "waits" if hottest.wait else "classes" if subject.of_classes else "methods"
        such_as = f", such as {hottest.wait.doing.spent} " if hottest.wait else ", such as "
        return about("alike", hottest, f"{alike} {what} are alike{such_as}", ": ", share, f"{_of(subject)}.")
    if hottest.self_value < WORTH_A_HEADLINE * subject.total:
        flat = "No method stands out: the hottest, "
        if hottest.wait:
            flat = f"No wait stands out: the longest, {hottest.wait.doing.spent} "
        return about("flat", hottest, flat, ", takes ", share, f"{_of(subject)}.")
    takes = f"{_of(subject)} {_verb(subject)} "
    if hottest.wait:
        takes = f"{_of(subject)} is spent {hottest.wait.doing.spent} "
    after = f"{_for_whom(subject)}."
    row = hottest.name if hottest.wait else None
    return says("hottest", share, takes, _name(hottest.method), after, method=hottest.method, row=row)


def leading_work(subject: Subject) -> list[Finding]:
    """Garbage collection or the JIT compilers, where no method takes as much."""
    if subject.attribution.self_only:
        return []
    work = sum(subject.work_of_hosts.values(), Work())
    kind = max(OWN_WORK, key=lambda one: work[one])
    share, owner = share_of_work(work, kind), subject.owner
    method = owner.total if owner else subject.hottest.self_value
    if subject.surely(share) < _LEADS or share * subject.total < method:
        return []
    part: Part = ("share", percent(share, 1))
    return [says(kind, part, f"{_of(subject)} is spent in {OWN_WORK[kind]}.")]


def _too_few(subject: Subject) -> bool:
    """So few samples that no share is worth a headline: the hottest method's may be anything."""
    if subject.samples < _FEWEST:
        return subject.samples > 0
    return subject.samples < _FEW and subject.surely(subject.hottest.self_value / subject.total) <= 0


def _alike(subject: Subject) -> int:
    """How many methods take as much as the hottest, as far as the samples tell."""
    most = subject.hottest.self_value / subject.total
    chance = _ALIKE_SIGMAS * math.sqrt(2 * most / subject.samples) if subject.samples else 0.0
    least = subject.total * max(_ALIKE * most, most - chance)
    sleeps = subject.hottest.is_sleep
    return sum(one.self_value >= least for one in subject.methods.values() if one.is_sleep == sleeps)


def _for_whom(subject: Subject) -> str:
    """ ", most of it for Job.run", where the hottest method serves others."""
    owner = subject.walk.owner_of(subject.hottest) if subject.of_doing else ""
    if owner in ("", subject.hottest.name) or subject.of_classes:
        return ""
    return f", most of it for {shown(owner)}"


def who_does_it(subject: Subject) -> list[Finding]:
    """The method of the job's own that allocates most, where the answer is a class."""
    if subject.event not in _DOES or subject.owner is not None or not subject.walk.owners:
        return []
    if subject.attribution.self_only:
        return []
    ((name, cost),) = subject.walk.owners.most_common(1)
    share = cost / subject.total
    if subject.surely(share) < _DOER:
        return []
    return [
        about("done-most-by", subject.methods[name], f"{_DOES[subject.event]} ", f": {percent(share, 1)}.")
    ]


def families(subject: Subject) -> list[Finding]:
    """Well-known code that takes much of the whole, and that the answer does not name."""
    if not subject.of_doing or subject.attribution.self_only:
        return []
    named = subject.owner.family if subject.owner else None
    for family, cost in subject.walk.families.most_common(2):
        if family != named and subject.surely(cost / subject.total) >= _FAMILY:
            share = percent(cost, subject.total)
            return [says("known-code", f"{share}{_of(subject)} goes to {family.doing}.")]
    return []


def hottest_itself(subject: Subject) -> list[Finding]:
    """The hottest method, where the answer names another."""
    hottest = subject.hottest
    share = hottest.self_value / subject.total
    named = subject.owner is None or subject.owner.method.name == hottest.name
    if named or subject.surely(share) < WORTH_A_HEADLINE:
        return []
    what = "hottest class" if subject.of_classes else "method with the highest self cost"
    return [about("hottest-itself", hottest, f"The {what} is ", f": {percent(share, 1)}.")]


def about(code: str, method: Method, before: str, *after: str | Part) -> Finding:
    """A finding whose sentence has the method's name in it."""
    row = method.name if method.wait else None
    return says(code, before, _name(method.method), *after, method=method.method, row=row)


def in_sentence(method: Method) -> str:
    """A method as a part of a sentence: "Job.run", "sleeping in Job.run"."""
    return f"{method.wait.doing.spent} {shown(method.method)}" if method.wait else shown(method.name)


def _name(method: str) -> Part:
    return ("method", shown(method))


def _share(cost: int, subject: Subject) -> Part:
    return ("share", percent(cost, subject.total))


def shown(name: str) -> str:
    """The name without its package, shortened."""
    short = short_name(name)
    return short if len(short) <= _LONGEST_NAME else f"{short[:_LONGEST_NAME]}…"


def _of(subject: Subject) -> str:
    return f" of {subject.attribution.share_of}" if subject.facts else ""


def _verb(subject: Subject) -> str:
    if subject.facts:
        return subject.measure.verb
    return "goes to" if subject.cluster.values[0][1] == "bytes" else "is spent in"


def skipped_stubs(subject: Subject) -> list[Finding]:
    """CPU samples of a JDK that leaves out stubs: shares of all else are too large."""
    if not subject.cluster.skips_stubs or subject.event not in CPU_VALUES:
        return []
    text = "Array copies, hashes and other stubs are missing: all shares are too large."
    return [says("skipped-stubs", text)]


def throttled_samples(subject: Subject) -> list[Finding]:
    """Allocated bytes of a JDK that dropped most samples."""
    points = subject.cluster.alloc_share_error
    if not points or subject.cluster.values[0] != _ALLOCATED:
        return []
    text = f"Shares may be off by {points} points: the JDK dropped most allocation samples."
    return [says("throttled-samples", text)]


def few_samples(subject: Subject) -> list[Finding]:
    """So few samples that shares say little."""
    samples = subject.samples
    if not 0 < samples < _FEW:
        return []
    points = 100 / samples**0.5
    only = f"Only {counted(samples, subject.sampled)} {'was' if samples == 1 else 'were'}"
    each = subject.sampled != "samples"
    taken = (
        "recorded" if each else "taken of threads that are not idle" if subject.attribution.idle else "taken"
    )
    more = "Record longer (-t)." if each else "Record longer (-t) or more often."
    return [says("few-samples", f"{only} {taken}: shares may be off by {points:.0f} points. {more}")]


def kinds_of_wait(subject: Subject) -> list[Finding]:
    """What threads do and wait for, by kind; of waits for locks the locks' classes."""
    attribution = subject.attribution
    if attribution.event in LOCKS:
        classes = [one for one in attribution.original.top(_LOCKS_NAMED) if one.self_value]
        locks = ", ".join(f"{shown(one.name)} {percent(one.self_value, subject.total)}" for one in classes)
        return [says("locks", f"By lock: {locks}.")] if classes else []
    kinds = attribution.kinds
    if not kinds.keys() - {RUNNING}:
        return []
    shares = ", ".join(f"{KINDS[kind]} {percent(value, subject.total)}" for kind, value in kinds.items())
    return [says("kinds-of-wait", f"By kind of wait{attribution.besides}: {shares}.")]


def gil(subject: Subject) -> list[Finding]:
    """What Python's threads did, by the frames for it below the threads."""
    times = [subject.methods[frame].total_value if frame in subject.methods else 0 for frame in _GIL]
    if subject.event != "wall" or not sum(times):
        return []
    shares = [f"{percent(time, sum(times))} {what}" for time, what in zip(times, _GIL.values(), strict=True)]
    return [says("gil", f"Python’s threads spend {', '.join(shares)}.")]


def profiler(subject: Subject) -> list[Finding]:
    """How much of what was sampled is the profiler's own work."""
    own = subject.attribution.profiler
    if not own:
        return []
    share = percent(own, subject.cluster.total())
    text = f"The profiler’s own work is {share} of all {subject.measure.wider}"
    return [says("profiler", f"{text}: sentences and tables do not name it.")]


def missing(subject: Subject) -> list[Finding]:
    """Processes and hosts that are not in the profile, with the commonest reason."""
    if subject.coverage is None:
        return []
    processes = subject.coverage.counts.processes
    recorded, found = processes.recorded, processes.found
    silent = [host for host in subject.hosts if _failed(host) and not host.idle]
    what = []
    if recorded < found:
        what.append(f"{found - recorded} of {counted(found, 'processes')}")
    if silent:
        what.append(f"{len(silent)} of {counted(subject.coverage.busy, 'hosts')}")
    if not what:
        return []
    one = len(silent) + found - recorded == 1
    text = f"{' and '.join(what)} {'is' if one else 'are'} missing here{_because(subject)}."
    return [says("missing", text)]


def _failed(host: HostRecord) -> bool:
    """It is not known which processes it has."""
    return not host.processes and any(
        one.status is Status.FAILED and one.pid is None for one in host.outcomes
    )


def _missing(host: HostRecord) -> list[Outcome]:
    """Failures, and notes on processes that were not recorded.

    If processes were lost with their host, their outcomes have the reason, and the host's own is left out.
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
    outcomes = [one for host in subject.hosts for one in _missing(host)]
    reasons = [one for one in (*outcomes, *subject.problems) if one.reason]
    if not reasons:
        return ""
    kinds = [number if one.code in VAGUE_CODES else one.code for number, one in enumerate(reasons)]
    ((most, times),) = Counter(kinds).most_common(1)
    reason = reasons[kinds.index(most)].reason
    others = f", and {counted(len(set(kinds)) - 1, 'other reasons')}" if len(set(kinds)) > 1 else ""
    same = len({one.reason for one, kind in zip(reasons, kinds, strict=True) if kind == most}) == 1
    often = "" if times == 1 else f" ({times} times)" if same else f", and {times - 1} alike"
    if len(reason) > _LONGEST_REASON:  # as many of its words as there is room for
        reason = f"{reason[: _LONGEST_REASON + 1].rsplit(' ', 1)[0][:_LONGEST_REASON]} …"
    return f": {reason}{often}{others}"


def unlike(subject: Subject) -> list[Finding]:
    """A host or process that is unlike the others, and why."""
    hosts, processes = subject.compared.odd_hosts, subject.compared.odd_processes
    odd = hosts or processes
    if not odd:
        return []
    first, code = odd[0], "unlike-host" if hosts else "unlike-process"
    work = _work_of(subject, first) if hosts else ""
    if work:
        return [says(code, work, host=first.host)]
    others = "the others" if hosts else "the other processes"
    before = f"{who(first)} is unlike {others}: "
    if len(odd) > 1:
        more = counted(len(odd) - 1, "more hosts" if hosts else "more processes")
        before = f"{who(first)} and {more} are unlike {others}; the first: "
    most = first.most_different
    if most is None:
        return []
    name, after = most.name, f" {shares_of(most)}."
    if name.startswith("(rare "):
        return [says(code, f"{before}{shown(name)}{after}", host=first.host)]
    wait = first.waits.get(name)
    if wait is not None:
        before += f"{wait.doing.spent} "
        return [says(code, before, _name(wait.method), after, method=wait.method, host=first.host, row=name)]
    return [says(code, before, _name(name), after, method=name, host=first.host)]


def _work_of(subject: Subject, odd: Unlike) -> str:
    """ "host7 spends 3.0 times the others' share in GC: 27 % against 9 %", where that is the difference."""
    works = subject.work_of_hosts
    if odd.host not in works or len(works) < 2:
        return ""
    others = sum((work for key, work in works.items() if key != odd.host), Work())
    for kind, name in _WORK.items():
        here, there = share_of_work(works[odd.host], kind), share_of_work(others, kind)
        if here >= _TIMES * there and here - there >= max(_POINTS, odd.distance.moved / 2):
            times = f"{here / there:.1f} times the others’ share" if there else "time, unlike the others,"
            return f"{who(odd)} spends {times} in {name}: {percent(here, 1)} against {percent(there, 1)}."
    return ""


def broken(subject: Subject) -> list[Finding]:
    """Stacks that perf, or async-profiler, could not follow."""
    recordings = {(host.name, one.pid): one for host in subject.hosts for one in host.recordings}
    lost, off, others = 0.0, 0, 0
    for host in subject.hosts:
        for outcome in host.outcomes:
            recording = recordings.get((host.name, outcome.pid or -1))
            share, code = broken_share(outcome, subject.event)
            if recording is not None and share:
                lost += share * recording.samples.taken
                off += code == NO_FRAME_POINTERS
                others += code != NO_FRAME_POINTERS
    taken = sum(one.samples.taken for one in recordings.values())
    if not off + others or lost < 0.02 * taken:
        return []
    why = []
    if off:
        why.append(f"PreserveFramePointer is off on {counted(off, 'processes')}")
    if others:
        why.append(
            f"{counted(others, 'processes')} {'has' if others == 1 else 'have'} code without frame pointers"
        )
    text = f"About {100 * lost / taken:.0f}\u202f% of the stacks are broken: {'; '.join(why)}."
    return [says("broken-stacks", text, caveat=True)]


def left_out_broken(subject: Subject) -> list[Finding]:
    """How much of what was sampled has stacks that are not trusted, and is left out."""
    lost = subject.attribution.broken
    if not lost or subject.attribution.self_only:
        return []
    share = percent(lost, subject.cluster.total())
    of = "Processes" if subject.facts is None else counted(len(subject.facts.untrusted), "processes")
    text = f"{of} with broken stacks, {share} of all {subject.measure.wider}"
    return [says("broken-left-out", f"{text}: {_LEFT_OUT}.", caveat=True)]


def live_cut(subject: Subject) -> list[Finding]:
    """Live objects of which async-profiler kept the first ones only."""
    notes = subject.facts.live_cut if subject.facts else []
    if not notes:
        return []
    least = max(number_of(note.parameters, "bytes", _LARGEST_INTERVAL) or 0 for note in notes)
    interval = f"--alloc-interval {int(least) >> 20}m" if least else "a larger --alloc-interval"
    text = f"Live objects were cut in {counted(len(notes), 'processes')}"
    return [says("live-cut", f"{text}: record with {interval}.", caveat=True)]


def garbage(subject: Subject) -> list[Finding]:
    """What was not collected yet is not known to be live."""
    if subject.event != "live":
        return []
    ended = {
        (host.name, one.pid): one.times.start / 1e6 + one.seconds
        for host in subject.hosts
        for one in host.recordings
        if one.times
    }
    since = [
        max(0.0, ended[host.name, one.pid] - max(one.end) / 1e6) if one.end else None
        for host in subject.hosts
        for one in host.pauses
        if (host.name, one.pid) in ended
    ]
    text = "Objects that no collection has freed yet count as live, garbage too"
    ran = [one for one in since if one is not None]
    if len(ran) == len(since) and ran:
        text += f": the collectors last ran {duration(max(ran))} before the end"
        text += " or later" if len(ran) > 1 else ""
    elif since:
        none = "" if len(since) == 1 else f" in {len(since) - len(ran)} of {len(since)} processes"
        text += f": no collector ran during the recording{none}"
    return [says("live-garbage", f"{text}.", caveat=True)]


def jvms_own_work(subject: Subject) -> list[Finding]:
    """Garbage collection and the JIT compilers, known by their callers, where they are not the answer."""
    if subject.attribution.self_only:
        return []
    leading = {one.code for one in leading_work(subject)}
    garbage = "Garbage collection takes {share} of CPU time."
    compilers = "The JIT compilers take {share} of CPU time, as while JVMs warm up."
    found = [
        *_own_work(subject, "gc", _GARBAGE, garbage),
        *_own_work(subject, "jit", _COMPILERS, compilers),
    ]
    return [one for one in found if one.code not in leading]


def kernel(subject: Subject) -> list[Finding]:
    """Most time in the kernel, and who calls it."""
    share = _share_of_own_work(subject, "kernel", _KERNEL)
    if not share:
        return []
    # Frames that pruning put together have no known caller.
    ((caller, cost),) = subject.walk.kernel_callers.most_common(1) or [("", 0)]
    named = caller and 2 * cost > sum(subject.walk.kernel_callers.values())
    text = f"Kernel code takes {share} of CPU time"
    if not named:
        return [says("kernel", f"{text}.")]
    return [says("kernel", f"{text}, most of it called by ", _name(caller), ".", method=caller)]


def _own_work(subject: Subject, kind: str, least: float, text: str) -> list[Finding]:
    share = _share_of_own_work(subject, kind, least)
    return [says(kind, text.format(share=share))] if share else []


def _share_of_own_work(subject: Subject, kind: str, least: float) -> str:
    """The part of the work of JVMs; "" where it is less than `least`."""
    share = share_of_work(sum(subject.work_of_hosts.values(), Work()), kind)
    return "" if share == 0 or subject.surely(share) < least else percent(share, 1)


def idle_threads(subject: Subject) -> list[Finding]:
    """How much of the time no sentence and no table is about, and of about how many threads that was."""
    every, busy, left = subject.cluster, subject.attribution.profile, subject.attribution.idle
    if not left:
        return []
    recordings = [one for host in subject.hosts for one in host.recordings]
    units = [unit for _, unit in every.values]
    threads = ""
    if "nanoseconds" in units and (seconds := _seconds(recordings)[0]):
        value, each = units.index("nanoseconds"), 1e9 * seconds / len(recordings)
        idle_ones, all_ones = ((every.total(value) - busy.total(value)) / each, every.total(value) / each)
        threads = f": about {idle_ones:.0f} of {all_ones:.0f} threads"
    share = percent(left, every.total())
    left_out = f"are left out of sentences, tables and the page{threads}"
    return [says("idle-threads", f"Idle threads, {share} of all {subject.measure.wider}, {left_out}.")]


def idle(subject: Subject) -> list[Finding]:
    """Processes that hardly use the CPU."""
    recordings = [one for host in subject.hosts for one in host.recordings]
    seconds, cpu = _seconds(recordings)
    if subject.facts is None or subject.event != "cpu" or not seconds or not subject.facts.hardly_used_cpu:
        return []
    average = " on average" if len(recordings) > 1 else ""
    text = f"Mostly idle: {counted(len(recordings), 'processes')} used {cpu / seconds:.2g} CPUs{average}."
    waits = subject.facts.waits_recorded
    return [says("idle", f"{text} What they wait for{f' is in {waits[0]}' if waits else ': -e offcpu'}.")]


def _seconds(recordings: list[Recording]) -> tuple[float, float]:
    return sum(one.seconds for one in recordings), sum(one.cpu_seconds for one in recordings)


RULES: tuple[Callable[[Subject], list[Finding]], ...] = (
    live_cut,
    garbage,
    kinds_of_wait,
    gil,
    few_samples,
    missing,
    idle_threads,
    profiler,
    unlike,
    broken,
    left_out_broken,
    jvms_own_work,
    who_does_it,
    families,
    kernel,
    hottest_itself,
    idle,
)
