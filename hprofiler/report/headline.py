"""The top of an event: the answer in one sentence, what else stands out, what was measured and when."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from hprofiler._flamegraph import Method, Profile
from hprofiler.model import Outcome, Status
from hprofiler.model.measures import amount, in_words, measure_of, no_samples, summed
from hprofiler.report.comparison import Compared
from hprofiler.report.covered import sampled
from hprofiler.report.facts import RunFacts
from hprofiler.report.findings import Finding
from hprofiler.report.gather import Gathered, left_out, totals_of
from hprofiler.report.html import method, text, view_link
from hprofiler.report.telling import Telling
from hprofiler.report.words import (
    SEE_WHAT_IS_THERE,
    coverage,
    followed_by,
    interrupted,
    moment,
    others_missing,
    over_hosts,
    short_name,
)

_SHARE = re.compile(r"(?:<)?\d[\d.]*\u202f%")
_EVERYTHING = 2**31 - 1
_THEME = '<button id="theme" title="Dark or light (t)" aria-label="Dark or light">◐</button>'


def top(name: str) -> str:
    """The first line of a page."""
    named = f"<span>hprofiler · <b><bdi>{text(name)}</bdi></b></span>"
    return f'<div class="top">{named}{_THEME}</div>'


def headline(facts: RunFacts, cluster: Profile, told: Telling, gathered: Gathered) -> str:
    """The answer of an event with samples."""
    second = _second(told.profile, gathered)
    counts = f"<b>{text(in_words(facts.event, totals_of(cluster)))}</b>"
    chips = [*_chips(facts, len(gathered.problems)), counts]
    if facts.trimmed:
        chips.append(f"<b>{text(left_out(facts, cluster.total(), gathered.whole))}</b>")
    return _head(facts.event, gathered.findings, second, chips)


def _second(told: Profile, gathered: Gathered) -> str:
    """Where the answer's method is, by the measure of the answer; of one host, what follows it."""
    answer, total = gathered.findings[0], told.total()
    if _SHARE.search(answer.text) is None or _same_matter(gathered.compared, answer):
        return ""
    if len(gathered.hosts) > 1:
        shares = {host.name: host.share_of(answer) for host in gathered.hosts}
        known = {name: share for name, share in shares.items() if share is not None}
        cost = next((_cost(one, answer) for one in told.top(_EVERYTHING) if one.name == answer.method), 0)
        return over_hosts(cost / total, known) if len(known) == len(shares) else ""
    return _next(told, answer)


def _next(told: Profile, answer: Finding) -> str:
    """The methods after the answer's by their own cost; "" where the answer tells another measure."""
    hottest, total = told.top(3), told.total()
    if answer.with_calls or not hottest or answer.method != hottest[0].name:
        return ""
    return followed_by([(one.name, one.self_value / total) for one in hottest[1:]])


def _cost(one: Method, answer: Finding) -> int:
    return one.total_value if answer.with_calls else one.self_value


def _same_matter(compared: Compared, answer: Finding) -> bool:
    """What is said of the odd host tells how the answer's method spreads over the hosts."""
    telling = compared.odd_hosts[0].telling if compared.odd_hosts else None
    return telling is not None and telling.name == answer.method and not answer.with_calls


def empty_headline(facts: RunFacts, problems: Sequence[Outcome]) -> str:
    """The top of an event without samples: why, and what to do."""
    title = measure_of(facts.event).title
    answer = "Nothing was recorded" if len(facts.events) == 1 else f"No samples of {text(title)}"
    reasons, because = _reasons(facts, problems), "no sample was taken"
    if _trimmed_away(facts):
        roots = ", ".join(f"<code>{text(root)}</code>" for root in facts.roots)
        answer, because = "Nothing is left to show", "no sample is of the job’s own frames"
        reasons = [f"Pictures are trimmed to what is below {roots}. Make them without --trim."]
    listed = "".join(f"<li>{reason}</li>" for reason in reasons)
    why = f"<p>There is no picture, because {because}:</p><ul>{listed}</ul>"
    if len(reasons) == 1 and not _trimmed_away(facts):
        why = f"<p>{reasons[0]}</p>"
    if _only_idle(facts):
        why += f'<p class="remedy">{text(SEE_WHAT_IS_THERE)}</p>'
    return f'{_head_of(answer, "", _chips(facts, len(problems)))}<section class="empty">{why}</section>'


