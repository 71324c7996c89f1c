"""`hprofiler cleanup`: lists what hprofiler left on hosts, then removes it."""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Sequence
from dataclasses import replace

from hprofiler.cli.options import objects as chosen
from hprofiler.cli.terminal import cleanup_text as words
from hprofiler.cli.terminal.exit_codes import Exit
from hprofiler.cli.terminal.lines import print_json
from hprofiler.cli.terminal.progress import counters
from hprofiler.cli.terminal.prompt import agrees, can_ask
from hprofiler.collect.cleaning import HostLeft, sweep
from hprofiler.collect.stop import Stop
from hprofiler.collect.visit_group import HostProgress, Reach
from hprofiler.model import Host, Outcome, Status
from hprofiler.model.measures import counted

_HINT = "nothing was removed; `hprofiler cleanup --yes` removes what is marked so"


def command(options: argparse.Namespace) -> int:
    located = chosen.hosts(options)
    return clean_up(options, located.hosts, chosen.reach(options, located))


def clean_up(options: argparse.Namespace, hosts: Sequence[Host], reach: Reach) -> Exit:
    """List what is left on these hosts, and remove it if the user agrees. `options`: yes, json."""
    stop = Stop()

    def visit(hosts: Sequence[Host], what: str, dry: bool) -> list[HostLeft]:
        ended = itertools.count(1)
        with counters() as count:
            count(what, 0, len(hosts))

            def listener(progress: HostProgress) -> None:
                if progress.stage in ("done", "failed"):
                    count(what, next(ended), len(hosts))

            return sweep(hosts, reach, listener, stop, dry)

    found = visit(hosts, "looked at", dry=True)
    if not options.json:
        words.print_list(found)
    wanted = [host for host in found if any(one.state == "left" for one in host.entries)]
    agreed = not stop.level and bool(wanted) and _agreed(options, wanted)
    if agreed:
        cleaned = visit([host.host for host in wanted], "cleaned", dry=False)
        if not options.json:
            words.print_results(cleaned)
        found = _after(found, cleaned)
    if options.json:
        print_json(words.record(found))
    words.print_failed(_failed(found))
    if not options.json and (agreed or not wanted):
        print(words.summary(found))
    if stop.level:
        return Exit.after(stop.signal)
    return _verdict(found, bool(wanted) and not agreed)


def _after(found: Sequence[HostLeft], cleaned: Sequence[HostLeft]) -> list[HostLeft]:
    """The last state of each host, with all failures."""
    last = {host.host.name: host for host in cleaned}

    def after(host: HostLeft) -> HostLeft:
        now = last.get(host.host.name)
        if now is None:
            return host
        outcomes = (*host.outcomes, *(line for line in now.outcomes if line not in host.outcomes))
        entries = now.entries if not _failed([now]) or now.entries else host.entries
        return replace(host, entries=entries, outcomes=outcomes)

    return [after(host) for host in found]


def _agreed(options: argparse.Namespace, wanted: Sequence[HostLeft]) -> bool:
    """Whether the user agreed, with --yes or on the terminal."""
    if options.yes:
        return True
    if options.json or not can_ask():
        if not options.json:
            print(_HINT, file=sys.stderr)
        return False
    things = counted(sum(one.state == "left" for host in wanted for one in host.entries), "things")
    agreed = agrees(f"Remove {things} on {counted(len(wanted), 'hosts')}?")
    if not agreed:
        print("nothing was removed", file=sys.stderr)
    return agreed


def _failed(hosts: Sequence[HostLeft]) -> list[Outcome]:
    return [line for host in hosts for line in host.outcomes if line.status is Status.FAILED]


def _verdict(found: Sequence[HostLeft], unremoved: bool) -> Exit:
    """OK if nothing is left, NOTHING if no host could be checked, else PARTIAL."""
    if all(_failed([host]) and not host.entries for host in found):
        return Exit.NOTHING
    unknown = any(one.state == "unknown" for host in found for one in host.entries)
    return Exit.PARTIAL if unremoved or unknown or _failed(found) else Exit.OK
