"""What `hprofiler cleanup` says: what there is, what came of it, and the same as JSON."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from hprofiler.model import Outcome, Status
from hprofiler.model.measures import counted, size

if TYPE_CHECKING:
    from hprofiler.agent import Leftover
    from hprofiler.collect import HostCleaned, HostLeft
    from hprofiler.collect.cleaning import Removal

_UNITS = ((86400, "d"), (3600, "h"), (60, "min"), (1, "s"))
_USERS = 3


# Before


def print_list(left: Sequence[HostLeft]) -> None:
    """A line for each thing: what is to be removed first."""
    for host in left:
        for one in sorted(host.entries, key=lambda one: one.state != "left"):
            print(f"{host.host.name}: {'remove' if one.state == 'left' else 'leave'} {_described(one)}")


def _described(one: Leftover) -> str:
    """`profiler in pid 7 (yarn): why`, `/tmp/x (root, 12 KiB, 3 h old): why`."""
    facts = [one.user]
    if one.kind == "program":
        facts.append(one.path)
    if one.kind in ("folder", "file") and one.bytes is not None:
        facts.append(size(one.bytes))
    if one.seconds is not None:
        facts.append(f"{_age(one.seconds)} old")
    return f"{_name(one)} ({', '.join(facts)}): {one.reason}"


def _name(one: Leftover) -> str:
    names = {
        "agent": f"agent {one.pid}",
        "program": f"process {one.pid}",
        "profiler": f"profiler in pid {one.pid}",
    }
    return names.get(one.kind, one.path)


def _age(seconds: int) -> str:
    length, unit = next((pair for pair in _UNITS if seconds >= pair[0]), _UNITS[-1])
    return f"{seconds // length} {unit}"


def _wait(seconds: int) -> str:
    """Not less: who comes back after that finds it left over."""
    length, unit = next((pair for pair in _UNITS if seconds > 2 * pair[0]), _UNITS[-1])
    return f"{-(-seconds // length)} {unit}"


# After


def print_removals(cleaned: Sequence[HostCleaned]) -> None:
    """A line for each thing that was to be removed; what failed is told with the failures."""
    for host in cleaned:
        for removal in host.removals:
            if removal.result not in ("failed", ""):
                print(f"{host.host.name}: {_came_to(removal)}")


def _came_to(removal: Removal) -> str:
    name = _name(removal.entry)
    return {
        "removed": f"removed {name}",
        "emptied": f"removed what is ours in {name}",
        "ended": f"ended {name}",
        "stopped": f"stopped the {name}",
        "gone": f"{name} is gone",
        "spared": f"left {name}, which is in use by now: {removal.reason}",
    }[removal.result]


def print_failed(failed: Sequence[Outcome]) -> None:
    """A line for each, and what to do about it, once for all that it may help."""
    for outcome in failed:
        print(f"{outcome.host}: {outcome.reason}", file=sys.stderr)
    for remedy in dict.fromkeys(outcome.remedy for outcome in failed if outcome.remedy):
        print(f"  {remedy}", file=sys.stderr)


def summary(left: Sequence[HostLeft], cleaned: Sequence[HostCleaned]) -> str:
    """All of it in a line."""
    entries = [one for host in left for one in host.entries]
    states = Counter(one.state for one in entries)
    looked = [host for host in left if not (_failed(host.outcomes) and not host.entries)]
    in_full = [host for host in left if not _failed(host.outcomes)]
    parts = [_removed(cleaned)] if cleaned else []
    if not cleaned:
        stays = states["used"] or states["ending"] or states["unknown"]
        nothing = "nothing is to be removed" if stays else "nothing is left"
        parts = [f"{nothing} on {counted(len(in_full), 'hosts')}"] if in_full else []
    if states["used"]:
        # Also by an agent whose coordinator was killed a moment ago: until its lease ends it may come back.
        parts.append(f"{_things(states['used'])} in use: clean up again when no session goes on there")
    if states["ending"]:
        wait = max(one.ends or 0 for one in entries if one.state == "ending")
        parts.append(f"{_things(states['ending'])} left over in {_wait(wait)}: clean up again then")
    if states["unknown"]:
        parts.append(f"{counted(states['unknown'], 'things')} could not be judged")
    if len(in_full) < len(looked):
        parts.append(f"{counted(len(looked) - len(in_full), 'hosts')} could not be looked at in full")
    if len(looked) < len(left):
        parts.append(f"{counted(len(left) - len(looked), 'hosts')} could not be looked at")
    return "; ".join(parts) + _out_of_reach(left)


def _things(count: int) -> str:
    return f"{counted(count, 'things')} {'is' if count == 1 else 'are'}"


def _removed(cleaned: Sequence[HostCleaned]) -> str:
    """`removed 5 of 6 things on 2 hosts (7.6 MiB)`."""
    removals = [removal for host in cleaned for removal in host.removals]
    done = [removal for removal in removals if removal.result not in ("failed", "spared", "")]
    freed = sum(removal.entry.bytes or 0 for removal in done if removal.result == "removed")
    of_all = "" if len(done) == len(removals) else f"{len(done)} of "
    freed_size = f" ({size(freed)})" if freed else ""
    return (
        f"removed {of_all}{counted(len(removals), 'things')} on {counted(len(cleaned), 'hosts')}{freed_size}"
    )


def _out_of_reach(left: Sequence[HostLeft]) -> str:
    users: Counter[str] = Counter()
    for host in left:
        users.update(dict(host.out_of_reach))
    if not users:
        return ""
    named = ", ".join(f"{user} {count}" for user, count in users.most_common(_USERS))
    more = f" and {counted(len(users) - _USERS, 'more users')}" if len(users) > _USERS else ""
    return f" (not looked into: JVMs of {named}{more}; --become sudo looks into all)"


def _failed(outcomes: Sequence[Outcome]) -> list[Outcome]:
    return [outcome for outcome in outcomes if outcome.status is Status.FAILED]


# As JSON


def record(left: Sequence[HostLeft], cleaned: Sequence[HostCleaned]) -> list[dict[str, object]]:
    """The shape that docs/cleanup.md promises."""
    done = {host.host.name: host for host in cleaned}
    return [_host(host, done.get(host.host.name)) for host in left]


def _host(host: HostLeft, done: HostCleaned | None) -> dict[str, object]:
    results = {removal.entry.id: removal.result for removal in done.removals} if done else {}
    failed = _failed((*host.outcomes, *(done.outcomes if done else ())))
    return {
        "host": host.host.name,
        "leftovers": [_leftover(one, results.get(one.id, "")) for one in host.entries],
        "out_of_reach": [{"user": user, "jvms": jvms} for user, jvms in host.out_of_reach],
        "failed": [{"reason": line.reason, "remedy": line.remedy} for line in failed],
    }


def _leftover(one: Leftover, result: str) -> dict[str, object]:
    return {
        "kind": one.kind,
        "path": one.path,
        "pid": one.pid,
        "user": one.user,
        "age_seconds": one.seconds,
        "bytes": one.bytes,
        "state": one.state,
        "left_over_in_seconds": one.ends,
        "reason": one.reason,
        "result": result or None,
    }
