"""The top of the page: the answer in one sentence, then what was measured, when and how much of it."""

from __future__ import annotations

from typing import List, Sequence
from urllib.parse import quote

from hprofiler._flamegraph import Method, Profile
from hprofiler.measures import amount, counted, in_words, measure_of, summed
from hprofiler.model import Outcome, Status
from hprofiler.report.comparison import Compared
from hprofiler.report.facts import RunFacts
from hprofiler.report.gather import Gathered, left_out, sampled, totals_of
from hprofiler.report.html import method, text
from hprofiler.report.outliers import sentence
from hprofiler.report.telling import telling
from hprofiler.report.words import coverage, followed_by, moment, over_hosts, percent
from hprofiler.store import page_name

_WORTH_A_HEADLINE = 0.03
_THEME = '<button id="theme" title="Dark or light (t)" aria-label="Dark or light">◐</button>'


def headline(facts: RunFacts, cluster: Profile, gathered: Gathered) -> str:
    """The answer of an event with samples."""
    hosts = gathered.hosts
    told = telling(facts.event, cluster)
    total, top = told.profile.total(), told.profile.top(3)
    answer = _answer(top[0], total, f" of {told.share_of}", measure_of(facts.event).verb)
    second = over_hosts(top[0].self_value / total, {host.name: host.share(top[0].name) for host in hosts})
    if not second:
        second = followed_by([(one.name, one.self_value / total) for one in top[1:]])
    counts = f"<b>{text(in_words(facts.event, totals_of(cluster)))}</b>"
    chips = [*_chips(facts, len(gathered.problems)), counts]
    if facts.trimmed:
        chips.append(f"<b>{text(left_out(facts, cluster.total(), gathered.whole))}</b>")
    unlike = sentence(gathered.compared)
    if unlike and _same_matter(gathered.compared, top[0]):
        second = ""
    second = " ".join(filter(None, [second, unlike]))
    return _top(facts.selector or facts.target, answer, second, chips, _links(facts))


def _same_matter(compared: Compared, hottest: Method) -> bool:
    """The sentence on the odd host tells how the hottest method spreads over the hosts."""
    telling = compared.odd_hosts[0].telling if compared.odd_hosts else None
    return telling is not None and telling.name == hottest.name


def empty_headline(facts: RunFacts, problems: Sequence[Outcome]) -> str:
    """The top of an event without samples: why, and what to do."""
    answer = "Nothing was recorded" if len(facts.events) == 1 else f"No samples of {text(facts.event)}"
    reasons, because = _reasons(facts, problems), "not one sample was taken"
    if _trimmed_away(facts):
        roots = ", ".join(f"<code>{text(root)}</code>" for root in facts.roots)
        answer, because = "Nothing is left to show", "not one sample is of the job’s own frames"
        reasons = [f"Pictures are trimmed to what is below {roots}. Make them without --trim."]
    listed = "".join(f"<li>{reason}</li>" for reason in reasons)
    why = f"<p>There is no picture, because {because}:</p><ul>{listed}</ul>"
    top = _top(facts.selector or facts.target, answer, "", _chips(facts, len(problems)), _links(facts))
    return f'{top}<section class="empty">{why}</section>'


def plain_headline(profile: Profile, title: str) -> str:
    """The top of a page made from one profile without a run."""
    top = profile.top(3)
    total = profile.total()
    answer = _answer(top[0], total, "", "is spent in")
    second = followed_by([(one.name, one.self_value / total) for one in top[1:]])
    return _top(title, answer, second, [f"<b>{text(amount(total, profile.values[0]))}</b>"])


def _answer(hottest: Method, total: int, measured: str, verb: str) -> str:
    share = percent(hottest.self_value, total)
    if hottest.self_value < _WORTH_A_HEADLINE * total:
        least = f'{method(hottest.name)}, takes <span class="hot">{share}</span>{text(measured)}'
        return f"No method stands out: the hottest, {least}"
    return f'<span class="hot">{share}</span>{text(measured)} {verb} {method(hottest.name)}'


def _top(name: str, answer: str, second: str, chips: Sequence[str], links: str = "") -> str:
    listed = "".join(chip if chip.startswith("<li") else f"<li>{chip}</li>" for chip in chips)
    return (
        f'<header><div class="top"><span>hprofiler · <b><bdi>{text(name)}</bdi></b></span>{_THEME}</div>'
        f'{links}<h1>{answer}</h1><p class="second">{text(second)}</p>'
        f'<ul class="chips">{listed}</ul></header>'
    )


def _links(facts: RunFacts) -> str:
    """The pages of the run's events, side by side."""
    if len(facts.events) == 1:
        return ""
    listed = []
    for number, event in enumerate(facts.events):
        name, address = text(event), quote(page_name(event, number == 0))
        here = ' aria-current="page"' if event == facts.event else ""
        link = f"<b>{name}</b>" if here else name
        listed.append(f'<li><a href="{address}"{here}>{link}</a></li>')
    return f'<nav aria-label="Events"><ul class="chips">{"".join(listed)}</ul></nav>'


def _chips(facts: RunFacts, unreadable: int) -> List[str]:
    covered, complete = coverage(facts, unreadable)
    kind = "" if complete else ' class="partial"'
    interrupted = ", interrupted" if facts.interrupted else ""
    return [
        f"<b>{text(moment(facts.started))}</b>{interrupted}",
        f"<b>{text(sampled(facts))}</b>",
        f"<li{kind}><b>{text(covered)}</b></li>",
    ]


def _trimmed_away(facts: RunFacts) -> bool:
    """There were samples before trimming."""
    totals = summed(one.totals for host in facts.hosts for one in host.recordings)
    return facts.trimmed and any(totals.values())


def _reasons(facts: RunFacts, problems: Sequence[Outcome]) -> List[str]:
    """Each reason once, with where it holds and its remedy."""
    outcomes = [*problems, *(outcome for host in facts.hosts for outcome in host.outcomes)]
    places: dict[tuple[str, str], List[str]] = {}
    for outcome in outcomes:
        if outcome.status is not Status.OK and outcome.reason:
            places.setdefault((outcome.reason, outcome.remedy), []).append(outcome.host)
    reasons = [_reason(reason, remedy, hosts) for (reason, remedy), hosts in places.items()]
    if reasons:
        return reasons
    recorded = sum(host.recorded for host in facts.hosts)
    if recorded:
        return [text(f"{counted(recorded, 'processes')} {measure_of(facts.event).none}.")]
    return ["The run ended before any process was found."]


def _reason(reason: str, remedy: str, hosts: Sequence[str]) -> str:
    where = list(dict.fromkeys(hosts))
    named = ", ".join(f"<bdi>{text(host)}</bdi>" for host in where[:5])
    if len(where) > 5:
        named += f" and {len(where) - 5} more"
    return f"{named}: {text(reason)}" + (f' <span class="remedy">{text(remedy)}</span>' if remedy else "")
