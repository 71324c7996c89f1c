"""What is said of hosts and processes that are unlike the others: a sentence, a table for terminals, JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from hprofiler.base.errors import UsageError
from hprofiler.base.text import printable
from hprofiler.model import Outcome
from hprofiler.model.measures import counted
from hprofiler.report.comparison import Compared, Unlike
from hprofiler.report.facts import read_facts
from hprofiler.report.reading import Names, Reader
from hprofiler.report.words import percent, plain, short_name
from hprofiler.runfolder import RunFolder

# Rows of a table that are no outliers: more of them tell nothing new.
_OTHERS_SHOWN = 20
_FEWEST = 3


@dataclass(frozen=True)
class Outliers:
    """The comparison of each event, and what could not be read for it."""

    events: tuple[tuple[str, Compared], ...]
    problems: tuple[Outcome, ...]


def find_outliers(folder: Path, event: str | None, trim: bool) -> Outliers:
    """The comparison of each event of a run folder, or of this one, from what is stored there.

    Raises RunFolderError when it is not a run folder, UsageError for an event that was not recorded.
    """
    run_folder = RunFolder.open(folder)
    facts = replace(read_facts(run_folder.record), trimmed=trim)
    if event is not None and event not in facts.events:
        raise UsageError(f"{folder} has no event {event!r}; it has {', '.join(facts.events)}")
    compared: list[tuple[str, Compared]] = []
    problems: list[Outcome] = []
    for name in facts.events if event is None else (event,):
        reader = Reader(run_folder, facts.of(name), Names())
        for host in facts.of(name).hosts:
            reader.read_host(host)
        compared.append((name, reader.comparison.finish()))
        problems += reader.problems
    return Outliers(tuple(compared), tuple(problems))


def who(one: Unlike) -> str:
    """ "host7", "executor 3 on host7", "pid 4711 on host7"."""
    if one.pid is None:
        return one.host
    return f"{one.label or f'pid {one.pid}'} on {one.host}"


def what_differs(one: Unlike) -> str:
    """ "GC.copy 31 % here, 9 % usually"; "" where nothing differs."""
    telling = one.telling
    if telling is None:
        return ""
    shares = f"{percent(telling.share, 1)} here, {percent(telling.usual, 1)} usually"
    return f"{short_name(telling.name)} {shares}"


def sentence(compared: Compared) -> str:
    """ "host7 is unlike the others: GC.copy 31 % here, 9 % usually."; "" where nobody is.

    Hosts before processes: these are told where all hosts are alike.
    """
    odd = compared.odd_hosts or compared.odd_processes
    if not odd:
        return ""
    others = "the others" if compared.odd_hosts else "the other processes"
    if len(odd) == 1:
        return f"{who(odd[0])} is unlike {others}: {what_differs(odd[0])}."
    number, what = counted(len(odd) - 1, "hosts" if compared.odd_hosts else "processes").split()
    return f"{who(odd[0])} and {number} more {what} are unlike {others}; the first: {what_differs(odd[0])}."


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
    names = _names(shown)
    width = max(len(head), *map(len, names))
    heads = f"unlike  {'samples':>9}  divergence   by chance  cosine   moved  what differs most"
    lines = [f"  {head:<{width}}  {heads}"]
    lines += [_row(one, f"{name:<{width}}") for one, name in zip(shown, names, strict=False)]
    if len(shown) < len(ranked):
        lines.append(f"  … and {len(ranked) - len(shown)} more")
    return lines


def _names(shown: Sequence[Unlike]) -> list[str]:
    """Who each row is of; with the pid where several have one name."""
    names = [printable(who(one)) for one in shown]
    times = Counter(names)
    return [
        f"{name} (pid {one.pid})" if times[name] > 1 and one.pid is not None else name
        for one, name in zip(shown, names, strict=False)
    ]


def _row(one: Unlike, name: str) -> str:
    distance = one.distance
    unlike = "yes" if one.outlier else "maybe" if distance.differs else ""
    return (
        f"  {name}  {unlike:<6}  {one.samples:>9,}"
        f"  {distance.divergence:>10.6f}  {distance.noise:>10.6f}  {distance.cosine:>6.4f}"
        f"  {plain(percent(distance.moved, 1)):>6}  {printable(plain(what_differs(one)))}"
    ).rstrip()


def _record(one: Unlike) -> dict[str, object]:
    distance = one.distance
    methods = [{"method": m.name, "share": m.share, "usual": m.usual} for m in distance.methods]
    process = {} if one.pid is None else {"pid": one.pid, "label": one.label}
    return {
        "host": one.host,
        **process,
        "outlier": one.outlier,
        "differs": distance.differs,
        "samples": one.samples,
        "divergence": distance.divergence,
        "noise": distance.noise,
        "cosine": distance.cosine,
        "moved": distance.moved,
        "methods": methods,
    }
