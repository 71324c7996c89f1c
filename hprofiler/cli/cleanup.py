"""`hprofiler cleanup`: lists what hprofiler left on hosts, then removes it, and nothing of anybody else's."""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING, Callable, FrozenSet, List, Optional, Sequence, Tuple

from hprofiler.cli import options as chosen
from hprofiler.cli.exits import Exit
from hprofiler.model import Outcome, Status

if TYPE_CHECKING:
    from hprofiler.agent import Leftover
    from hprofiler.collect import HostCleaned, HostLeft, HostProgress, Reach
    from hprofiler.model import Host

_HINT = "nothing was removed: `hprofiler cleanup --yes` removes what is marked so"
_UNITS = ((86400, "d"), (3600, "h"), (60, "min"), (1, "s"))


def command(options: argparse.Namespace) -> int:
    located = chosen.hosts(options)
    return clean_up(options, located.hosts, chosen.reach(options, located))


def clean_up(options: argparse.Namespace, hosts: Sequence[Host], reach: Reach) -> Exit:
    """List what is left on these hosts, and remove it if the user agrees. `options`: yes, json."""
    from hprofiler.collect import Stop, clean, look_for_leftovers

    stop = Stop()
    left = look_for_leftovers(hosts, reach, _counting(len(hosts)), stop)
    if not options.json:
        _print_list(left)
    wanted = _wanted(left)
    cleaned: List[HostCleaned] = []
    agreed = not stop.level and bool(wanted) and _agreed(options, wanted)
    if agreed:
        cleaned = clean(wanted, reach, _counting(len(wanted)), stop)
    if options.json:
        print(json.dumps(_record(left, cleaned), indent=2))
    else:
        _print_cleaned(cleaned)
    _print_failed(left, cleaned)
    if stop.level:
        return Exit.INTERRUPTED
    return _verdict(left, cleaned, bool(wanted) and not agreed)


def _counting(hosts: int) -> Callable[[HostProgress], None]:
    """On a terminal, how many of many hosts are through."""
    ended: List[str] = []

    def listener(progress: HostProgress) -> None:
        if hosts > 1 and progress.stage in ("done", "failed") and sys.stderr.isatty():
            ended.append(progress.host)
            end = "\n" if len(ended) == hosts else ""
            print(f"\r{len(ended)} of {hosts} hosts", end=end, file=sys.stderr, flush=True)

    return listener


def _wanted(left: Sequence[HostLeft]) -> List[Tuple[Host, FrozenSet[str]]]:
    ids = [(host.host, frozenset(one.id for one in host.entries if one.state == "left")) for host in left]
    return [(host, some) for host, some in ids if some]


def _agreed(options: argparse.Namespace, wanted: Sequence[Tuple[Host, FrozenSet[str]]]) -> bool:
    """Whether the user wants it: by --yes, or by an answer on the terminal."""
    if options.yes:
        return True
    if options.json or not (sys.stdin.isatty() and sys.stderr.isatty()):
        if not options.json:
            print(_HINT, file=sys.stderr)
        return False
    things = _counted(sum(len(ids) for _, ids in wanted), "thing")
    print(f"Remove {things} on {_counted(len(wanted), 'host')}? [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _counted(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def _print_list(left: Sequence[HostLeft]) -> None:
    for host in left:
        for one in sorted(host.entries, key=lambda one: one.state != "left"):
            print(f"{host.host.name}: {'remove' if one.state == 'left' else 'leave'} {_described(one)}")
    if not any(one.state == "left" for host in left for one in host.entries):
        looked = [host for host in left if not _failed(host.outcomes)]
        if looked:
            print(f"nothing is left on {_counted(len(looked), 'host')}")


def _described(one: Leftover) -> str:
    """`the profiler in pid 7 (yarn): why`, `/tmp/x (root, 12 kB, 3 h old): why`."""
    words = {
        "agent": f"agent {one.pid}",
        "program": f"process {one.pid}",
        "profiler": f"profiler in pid {one.pid}",
    }
    facts = [one.user]
    if one.kind == "program":
        facts.append(one.path)
    if one.kind in ("folder", "file") and one.bytes is not None:
        facts.append(_size(one.bytes))
    if one.seconds is not None:
        facts.append(f"{_age(one.seconds)} old")
    return f"{words.get(one.kind, one.path)} ({', '.join(facts)}): {one.reason}"


def _size(count: int) -> str:
    for limit, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if count >= limit:
            return f"{count / limit:.1f} {unit}"
    return f"{count} bytes"


def _age(seconds: int) -> str:
    length, unit = next((pair for pair in _UNITS if seconds >= pair[0]), _UNITS[-1])
    return f"{seconds // length} {unit}"


def _print_cleaned(cleaned: Sequence[HostCleaned]) -> None:
    for host in cleaned:
        for pid in host.ended:
            print(f"{host.host.name}: ended process {pid}")
        for pid in host.stopped:
            print(f"{host.host.name}: stopped the profiler in pid {pid}")
        for path in host.removed:
            print(f"{host.host.name}: removed {path}")


def _print_failed(left: Sequence[HostLeft], cleaned: Sequence[HostCleaned]) -> None:
    for outcome in _outcomes(left, cleaned):
        print(f"{outcome.host}: {outcome.reason}", file=sys.stderr)
        if outcome.remedy:
            print(f"  {outcome.remedy}", file=sys.stderr)


def _outcomes(left: Sequence[HostLeft], cleaned: Sequence[HostCleaned]) -> List[Outcome]:
    lines = [*(host.outcomes for host in left), *(host.outcomes for host in cleaned)]
    return [line for some in lines for line in _failed(some)]


def _failed(outcomes: Tuple[Outcome, ...]) -> List[Outcome]:
    return [outcome for outcome in outcomes if outcome.status is Status.FAILED]


def _verdict(left: Sequence[HostLeft], cleaned: Sequence[HostCleaned], unremoved: bool) -> Exit:
    """OK where nothing is left over, NOTHING where no host could be looked at, PARTIAL in between."""
    if all(_failed(host.outcomes) and not host.entries for host in left):
        return Exit.NOTHING
    unknown = any(one.state == "unknown" for host in left for one in host.entries)
    return Exit.PARTIAL if unremoved or unknown or _outcomes(left, cleaned) else Exit.OK


def _record(left: Sequence[HostLeft], cleaned: Sequence[HostCleaned]) -> object:
    """The shape that docs/cleanup.md promises."""
    done = {host.host.name: host for host in cleaned}
    return [_host(host, done.get(host.host.name)) for host in left]


def _host(host: HostLeft, done: Optional[HostCleaned]) -> object:
    failed = _failed((*host.outcomes, *(done.outcomes if done else ())))
    return {
        "host": host.host.name,
        "leftovers": [
            {
                "kind": one.kind,
                "path": one.path,
                "pid": one.pid,
                "user": one.user,
                "age_seconds": one.seconds,
                "bytes": one.bytes,
                "state": one.state,
                "reason": one.reason,
            }
            for one in host.entries
        ],
        "removed": list(done.removed) if done else [],
        "stopped": list(done.stopped) if done else [],
        "ended": list(done.ended) if done else [],
        "failed": [{"reason": line.reason, "remedy": line.remedy} for line in failed],
    }
