"""`hprofiler ps`: what a run would profile. Nothing is attached to, nothing is signalled."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from typing import TYPE_CHECKING, Sequence

from hprofiler.cli import options as chosen
from hprofiler.cli.exits import Exit
from hprofiler.model import Host, Outcome, Process, Status

if TYPE_CHECKING:
    from hprofiler.collect import HostFound


IGNORED_SHOWN = 10


def command(options: argparse.Namespace) -> int:
    from hprofiler.collect import find_only

    selector = chosen.selector(options)
    located = chosen.target(options)
    chosen.print_notes(located)
    found = find_only(located.hosts, selector, chosen.reach(options, located))
    found = [*found, *map(_not_visited, located.absent)]
    (_print_json if options.json else _print_table)(found)
    failed = any(outcome.status is Status.FAILED for host in found for outcome in host.outcomes)
    if not any(host.processes for host in found):
        return Exit.NOTHING
    return Exit.PARTIAL if failed else Exit.OK


def _not_visited(line: Outcome) -> HostFound:
    """What belongs to the target and cannot be visited."""
    from hprofiler.collect import HostFound

    return HostFound(Host(line.host, ""), None, 0, (), (), (line,))


def _print_table(found: Sequence[HostFound]) -> None:
    width = max(len(host.host.name) for host in found)
    columns = shutil.get_terminal_size((160, 24)).columns
    for host in found:
        for process in host.processes:
            print(_row(host.host.name.ljust(width), process)[:columns])
        for ignored in host.ignored[:IGNORED_SHOWN]:
            print(f"{host.host.name} pid {ignored.pid}: left out: {ignored.reason}", file=sys.stderr)
        for outcome in host.outcomes:
            where = f"{outcome.host} pid {outcome.pid}" if outcome.pid else outcome.host
            print(f"{where}: {outcome.status.value}: {outcome.reason}", file=sys.stderr)
            if outcome.remedy:
                print(f"  {outcome.remedy}", file=sys.stderr)
    total = sum(len(host.processes) for host in found)
    hosts = sum(bool(host.processes) for host in found)
    processes = "1 process" if total == 1 else f"{total} processes"
    print(f"{processes} on {hosts} of {len(found)} hosts", file=sys.stderr)


def _row(host: str, process: Process) -> str:
    version = f"JDK {process.jvm_version}" if process.jvm_version else ""
    return f"{host}  {process.pid:>7}  {process.user:<10}  {version:<12}  {process.label}  {process.command}"


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
                    "outcomes": [
                        {"status": o.status.value, "stage": o.stage, "reason": o.reason, "remedy": o.remedy}
                        for o in host.outcomes
                    ],
                }
                for host in found
            ],
            indent=2,
        )
    )
