"""`hprofiler ps`: lists what a run would profile, without touching any process."""

from __future__ import annotations

import argparse
import json
import sys
import threading
import time
from collections.abc import Sequence

from hprofiler.base.bounded_json import members
from hprofiler.base.text import printable
from hprofiler.cli.options import objects as chosen
from hprofiler.cli.terminal.exit_codes import Exit
from hprofiler.cli.terminal.ledger import outcome_record
from hprofiler.cli.terminal.lines import print_json, print_table
from hprofiler.cli.terminal.streams import failed
from hprofiler.collect.checking import HostFound, find_only
from hprofiler.collect.following import Following
from hprofiler.collect.stop import Stop
from hprofiler.collect.visit_group import HostProgress
from hprofiler.collect.watching import look
from hprofiler.model import Host, Process, Selector, Status
from hprofiler.model.measures import counted
from hprofiler.resolve import Located

IGNORED_SHOWN = 10
_HEADS = ("PID", "USER", "JVM", "PROCESS", "COMMAND")
_PID = 1
_OF_PROCESS = ("pid", "user", "label", "labels", "main_class", "jvm_version", "command")


def command(options: argparse.Namespace) -> int:
    selector = chosen.selector(options)
    located = chosen.target(options)
    stop = Stop()
    if options.watch:
        return _watch(options, located, selector, stop)
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


def _watch(options: argparse.Namespace, located: Located, selector: Selector, stop: Stop) -> int:
    """Print what appears and disappears, until Ctrl-C, or until nobody reads it."""
    changes = _Changes([host.name for host in located.hosts], options.json, stop)
    following = Following(located.look, most_hosts=options.max_hosts)
    reach = chosen.reach(options, located)
    found = look(located.hosts, selector, reach, changes.add, changes.listen, stop, following)
    if stop.signal:
        return Exit.after(stop.signal)
    reached = [host for host in found if not any(one.status is Status.FAILED for one in host.outcomes)]
    return Exit.OK if reached else Exit.NOTHING


class _Changes:
    """Prints a line for each process that is there at first (`runs`), has `started` or `ended`."""

    def __init__(self, hosts: Sequence[str], as_json: bool, stop: Stop) -> None:
        self._new = set(hosts)
        self._json, self._stop = as_json, stop
        self._known: dict[str, dict[tuple[int, int], Process]] = {}
        self._printing = threading.Lock()

    def add(self, found: HostFound) -> None:
        """What is on a host now. From any thread."""
        host = found.host.name
        with self._printing:
            now = {(one.pid, one.start_time): one for one in found.processes}
            before = self._known.get(host, {})
            for process in [one for key, one in before.items() if key not in now]:
                self._print("ended", host, process)
            word = "runs" if host in self._new else "started"
            for process in [one for key, one in now.items() if key not in before]:
                self._print(word, host, process)
            self._new.discard(host)
            self._known[host] = now
            if failed():
                self._stop.finish()

    def listen(self, progress: HostProgress) -> None:
        if progress.stage == "failed":
            if self._json:
                why = {"host": progress.host, "reason": progress.detail}
                with self._printing:
                    print(json.dumps({"time": time.time(), "what": "lost", **why}), flush=True)
            else:
                print(f"{progress.host}: {printable(progress.detail)}", file=sys.stderr, flush=True)

    def _print(self, what: str, host: str, process: Process) -> None:
        if self._json:
            record = {"time": time.time(), "what": what, "host": host, **members(process, *_OF_PROCESS)}
            print(json.dumps(record), flush=True)
        else:
            who = f"{process.pid:>7}  {process.user}  {_version(process)}  {process.label}"
            print(printable(f"{time.strftime('%H:%M:%S')}  {what:<7}  {host}  {who}"), flush=True)


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
