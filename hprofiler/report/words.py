"""What the report says in words: shares, coverage, dates."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone

from hprofiler.model.measures import counted, duration
from hprofiler.report.facts import RunFacts

SEE_WHAT_IS_THERE = "see what is there with: hprofiler ps -j java … (same host options)"
"""The next step where no process matches."""

_PACKAGE = re.compile(r"(?:[a-z_][\w$]*[./])+(?=[A-Za-z_$][^./]*[./][A-Za-z_$<][^./]*$|[A-Z])")
_STANDS_OUT = 1.5
_SHORT_SHOWN = 3
_OTHERS_SHOWN = 3
# A recording that lasted for so much of its time lasted for all of it: clocks and stops are not that exact.
_ALL_OF_IT = 0.98
_IN_MINUTES = 120
_SPACE = "\u202f"


def percent(part: float, whole: float) -> str:
    """A share with as many digits as it deserves: "52.3 %", "0.04 %"."""
    share = 100 * part / whole if whole > 0 else 0.0
    if 0 < share < 0.01:
        return f"<0.01{_SPACE}%"
    digits = 0 if share == 0 or share >= 99.95 else 2 if share < 1 else 1
    return f"{share:.{digits}f}{_SPACE}%"


def moment(iso: str, seconds: bool = False) -> str:
    """ "20 Nov 2026, 06:12 UTC", or with seconds; text that is no ISO time stays as it is."""
    form = f"%-d %b %Y, %H:%M{':%S' if seconds else ''}"
    try:
        time = datetime.fromisoformat(iso.replace("Z", "+00:00"))
        if time.tzinfo is not None:
            return f"{time.astimezone(timezone.utc):{form}} UTC"
    except (ValueError, OverflowError):  # there is no year 0 for UTC to be in
        return iso
    return f"{time:{form}}"


def package_length(name: str) -> int:
    """Where the package of a Java name ends: 11 in "org.apache.Foo.bar"; 0 without one."""
    found = _PACKAGE.match(re.split(r"[(<\s]", name, maxsplit=1)[0])
    return found.end() if found else 0


def short_name(name: str) -> str:
    """The name without its package."""
    return name[package_length(name) :]


def coverage(facts: RunFacts, unreadable: int = 0) -> tuple[str, bool]:
    """ "37 of 40 processes on 9 of 10 hosts, 2 idle, 1 without a shell", and whether that is all there was.

    "no process matches on 3 hosts" where all were searched, and had none.
    Idle hosts are not missed: they had nothing to record; nor are containers that nobody named and that
    have no shell. `unreadable` processes do not count as recorded. Of hosts that were recorded for less
    time than was asked for it says for how much.
    """
    recorded = sum(host.recorded for host in facts.hosts) - unreadable
    found = sum(host.processes for host in facts.hosts)
    busy = [host for host in facts.hosts if not host.idle and not host.needless]
    idle = sum(host.idle for host in facts.hosts)
    needless = len(facts.hosts) - len(busy) - idle
    reached = sum(1 for host in busy if host.recordings)
    preposition, places = facts.places.split()
    if not found and not busy and idle:
        none = f"no process matches {preposition} {counted(idle, places)}"
        return none + (f", {needless} without a shell" if needless else ""), True
    text = (
        f"{recorded} of {counted(found, 'processes')} {preposition} {reached} of {counted(len(busy), places)}"
    )
    text += (f", {idle} idle" if idle else "") + (f", {needless} without a shell" if needless else "")
    short = cut_short(facts)
    return text + short, recorded == found and reached == len(busy) and not short


def others_missing(facts: RunFacts) -> str:
    """ "heep: not recorded, wall: 1 of 2 processes" of other events, of which less was recorded."""
    found = sum(host.processes for host in facts.hosts)
    less = {event: n for event, n in facts.recorded.items() if n < facts.recorded.get(facts.event, 0)}
    of_all = f"of {counted(found, 'processes')}"
    told = [f"{event}: {f'{n} {of_all}' if n else 'not recorded'}" for event, n in less.items()]
    more = len(told) - _OTHERS_SHOWN
    return ", ".join(told[:_OTHERS_SHOWN]) + (f", {counted(more, 'more events')}" if more > 0 else "")


def interrupted(facts: RunFacts) -> str:
    return ", interrupted" if facts.interrupted else ""


def cut_short(facts: RunFacts) -> str:
    """ ", n3: 24 of 60 s" of hosts that were not recorded for all of the time."""
    told: list[str] = []
    for host in facts.hosts:
        if host.short:
            who = host.name if len(host.short) == host.recorded else host.short[0].where
            least = min(one.seconds or 0.0 for one in host.short)
            told.append(f", {who}: {part_of_time(least, facts.duration)}")
    more = len(told) - _SHORT_SHOWN
    return "".join(told[:_SHORT_SHOWN]) + (f", {more} more cut short" if more > 0 else "")


def duration_in_words(seconds: float, asked: float) -> str:
    """ "60 s", or "24 of 60 s" where less was recorded than was asked for; of 0 seconds nobody knows."""
    if 0 < seconds < asked * _ALL_OF_IT:
        return part_of_time(seconds, asked)
    return duration(asked)


def part_of_time(seconds: float, asked: float) -> str:
    """ "24 of 60 s", "3.2 of 10.0 min", "24 s of 10.0 min"; never as if it were all."""
    part, whole = duration(seconds), duration(asked)
    if asked < _IN_MINUTES or part == whole:
        rough = asked < _IN_MINUTES and f"{seconds:.3g}" != f"{asked:.3g}"
        return f"{seconds:.{3 if rough else 6}g} of {asked:.6g} s"
    unit = whole.partition(" ")[2]
    return f"{part.removesuffix(f' {unit}')} of {whole}"


def over_hosts(cluster_share: float, shares: Mapping[str, float]) -> str:
    """One sentence on how a method's share spreads over the hosts; "" for a single host.

    `cluster_share` and `shares` are fractions of all samples of the cluster and of each host.
    """
    if len(shares) < 2:
        return ""
    ordered: list[tuple[float, str]] = sorted((share, host) for host, share in shares.items())
    (least, coolest), (most, hottest) = ordered[0], ordered[-1]
    if stands_out(most, cluster_share):
        usual, where = ordered[len(ordered) // 2] if len(ordered) > 2 else ordered[0]
        if len(ordered) > 2:
            where = "the median host"
        return (
            f"Most on {hottest}, where it takes {percent(most, 1)}, against {percent(usual, 1)} on {where}."
        )
    if least >= most / 2:
        return f"About the same on all {len(shares)} hosts: {percent(least, 1)} to {percent(most, 1)}."
    return f"Between {percent(least, 1)} on {coolest} and {percent(most, 1)} on {hottest}."


def stands_out(share: float, cluster_share: float) -> bool:
    """Whether a host's share of a method is far above the cluster's."""
    return share >= _STANDS_OUT * cluster_share


def followed_by(names: Sequence[tuple[str, float]]) -> str:
    """ "Then Foo.bar (20 %) and Baz.run (9 %)." for the next methods and their fractions."""
    told = [f"{short_name(name)} ({percent(share, 1)})" for name, share in names if share >= 0.01]
    return f"Then {' and '.join(told)}." if told else ""


def plain(share: str) -> str:
    """A share without its narrow space."""
    return share.replace("\u202f", "")
