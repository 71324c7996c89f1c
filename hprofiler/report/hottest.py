"""The hottest methods as a section of the page."""

from __future__ import annotations

from collections.abc import Sequence

from hprofiler._flamegraph import Method
from hprofiler.analysis.attribution import Attribution
from hprofiler.analysis.result import EventAnalysis, HostAnalysis, stands_out
from hprofiler.analysis.words import percent
from hprofiler.model.event_names import is_method
from hprofiler.report.html import method as method_html
from hprofiler.report.html import method_link, share_cell, table, text, view_link

_LISTED = 12
_MOST_CELLS = 100
_MOST_SPACED = 40
Numbered = tuple[int, HostAnalysis]
"""A host with its number in the page."""


def hottest_section(told: EventAnalysis | Attribution, hosts: Sequence[Numbered]) -> str:
    """The methods with the most self value, with each host's share beside; those by total below."""
    event, total = told.event, told.attributed
    by_self = [one for one in told.methods[:_LISTED] if one.self_value > 0]
    by_total = sorted(told.methods, key=lambda one: -one.total_value)[:_LISTED]
    lead = "Self is what a method’s own code costs; total includes all it calls."
    if is_method(event):
        lead = "Self counts the calls that a method makes itself; total also those by all it calls."
    if told.besides:
        lead += f" Shares are of {text(told.share_of)}; the graph has all."
    if _many(hosts):
        lead += " Each cell is a host: the stronger, the larger the method’s share there."
    return "\n".join(
        [
            f'<section class="hottest"><h2>Hottest methods</h2><p class="lead">{lead}</p>',
            _by_self(event, by_self, total, hosts),
            "<details><summary>Hottest by total, with all they call</summary>",
            _by_total(event, by_total, total),
            "</details></section>",
        ]
    )


def _many(hosts: Sequence[Numbered]) -> bool:
    return len(hosts) > 1


def _by_self(event: str, methods: Sequence[Method], total: int, hosts: Sequence[Numbered]) -> str:
    heads = ["%Self", "%Total", "Method"] + (["Hosts", "Most on"] if _many(hosts) else [])
    largest = max((host.share(one.name) for one in methods for _, host in hosts), default=0.0)
    rows = []
    for one in methods:
        cells = [_shares(one, total, methods[0].self_value), _name(event, one)]
        if _many(hosts):
            cells += [_strip(event, one, hosts, largest), _most(one, hosts, total)]
        rows.append("".join(cells))
    return table(heads, rows, "hottest")


def _by_total(event: str, methods: Sequence[Method], total: int) -> str:
    longest = max((one.self_value for one in methods), default=0)
    rows = [_shares(one, total, longest) + _name(event, one) for one in methods]
    return table(["%Self", "%Total", "Method"], rows)


def _shares(one: Method, total: int, longest: int) -> str:
    self_cell = share_cell(one.self_value, total, "self", longest)
    return self_cell + share_cell(one.total_value, total, "total", total)


def _name(event: str, one: Method) -> str:
    return f'<td class="name"><a href="{method_link(event, one.name)}">{method_html(one.name)}</a></td>'


def _strip(event: str, one: Method, hosts: Sequence[Numbered], largest: float) -> str:
    """One cell a host, in the order of the hosts table; where they are too many, the words beside must do."""
    if len(hosts) > _MOST_CELLS:
        return f'<td class="soft">{len(hosts)} hosts</td>'
    cells: list[str] = []
    for number, host in hosts:
        share = host.share(one.name)
        heat = share / largest if largest else 0.0
        told = percent(share, 1) if share or not host.forgot else f"less than {percent(host.forgot, 1)}"
        title = text(f"{host.name}: {told}")
        link = view_link(event, f"host:{number}", one.name)
        # No stop for Tab: with a hundred hosts the next method would be far away.
        attributes = f'tabindex="-1" title="{title}" aria-label="{title}" style="--share:{heat:.3f}"'
        cells.append(f'<a href="{link}" {attributes}></a>')
    kind = "strip dense" if len(hosts) > _MOST_SPACED else "strip"
    return f'<td><div class="{kind}">{"".join(cells)}</div></td>'


def _most(one: Method, hosts: Sequence[Numbered], total: int) -> str:
    """The host that the method is hottest on, when it stands out from the cluster."""
    most = max((host for _, host in hosts), key=lambda host: host.share(one.name))
    share = percent(most.share(one.name), 1)
    if not stands_out(most.share(one.name), one.self_value / total):
        return f'<td class="soft">up to {share}</td>'
    return f'<td class="most"><b><bdi>{text(most.name)}</bdi></b> {share}</td>'