def plain_headline(profile: Profile, told: Telling, findings: Sequence[Finding]) -> str:
    """The top of a page made from one profile without a run."""
    column = profile.values[0]
    counts = f"<b>{text(amount(profile.total(), column))}</b>"
    return _head(column[0], findings, _next(told.profile, findings[0]), [counts])


def findings_header(event: str, findings: Sequence[Finding], chips: Sequence[str]) -> str:
    """The top of a page that has nothing to add to its findings; chips are HTML."""
    return _head(event, findings, "", chips)


def _head(event: str, findings: Sequence[Finding], second: str, chips: Sequence[str]) -> str:
    """The first finding is the answer."""
    others = "".join(f"<li>{_marked(one, _link(event, one))}</li>" for one in findings[1:])
    listed = f'<ul class="findings">{others}</ul>' if others else ""
    return _head_of(_answer(findings[0]), second, chips, listed)


def _head_of(answer: str, second: str, chips: Sequence[str], findings: str = "") -> str:
    listed = "".join(chip if chip.startswith("<li") else f"<li>{chip}</li>" for chip in chips)
    told = f'<p class="second">{text(second)}</p>' if second else ""
    return f'<header><h1>{answer}</h1>{told}{findings}<ul class="chips">{listed}</ul></header>'


def _answer(finding: Finding) -> str:
    """The sentence with its first share marked."""
    answer = replace(finding, text=finding.text.removesuffix("."))
    sentence = _marked(answer, method(finding.method or ""))
    share = _SHARE.search(finding.text)
    if share is None:
        return sentence
    told = text(share.group())
    return sentence.replace(told, f'<span class="hot">{told}</span>', 1)


def _link(event: str, finding: Finding) -> str:
    """The finding's method without its package, as a link to where it is searched."""
    name = finding.method or ""
    shown = f'<bdi class="method" title="{text(name)}">{text(short_name(name))}</bdi>'
    return f'<a href="{view_link(event, name=name)}">{shown}</a>'


def _marked(finding: Finding, name: str) -> str:
    """The sentence with `name` for its method's name; one that is too long for a sentence stays cut."""
    short = short_name(finding.method) if finding.method else ""
    pattern = re.compile(rf"(?<![\w.$]){re.escape(short)}(?![\w$])")
    found = pattern.search(finding.text, finding.at or 0) if short else None
    if found is None:
        return text(finding.text)
    return f"{text(finding.text[: found.start()])}{name}{text(finding.text[found.end() :])}"


def _chips(facts: RunFacts, unreadable: int) -> list[str]:
    covered, complete = coverage(facts, unreadable)
    kind = "" if complete else ' class="partial"'
    others = others_missing(facts)
    return [
        f"<b>{text(moment(facts.started))}</b>{interrupted(facts)}",
        f"<b>{text(sampled(facts))}</b>",
        f"<li{kind}><b>{text(covered)}</b></li>",
        *([f'<li class="partial"><b>{text(others)}</b></li>'] if others else []),
    ]


def _trimmed_away(facts: RunFacts) -> bool:
    """There were samples before trimming."""
    totals = summed(one.totals for host in facts.hosts for one in host.recordings)
    return facts.trimmed and any(totals.values())


def _only_idle(facts: RunFacts) -> bool:
    """No process was found, and somewhere that is because none matches."""
    return any(host.idle for host in facts.hosts) and not any(host.processes for host in facts.hosts)


def _reasons(facts: RunFacts, problems: Sequence[Outcome]) -> list[str]:
    """Each reason once, with where it holds and its remedy."""
    outcomes = [*problems, *(outcome for host in facts.hosts for outcome in host.outcomes)]
    places: dict[tuple[str, str], list[str]] = {}
    for outcome in outcomes:
        if outcome.status is not Status.OK and outcome.reason:
            places.setdefault((outcome.reason, outcome.remedy), []).append(outcome.host)
    reasons = [_reason(reason, remedy, hosts) for (reason, remedy), hosts in places.items()]
    if reasons:
        return reasons
    recorded = sum(host.recorded for host in facts.hosts)
    if recorded:
        why = no_samples(facts.event, recorded, facts.expected)
        return [text(f"{why[0].upper()}{why[1:]}.")]
    return ["The run ended before any process was found."]


def _reason(reason: str, remedy: str, hosts: Sequence[str]) -> str:
    where = list(dict.fromkeys(hosts))
    named = ", ".join(f"<bdi>{text(host)}</bdi>" for host in where[:5])
    if len(where) > 5:
        named += f" and {len(where) - 5} more"
    return f"{named}: {text(reason)}" + (f' <span class="remedy">{text(remedy)}</span>' if remedy else "")
