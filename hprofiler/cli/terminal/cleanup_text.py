"""Texts and JSON of `hprofiler cleanup`."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Sequence

from hprofiler.agent.messages import Leftover
from hprofiler.base.bounded_json import members
from hprofiler.base.text import some
from hprofiler.cli.terminal.lines import age
from hprofiler.collect.cleaning import HostLeft
from hprofiler.model import Outcome, Status
from hprofiler.model.measures import counted, size

_USERS = 3
_OF_LEFTOVER = ("kind", "path", "pid", "user", "bytes", "state", "reason", "result")


def print_list(found: Sequence[HostLeft]) -> None:
    """One line per thing, those to remove first."""
    for host in found:
        entries = sorted(host.entries, key=lambda one: one.state != "left")
        _print_each_once(
            f"{host.host.name}: {'remove' if one.state == 'left' else 'leave'} {_described(one)}"
            for one in entries
        )


def _print_each_once(lines: Iterable[str]) -> None:
    """The same path may be of several containers."""
    for line, times in Counter(lines).items():
        print(line if times == 1 else f"{line} ({times} of them: containers have their own)")


def _described(one: Leftover) -> str:
    """`profiler in pid 7 (yarn): why`, `/tmp/x (root, 12 KiB, 3 h old): why`."""
    facts = [one.user]
    if one.kind in ("folder", "file") and one.bytes is not None:
        facts.append(size(one.bytes))
    if one.seconds is not None:
        facts.append(f"{age(one.seconds)} old")
    return f"{_name(one)} ({', '.join(facts)}): {one.reason}"


def _name(one: Leftover) -> str:
    names = {
        "agent": f"agent {one.pid}",
        "profiler": f"profiler in pid {one.pid}",
    }
    return names.get(one.kind, one.path)


def print_results(cleaned: Sequence[HostLeft]) -> None:
    """One line per removed thing; failures are printed separately."""
    verbs = {
        "removed": "removed",
        "emptied": "removed our files in",
        "ended": "ended",
        "stopped": "stopped the",
    }
    for host in cleaned:
        _print_each_once(
            f"{host.host.name}: {verbs[one.result]} {_name(one)}"
            for one in host.entries
            if one.result in verbs
        )


def print_failed(failed: Sequence[Outcome]) -> None:
    """One line per failure; each remedy once."""
    for outcome in failed:
        print(f"{outcome.host}: {outcome.reason}", file=sys.stderr)
    for remedy in dict.fromkeys(outcome.remedy for outcome in failed if outcome.remedy):
        print(f"  {remedy}", file=sys.stderr)


def summary(found: Sequence[HostLeft]) -> str:
    entries = [one for host in found for one in host.entries]
    tried = [one for one in entries if one.result]
    states = Counter(one.state for one in entries)
    looked = [host for host in found if host.entries or not _failed(host.outcomes)]
    in_full = [host for host in found if not _failed(host.outcomes)]
    parts = []
    if tried:
        done = [one for one in tried if one.result != "failed"]
        freed = sum(one.bytes or 0 for one in done if one.result == "removed")
        of_all = "" if len(done) == len(tried) else f"{len(done)} of "
        hosts = counted(sum(any(one.result for one in host.entries) for host in found), "hosts")
        freed_size = f" ({size(freed)})" if freed else ""
        parts.append(f"removed {of_all}{counted(len(tried), 'things')} on {hosts}{freed_size}")
    elif in_full:
        stays = states["used"] or states["unknown"]
        nothing = "nothing to remove" if stays else "nothing is left"
        parts.append(f"{nothing} on {counted(len(in_full), 'hosts')}")
    if used := states["used"]:
        # Also by an agent whose coordinator was just killed: until its lease ends, it may reconnect.
        things = f"{counted(used, 'things')} {'is' if used == 1 else 'are'}"
        parts.append(f"{things} in use: clean up again when no run uses the host")
    if states["unknown"]:
        parts.append(f"{counted(states['unknown'], 'things')} could not be judged")
    if len(in_full) < len(looked):
        parts.append(f"{counted(len(looked) - len(in_full), 'hosts')} could not be checked completely")
    if len(looked) < len(found):
        parts.append(f"{counted(len(found) - len(looked), 'hosts')} could not be checked")
    return "; ".join(parts) + _out_of_reach(found)


def _out_of_reach(left: Sequence[HostLeft]) -> str:
    users: Counter[str] = Counter()
    for host in left:
        users.update(host.out_of_reach)
    if not users:
        return ""
    named = some([f"{user} {count}" for user, count in users.most_common()], _USERS, "users")
    return f" (not checked: JVMs of {named}; --become sudo checks all)"


def _failed(outcomes: Sequence[Outcome]) -> list[Outcome]:
    return [outcome for outcome in outcomes if outcome.status is Status.FAILED]


def record(found: Sequence[HostLeft]) -> list[dict[str, object]]:
    """As described in docs/cleanup.md."""
    return [
        {
            "host": host.host.name,
            "leftovers": [
                {**members(one, *_OF_LEFTOVER), "age_seconds": one.seconds, "left_over_in_seconds": None}
                for one in host.entries
            ],
            "out_of_reach": [{"user": user, "jvms": jvms} for user, jvms in host.out_of_reach.items()],
            "failed": [
                members(line, "code", "parameters", "reason", "remedy") for line in _failed(host.outcomes)
            ],
        }
        for host in found
    ]
