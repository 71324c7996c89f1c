"""The top of an event: the answer in one sentence, what else stands out, what was measured and when."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from hprofiler.analysis.attribution import Attribution
from hprofiler.analysis.coverage import Coverage, interrupted, others_missing, sampled
from hprofiler.analysis.facts import RunFacts
from hprofiler.analysis.result import SHARE, EventAnalysis, methods_that_follow, reasons_without_samples
from hprofiler.analysis.subject import Finding
from hprofiler.analysis.words import SEE_WHAT_IS_THERE, moment, short_name
from hprofiler.model import Outcome
from hprofiler.model.measures import amount, in_words, measure_of, no_samples, summed
from hprofiler.report.html import method, text, view_link
from hprofiler.report.pictures import left_out

_THEME = '<button id="theme" title="Dark or light (t)" aria-label="Dark or light">◐</button>'


def top(name: str) -> str:
    """The first line of a page."""
    named = f"<span>hprofiler · <b><bdi>{text(name)}</bdi></b></span>"
    return f'<div class="top">{named}{_THEME}</div>'


def headline(analysis: EventAnalysis) -> str:
    """The answer of an event with samples."""
    facts = analysis.facts
    counts = f"<b>{text(in_words(facts.event, analysis.totals))}</b>"
    chips = [*_chips(facts, analysis.coverage), counts]
    if facts.trimmed:
        chips.append(f"<b>{text(left_out(facts, analysis.total, analysis.whole))}</b>")
    return _head(facts.event, analysis.findings, analysis.second, chips)


def empty_headline(analysis: EventAnalysis) -> str:
    """The top of an event without samples: why, and what to do."""
    facts = analysis.facts
    title = measure_of(facts.event).title
    answer = "Nothing was recorded" if len(facts.events) == 1 else f"No samples of {text(title)}"
    reasons, because = _reasons(facts, analysis.problems), "no sample was taken"
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
    return f'{_head_of(answer, "", _chips(facts, analysis.coverage))}<section class="empty">{why}</section>'


def file_headline(attribution: Attribution, findings: Sequence[Finding]) -> str:
    """The top of a page made from one profile without a run."""
    profile = attribution.original
    column = profile.values[0]
    counts = f"<b>{text(amount(profile.total(), column))}</b>"
    return _head(column[0], findings, methods_that_follow(attribution, findings[0]), [counts])


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
    share = SHARE.search(finding.text)
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


def _chips(facts: RunFacts, covered: Coverage) -> list[str]:
    kind = "" if covered.complete else ' class="partial"'
    others = others_missing(facts)
    return [
        f"<b>{text(moment(facts.started))}</b>{interrupted(facts)}",
        f"<b>{text(sampled(facts))}</b>",
        f"<li{kind}><b>{text(covered.text)}</b></li>",
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
    places = reasons_without_samples(facts.hosts, problems)
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
