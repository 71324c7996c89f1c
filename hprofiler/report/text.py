"""Parts of a report as lines for the terminal, and for JSON: the hottest methods, the outliers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from hprofiler.analysis.attribution import Method
from hprofiler.analysis.diff import WRONG_CALLERS
from hprofiler.analysis.outliers import Compared, Unlike, what_differs, who
from hprofiler.analysis.words import and_more, percent, plain
from hprofiler.base.bounded_json import members
from hprofiler.base.text import printable
from hprofiler.base.text_table import table_lines
from hprofiler.model.measures import counted, named_by

# Rows of a table that are no outliers: more of them add nothing.
_OTHERS_SHOWN = 20
_FEWEST = 3
UNKNOWN_TOTALS = f"a total of ? is not known: {WRONG_CALLERS}"


def hottest(
    methods: Sequence[Method], total: int, event: str, share_of: str = "", self_only: bool = False
) -> str:
    """Methods of a profile with this total as lines of text: self share, total share, method (or class).

    `share_of` says what the total is, where it is not all there is. With `self_only` totals are not known,
    and "?" is a total that is not.
    """
    heads = ("self",) if self_only else ("self", "total")
    rows: list[tuple[str, ...]] = [(*heads, f"{named_by(event)}{share_of and f' (shares of {share_of})'}")]
    for one in methods:
        own, all_ = (plain(percent(value, total)) for value in (one.self_value, one.total_value))
        values = (own, all_ if one.known else "?")[: len(heads)]
        rows.append((*values, printable(one.shown)))
    return "\n".join(table_lines(rows, right=range(len(heads)), indent=2))


def outliers_table(event: str, compared: Compared) -> str:
    """The ranking of an event's hosts, and of its processes where they are more, as lines of text."""
    hosts, processes = compared.hosts, compared.processes
    parts = []
    if len(hosts) > 1 or len(processes) < 2:
        parts += [f"{printable(event)}: {_verdict(hosts, 'hosts')}", *_rows(hosts, "host")]
    if len(processes) > len(hosts):
        parts += [f"{printable(event)}: {_verdict(processes, 'processes')}", *_rows(processes, "process")]
    return "\n".join(parts)


def outliers_record(compared: Compared) -> dict[str, object]:
    """The same for JSON."""
    return {
        "hosts": [_record(one) for one in compared.hosts],
        "processes": [_record(one) for one in compared.processes],
    }


def _verdict(ranked: Sequence[Unlike], what: str) -> str:
    odd = sum(one.outlier for one in ranked)
    if len(ranked) < 2:
        return f"nothing to compare: {counted(1, what) if ranked else 'no samples'}"
    group = counted(len(ranked), what)
    differ = sum(one.distance.differs for one in ranked)
    if len(ranked) < _FEWEST:
        how = (
            "differ by more than sampling alone explains"
            if differ
            else "are alike, as far as the samples tell"
        )
        return f"{group}: with fewer than {_FEWEST} none can be the odd one; they {how}"
    if odd:
        return f"{odd} of {group} {'is' if odd == 1 else 'are'} unlike the others"
    if differ:
        differs = "1 differs" if differ == 1 else f"{differ} differ"
        return f"none of {group} stands out beyond doubt; {differs} by more than sampling alone explains"
    return f"all {group} are alike, as far as the samples tell"


def _rows(ranked: Sequence[Unlike], head: str) -> list[str]:
    if len(ranked) < 2:
        return []
    shown = [one for number, one in enumerate(ranked) if one.outlier or number < _OTHERS_SHOWN]
    heads = (head, "unlike", "samples", "divergence", "by chance", "cosine", "moved", "what differs most")
    rows = [heads, *(_row(one, name) for one, name in zip(shown, _names(shown), strict=True))]
    return [*table_lines(rows, right=range(2, 7), indent=2), *and_more(len(ranked) - len(shown))]


def _names(shown: Sequence[Unlike]) -> list[str]:
    """Who each row is of; with the pid where several have one name."""
    names = [printable(who(one)) for one in shown]
    times = Counter(names)
    return [
        f"{name} (pid {one.pid})" if times[name] > 1 and one.pid is not None else name
        for one, name in zip(shown, names, strict=False)
    ]


def _row(one: Unlike, name: str) -> tuple[str, ...]:
    distance = one.distance
    return (
        name,
        "yes" if one.outlier else "maybe" if distance.differs else "",
        f"{one.samples:,}",
        f"{distance.divergence:.6f}",
        f"{distance.noise:.6f}",
        f"{distance.cosine:.4f}",
        plain(percent(distance.moved, 1)),
        printable(plain(what_differs(one))),
    )


def _record(one: Unlike) -> dict[str, object]:
    distance = one.distance
    methods = [{"method": m.name, **members(m, "share", "usual")} for m in distance.methods]
    process = {} if one.pid is None else members(one, "pid", "label")
    return {
        "host": one.host,
        **process,
        **members(distance, "outlier", "differs"),
        "samples": one.samples,
        **members(distance, "divergence", "noise", "cosine", "moved"),
        "methods": methods,
    }
