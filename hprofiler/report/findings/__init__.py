"""What stands out, in sentences with figures. A rule speaks only where it matters, and beyond chance.

A rule is a function in `answers` or `rules` and a place in `RULES`; it takes what is known of an event and
gives its findings, or none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from hprofiler._flamegraph import Profile
from hprofiler.model import Outcome
from hprofiler.report.comparison import Compared
from hprofiler.report.facts import RunFacts
from hprofiler.report.findings import answers, rules
from hprofiler.report.findings.evidence import Evidence
from hprofiler.report.findings.subject import Finding, Subject
from hprofiler.report.telling import Telling, plain_telling

__all__ = ["MOST", "Evidence", "Finding", "findings", "plain_findings"]

# More are not read. The first is the answer; the others are in this order, the most important first.
MOST = 5
# Names come from hosts; a sentence stays one.
_LONGEST = 500
RULES = (
    rules.kinds_of_wait,
    rules.few_samples,
    rules.missing,
    rules.idle_threads,
    rules.profiler,
    rules.unlike,
    rules.broken,
    rules.garbage,
    rules.compilers,
    answers.who_does_it,
    answers.families,
    rules.kernel,
    answers.hottest_itself,
    rules.idle,
)


def findings(
    facts: RunFacts,
    cluster: Profile,
    told: Telling,
    compared: Compared,
    evidence: Evidence,
    problems: Sequence[Outcome] = (),
) -> list[Finding]:
    """What stands out in an event that has samples: the answer first, then at most `MOST` - 1 more.

    `cluster` is all processes' profile, the value shown first, and `told` that without what its stacks end
    in; `problems` are stored profiles that could not be used.
    """
    subject = Subject(facts, cluster, told, compared, evidence, problems)
    found = [answers.answer(subject)]
    for rule in RULES:
        found += _told_by(rule, subject)
    return [_bounded(one) for one in found[:MOST]]


def _told_by(rule: Callable[[Subject], list[Finding]], subject: Subject) -> list[Finding]:
    """Its findings. What a host made up that no rule expects costs a sentence, not the report."""
    try:
        return rule(subject)
    except (ArithmeticError, LookupError, RuntimeError, ValueError):
        return []


def plain_findings(profile: Profile) -> list[Finding]:
    """What stands out in one profile with samples, of which nothing else is known."""
    subject = Subject(None, profile, plain_telling(profile), Compared(), None, ())
    if not subject.methods:
        return [Finding("No stack has a frame.")]
    found = [answers.answer(subject), *rules.kinds_of_wait(subject), *rules.idle_threads(subject)]
    found += [*answers.families(subject), *answers.hottest_itself(subject)]
    return [_bounded(one) for one in found]


def _bounded(finding: Finding) -> Finding:
    if len(finding.text) <= _LONGEST:
        return finding
    return replace(finding, text=f"{finding.text[:_LONGEST]}…")
