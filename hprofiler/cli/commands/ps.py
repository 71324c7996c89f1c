"""`hprofiler ps`: lists what a run would profile, without touching any process."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from hprofiler.base.bounded_json import members
from hprofiler.cli.options import objects as chosen
from hprofiler.cli.terminal.exit_codes import Exit
from hprofiler.cli.terminal.ledger import outcome_record
from hprofiler.cli.terminal.lines import print_json, print_table
from hprofiler.collect.checking import HostFound, find_only
from hprofiler.collect.stop import Stop
from hprofiler.model import Host, Process, Status
from hprofiler.model.measures import counted

IGNORED_SHOWN = 10
_HEADS = ("PID", "USER", "JVM", "PROCESS", "COMMAND")
_PID = 1
_OF_PROCESS = ("pid", "user", "label", "labels", "main_class", "jvm_version", "command")


def command(options: argparse.Namespace) -> int:
    selector = chosen.selector(options)
    located = chosen.target(options)
    stop = Stop()
    found = find_only(located.hosts, selector, chosen.reach(options, located), stop=stop)
    found = [*found, *(HostFound(Host(line.host, ""), outcomes=(line,)) for line in located.absent)]
    if options.json:
        print_json([_record(host) for host in found])
    else:
        _print_table(found, located.cluster is not None, selector.kind == "pids")
    if stop.level:
        return Exit.after(stop.signal)
    failed = any(outcome.status is Status.FAILED for host in found for outcome in host.outcomes)
    if not any(host.processes for host in found):
        return Exit.NOTHING
    return Exit.PARTIAL if failed else Exit.OK


def _print_table(found: Sequence[HostFound], inside: bool, named: bool) -> None:
    """Processes on stdout, everything else on stderr; `inside`: containers; `named`: by ids."""
    rows = [
        (host.host.name, str(one.pid), one.user, _version(one), one.label, one.command)
        for host in found
        for one in host.processes
    ]
    if rows:
        print_table([("CONTAINER" if inside else "HOST", *_HEADS), *rows], right=[_PID], cut_last=True)
    for host in found:
        for ignored in host.ignored[:IGNORED_SHOWN]:
            print(f"{host.host.name} pid {ignored.pid}: left out: {ignored.reason}", file=sys.stderr)
        for outcome in host.outcomes:
            if named and host.ignored and outcome.code == "no-match":
                continue  # it has the same reasons
            print(f"{outcome.where}: {outcome.status.value}: {outcome.reason}", file=sys.stderr)
            if outcome.remedy:
                print(f"  {outcome.remedy}", file=sys.stderr)
    hosts = sum(bool(host.processes) for host in found)
    where = (
        f"{'in' if inside else 'on'} {hosts} of {counted(len(found), 'containers' if inside else 'hosts')}"
    )
    print(f"{counted(len(rows), 'processes')} {where}", file=sys.stderr)


def _version(process: Process) -> str:
    return f"JDK {process.jvm_version}" if process.jvm_version else "-"


def _record(host: HostFound) -> dict[str, object]:
    return {
        "host": host.host.name,
        "processes": [members(process, *_OF_PROCESS) for process in host.processes],
        "ignored": [members(one, "pid", "reason") for one in host.ignored],
        "outcomes": [outcome_record(line) for line in host.outcomes],
    }
