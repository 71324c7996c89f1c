"""The hottest methods: as a section of the page, and as plain text for the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from hprofiler._flamegraph import Method
from hprofiler.base.text import printable
from hprofiler.model.event_names import is_method
from hprofiler.model.measures import named_by
from hprofiler.report.gather import Shares
from hprofiler.report.html import method as method_html
from hprofiler.report.html import method_link, share_cell, table, text, view_link
from hprofiler.report.telling import Telling
from hprofiler.report.words import percent, plain, stands_out

_LISTED = 12
_MOST_CELLS = 100
_MOST_SPACED = 40
_EVERYTHING = 2**31 - 1


def hottest(methods: Sequence[Method], total: int, event: str, share_of: str = "") -> str:
    """Methods of a profile with this total as lines of text: self share, total share, method (or class).

    `share_of` says what the total is, where it is not all there is.
    """
    lines = [f"{'self':>8} {'total':>8}  {named_by(event)}{share_of and f' (shares of {share_of})'}"]
    for one in methods:
        self_share, total_share = percent(one.self_value, total), percent(one.total_value, total)
        lines.append(f"{plain(self_share):>8} {plain(total_share):>8}  {printable(one.name)}")
    return "\n".join(lines)


def hottest_section(told: Telling, hosts: Sequence[Shares]) -> str:
    """The methods with the most self value, with each host's share beside; those by total below."""
    event, cluster = told.event, told.profile
    by_self = [one for one in cluster.top(_LISTED) if one.self_value > 0]
    by_total = sorted(cluster.top(_EVERYTHING), key=lambda one: -one.total_value)[:_LISTED]
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
            _by_self(event, by_self, cluster.total(), hosts),
            "<details><summary>Hottest by total, with all they call</summary>",
            _by_total(event, by_total, cluster.total()),
            "</details></section>",
        ]
    )


def _many(hosts: Sequence[Shares]) -> bool:
    return len(hosts) > 1


def _by_self(event: str, methods: Sequence[Method], total: int, hosts: Sequence[Shares]) -> str:
    heads = ["%Self", "%Total", "Method"] + (["Hosts", "Most on"] if _many(hosts) else [])
    largest = max((host.share(one.name) for one in methods for host in hosts), default=0.0)
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


def _strip(event: str, one: Method, hosts: Sequence[Shares], largest: float) -> str:
    """One cell a host, in the order of the hosts table; where they are too many, the words beside must do."""
    if len(hosts) > _MOST_CELLS:
        return f'<td class="soft">{len(hosts)} hosts</td>'
    cells: list[str] = []
    for host in hosts:
        share = host.share(one.name)
        heat = share / largest if largest else 0.0
        told = percent(share, 1) if share or not host.forgot else f"less than {percent(host.forgot, 1)}"
        title = text(f"{host.name}: {told}")
        link = view_link(event, f"host:{host.number}", one.name)
        # No stop for Tab: with a hundred hosts the next method would be far away.
        attributes = f'tabindex="-1" title="{title}" aria-label="{title}" style="--share:{heat:.3f}"'
        cells.append(f'<a href="{link}" {attributes}></a>')
    kind = "strip dense" if len(hosts) > _MOST_SPACED else "strip"
    return f'<td><div class="{kind}">{"".join(cells)}</div></td>'


def _most(one: Method, hosts: Sequence[Shares], total: int) -> str:
    """The host that the method is hottest on, when it stands out from the cluster."""
    most = max(hosts, key=lambda host: host.share(one.name))
    share = percent(most.share(one.name), 1)
    if not stands_out(most.share(one.name), one.self_value / total):
        return f'<td class="soft">up to {share}</td>'
    return f'<td class="most"><b><bdi>{text(most.name)}</bdi></b> {share}</td>'
