"""`hprofiler ps`: lists what a run would profile, without touching any process."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from hprofiler.cli.options import objects as chosen
from hprofiler.cli.terminal.exit_codes import Exit
from hprofiler.cli.terminal.ledger import outcome_record
from hprofiler.cli.terminal.lines import print_table
from hprofiler.model import Host, Outcome, Process, Status

if TYPE_CHECKING:
    from hprofiler.collect import HostFound

IGNORED_SHOWN = 10
_HEADS = ("PID", "USER", "JVM", "PROCESS", "COMMAND")
_PID = 1


def command(options: argparse.Namespace) -> int:
    from hprofiler.collect import Stop, find_only

    selector = chosen.selector(options)
    located = chosen.target(options)
    stop = Stop()
    found = find_only(located.hosts, selector, chosen.reach(options, located), stop=stop)
    found = [*found, *map(_not_visited, located.absent)]
    if options.json:
        _print_json(found)
    else:
        _print_table(found, located.cluster is not None)
    if stop.level:
        return Exit.after(stop.signal)
    failed = any(outcome.status is Status.FAILED for host in found for outcome in host.outcomes)
    if not any(host.processes for host in found):
        return Exit.NOTHING
    return Exit.PARTIAL if failed else Exit.OK


def _not_visited(line: Outcome) -> HostFound:
    """Parts of the target that cannot be visited."""
    from hprofiler.collect import HostFound

    return HostFound(Host(line.host, ""), (), (), (line,))


def _print_table(found: Sequence[HostFound], inside: bool) -> None:
    """Processes on stdout, everything else on stderr; `inside`: hosts are containers."""
    rows = [_cells(host.host.name, process) for host in found for process in host.processes]
    if rows:
        print_table([("CONTAINER" if inside else "HOST", *_HEADS), *rows], right=[_PID], cut_last=True)
    for host in found:
        for ignored in host.ignored[:IGNORED_SHOWN]:
            print(f"{host.host.name} pid {ignored.pid}: left out: {ignored.reason}", file=sys.stderr)
        for outcome in host.outcomes:
            print(f"{outcome.where}: {outcome.status.value}: {outcome.reason}", file=sys.stderr)
            if outcome.remedy:
                print(f"  {outcome.remedy}", file=sys.stderr)
    hosts = sum(bool(host.processes) for host in found)
    places = "in {} of {} container" if inside else "on {} of {} host"
    where = places.format(hosts, len(found)) + ("" if len(found) == 1 else "s")
    print(f"{'1 process' if len(rows) == 1 else f'{len(rows)} processes'} {where}", file=sys.stderr)


def _cells(host: str, process: Process) -> tuple[str, ...]:
    version = f"JDK {process.jvm_version}" if process.jvm_version else "-"
    return host, str(process.pid), process.user, version, process.label, process.command


def _print_json(found: Sequence[HostFound]) -> None:
    print(
        json.dumps(
            [
                {
                    "host": host.host.name,
                    "processes": [
                        {
                            "pid": process.pid,
                            "user": process.user,
                            "label": process.label,
                            "labels": dict(process.labels),
                            "main_class": process.main_class,
                            "jvm_version": process.jvm_version,
                            "command": process.command,
                        }
                        for process in host.processes
                    ],
                    "ignored": [{"pid": i.pid, "reason": i.reason} for i in host.ignored],
                    "outcomes": [outcome_record(line) for line in host.outcomes],
                }
                for host in found
            ],
            indent=2,
        )
    )
