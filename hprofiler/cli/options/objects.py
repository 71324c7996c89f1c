"""Objects made from parsed options."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path

from hprofiler.agent.bootstrap import AgentBinaries
from hprofiler.base import resources
from hprofiler.base.errors import UsageError
from hprofiler.base.paths import at_home, is_file
from hprofiler.base.resources import selector_directory
from hprofiler.cli.options import audit as audited
from hprofiler.cli.options import kubernetes as kubernetes_options
from hprofiler.cli.options import yarn as yarn_options
from hprofiler.cli.options.sampling import chosen_events, refuse_unused
from hprofiler.cli.options.target import Wanted, wanted
from hprofiler.cli.terminal import prompt as asking
from hprofiler.cli.terminal.lines import say
from hprofiler.collect.visit_group import Reach
from hprofiler.model import Sampling, Selector
from hprofiler.model.event_names import caution_of
from hprofiler.resolve import Located, TargetOptions, resolve
from hprofiler.selectors import selection
from hprofiler.selectors.selection import job_selector, parse_selector
from hprofiler.transport.local import LocalTransport
from hprofiler.transport.pod_exec import ExecTransport
from hprofiler.transport.ssh.connector import SshConnector
from hprofiler.transport.ssh.route import SshOptions

NOTES_SHOWN = 10
# Other events are mostly of JVMs.
_OF_ANY_PROCESS = frozenset({"cpu", "wall"})


def selector_directories(options: argparse.Namespace) -> list[Path]:
    extra = [at_home(options.selector_dir)] if options.selector_dir else []
    return selection.selector_directories(selector_directory(), extra)


def _wanted(options: argparse.Namespace) -> Wanted:
    found: Wanted | None = getattr(options, "wanted", None)
    if found is None:
        found = options.wanted = wanted(options)
    return found


def selector(options: argparse.Namespace) -> Selector:
    """The selector; without --match, all processes of the application or the pods."""
    text, directories = _wanted(options).selector, selector_directories(options)
    if text is None:
        chosen = job_selector(options.selector, directories)
    else:
        chosen = parse_selector(text, directories)
    return replace(
        chosen,
        native=chosen.native or options.engine in ("perf", "pyspy"),
        slices=chosen.slices if getattr(options, "slices", "stage") != "none" else (),
        children=chosen.children if _may_be_native(options) else (),
    )


def _may_be_native(options: argparse.Namespace) -> bool:
    """Whether processes other than JVMs can be recorded as asked."""
    events = chosen_events(options) if hasattr(options, "events") else _OF_ANY_PROCESS
    return options.engine != "async-profiler" and not _OF_ANY_PROCESS.isdisjoint(events)


def target(options: argparse.Namespace) -> Located:
    """The hosts that are meant, and on stderr what is not known of them. UsageError for too many."""
    limit = None if options.yes else yarn_options.CONTAINERS
    meant = _wanted(options)
    targets = TargetOptions(
        hosts=options.hosts,
        hosts_file=options.hosts_file,
        application=meant.application,
        yarn=yarn_options.cluster(options, limit),
        pods=meant.pods,
        kubernetes=kubernetes_options.cluster(options, limit),
    )
    located = yarn_options.locate(targets)
    if meant.note:
        located = replace(located, notes=(*located.notes, meant.note))
    count = len(located.hosts)
    if count > options.max_hosts:
        remedy = f"choose fewer, or allow them with --max-hosts {count}"
        raise UsageError(f"{count} hosts exceed the limit of {options.max_hosts} (--max-hosts)", remedy)
    for note in located.notes[:NOTES_SHOWN]:
        say("note: ", note, sys.stderr)
    if len(located.notes) > NOTES_SHOWN:
        print(f"note: … and {len(located.notes) - NOTES_SHOWN} more such notes", file=sys.stderr)
    return located


def hosts(options: argparse.Namespace) -> Located:
    """The hosts of -h or --hosts-file, or this machine."""
    return resolve(TargetOptions(hosts=options.hosts, hosts_file=options.hosts_file))


def print_cautions(sampling: Sampling) -> None:
    """Print warnings about async-profiler's events on stderr."""
    by_others = sampling.engine in ("perf", "pyspy")
    for caution in map(caution_of, () if by_others else sampling.events):
        if caution:
            say("note: ", f"{caution.text}; {caution.remedy}", sys.stderr)


def sampling(options: argparse.Namespace) -> Sampling:
    events = chosen_events(options)
    refuse_unused(options, events)
    return Sampling(
        events=events,
        frequency=options.frequency,
        duration=options.duration,
        engine=options.engine,
        alloc_interval=options.alloc_interval,
        lock_threshold=options.lock_threshold,
        wall_interval=options.wall_interval,
        keep_raw=options.keep_raw,
        timeline=not options.no_timeline,
        thread_names=options.thread_names,
        python_native=options.python_native,
        metrics=not options.no_metrics,
        counters=options.counters or (),
    )


def output_folder(options: argparse.Namespace) -> Path:
    return at_home(options.output or f"hprofiler-{datetime.now():%Y%m%d-%H%M%S}")


def local_reach(options: argparse.Namespace) -> Reach:
    """The connection to this machine, without SSH."""
    become: str | None = getattr(options, "become", None)
    timeout: float = getattr(options, "timeout", 30.0)
    return Reach(lambda host: LocalTransport(host, become), _binaries(options), 1, timeout)


def reach(options: argparse.Namespace, located: Located) -> Reach:
    """The connections to the target's hosts, with the audit log."""
    return replace(_reach(options, located), audit=audited.begin(options, located))


def _reach(options: argparse.Namespace, located: Located) -> Reach:
    if located.target.kind == "local":
        return local_reach(options)

    if located.cluster is not None:
        debugging = kubernetes_options.debugging(options)
        connect = partial(ExecTransport, cluster=located.cluster, debugging=debugging)
        return Reach(connect, _binaries(options), options.parallel, options.timeout)
    ssh = SshOptions(
        user=options.user,
        port=options.port,
        identity=file(options.identity, "--identity"),
        config_path=file(options.ssh_config, "--ssh-config"),
        accept_new_host_keys=options.accept_new_host_keys,
        timeout=options.timeout,
        become=options.become,
    )
    connector = SshConnector(ssh, asking.passphrase)
    return Reach(connector.transport, _binaries(options), options.parallel, options.timeout)


def _binaries(options: argparse.Namespace) -> AgentBinaries:
    library = getattr(options, "async_profiler", None)
    blobs = resources.blobs(library)
    is_sent = hasattr(options, "async_profiler") and options.engine not in ("perf", "pyspy")
    if is_sent and getattr(options, "become", None):
        resources.refuse_foreign(blobs["async-profiler"])
    return AgentBinaries(resources.agents(), blobs)


def file(name: str | None, option: str) -> Path | None:
    if name is None:
        return None
    path = at_home(name)
    try:
        path.open("rb").close() if is_file(path) else path.stat()
    except OSError as error:
        raise UsageError(f"{option} {name}: {(error.strerror or 'cannot be read').lower()}") from error
    if not is_file(path):
        raise UsageError(f"{option} {name}: is not a regular file")
    return path
