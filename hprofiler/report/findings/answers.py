"""Where it goes: the answer in one sentence, and what else takes much."""

from __future__ import annotations

from hprofiler.model.event_names import is_method
from hprofiler.report.findings.subject import Finding, Subject
from hprofiler.report.words import percent, short_name

# With fewer samples no share is worth a headline.
_FEWEST = 10
_WORTH_A_HEADLINE = 0.03
_FAMILY = 0.1
_DOER = 0.1
_LONGEST_NAME = 200
# Where stacks end in a class: who is behind it.
_DOES = {"alloc": "Allocated most by", "live": "Allocated most by", "lock": "Waited for most in"}


def answer(subject: Subject) -> Finding:
    """The method of the job's own that takes most, and on what; else the hottest method."""
    owner, hottest = subject.owner, subject.hottest
    if subject.told.only_profiler:
        return Finding(f"Nothing but the profiler’s own work was sampled{subject.told.besides}.")
    if 0 < subject.samples < _FEWEST:
        what = "class" if subject.of_classes else "caller" if is_method(subject.event) else "method"
        return about(f"Too few {subject.sampled} for shares: the hottest {what} is ", hottest.name, ".")
    if owner is not None:
        told = f"{percent(owner.method.total_value, subject.total)}{_of(subject)} {_verb(subject)}"
        points = f"{100 * owner.cost / subject.total:.1f} points {owner.family.points}"
        return about(f"{told} ", owner.method.name, f", of which {points}.", with_calls=True)
    share = percent(hottest.self_value, subject.total)
    if hottest.self_value < _WORTH_A_HEADLINE * subject.total:
        return about("No method stands out: the hottest, ", hottest.name, f", takes {share}{_of(subject)}.")
    return about(f"{share}{_of(subject)} {_verb(subject)} ", hottest.name, f"{_for_whom(subject)}.")


def _for_whom(subject: Subject) -> str:
    """ ", most of it for Job.run", where the hottest method serves others."""
    owner = subject.walk.owner_of(subject.hottest.name) if subject.of_doing else ""
    if owner in ("", subject.hottest.name) or subject.of_classes:
        return ""
    return f", most of it for {shown(owner)}"


def who_does_it(subject: Subject) -> list[Finding]:
    """The method of the job's own that allocates or waits most, where the answer is a class."""
    if subject.event not in _DOES or subject.owner is not None or not subject.walk.owners:
        return []
    ((name, cost),) = subject.walk.owners.most_common(1)
    share = cost / subject.total
    if subject.surely(share) < _DOER:
        return []
    return [about(f"{_DOES[subject.event]} ", name, f": {percent(share, 1)}.")]


def families(subject: Subject) -> list[Finding]:
    """Well-known code that takes much of the whole, and that the answer does not tell."""
    if not subject.of_doing:
        return []
    told = subject.owner.family if subject.owner else None
    for family, cost in subject.walk.families.most_common(2):
        if family != told and subject.surely(cost / subject.total) >= _FAMILY:
            return [Finding(f"{percent(cost, subject.total)}{_of(subject)} goes to {family.doing}.")]
    return []


def hottest_itself(subject: Subject) -> list[Finding]:
    """The hottest method, where the answer tells another."""
    hottest = subject.hottest
    share = hottest.self_value / subject.total
    told = subject.owner is None or subject.owner.method.name == hottest.name
    if told or subject.surely(share) < _WORTH_A_HEADLINE:
        return []
    what = "class" if subject.of_classes else "method by itself"
    return [about(f"The hottest {what} is ", hottest.name, f": {percent(share, 1)}.")]


def about(before: str, name: str, after: str, with_calls: bool = False) -> Finding:
    """A finding whose sentence has the method's name in it."""
    return Finding(f"{before}{shown(name)}{after}", name, with_calls=with_calls, at=len(before))


def shown(name: str) -> str:
    """The name without its package, and not longer than a sentence bears."""
    short = short_name(name)
    return short if len(short) <= _LONGEST_NAME else f"{short[:_LONGEST_NAME]}…"


def _of(subject: Subject) -> str:
    return f" of {subject.told.share_of}" if subject.facts else ""


def _verb(subject: Subject) -> str:
    return subject.measure.verb if subject.facts else "is spent in"
