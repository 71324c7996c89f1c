"""Objects made from parsed options."""

from __future__ import annotations

import argparse
import re
import sys
import threading
import time
from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from hprofiler.agent.bootstrap import AgentBinaries
from hprofiler.base import resources
from hprofiler.base.bounded_json import members
from hprofiler.base.errors import NotYet, UsageError
from hprofiler.base.paths import at_home, is_file, is_there
from hprofiler.cli.options import audit as audited
from hprofiler.cli.options import yarn as yarn_options
from hprofiler.cli.options.safety import MOST_HOSTS
from hprofiler.cli.options.sampling import WAIT, chosen_events, refuse_not_kept, refuse_unused
from hprofiler.cli.options.target import Wanted, wanted
from hprofiler.cli.terminal import prompt as asking
from hprofiler.cli.terminal.lines import say
from hprofiler.collect.following import WITHOUT_JOINING
from hprofiler.collect.limits import AGENT_CPU, Care
from hprofiler.collect.visit_group import Reach
from hprofiler.kubernetes import Access
from hprofiler.model import PART, Sampling, Selector, part_of
from hprofiler.model.event_names import caution_of
from hprofiler.model.measures import duration
from hprofiler.model.trigger import Trigger
from hprofiler.resolve import (
    KubernetesOptions,
    Located,
    SparkDriver,
    TargetOptions,
    TooMany,
    resolve,
    spark_driver,
)
from hprofiler.resolve.host_list import parse_host_map
from hprofiler.selectors.selection import job_selector, parse_selector, selector_directories
from hprofiler.transport.local import LocalTransport
from hprofiler.transport.pod_exec import Debugging, ExecTransport

NOTES_SHOWN = 10
_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*://|[\w.-]+:[0-9]+(?:/|$)", re.IGNORECASE)
_LOOK_SECONDS = 2.0
"""How often a target that is not there yet is looked for."""
_BEFORE_AND_AFTER = 300
"""Seconds that a debug container lives longer than the recording."""
# Other events are mostly of JVMs.
_OF_ANY_PROCESS = frozenset({"cpu", "wall"})


def _wanted(options: argparse.Namespace) -> Wanted:
    found: Wanted | None = getattr(options, "wanted", None)
    if found is None:
        found = options.wanted = wanted(options)
    return found


def selector(options: argparse.Namespace) -> Selector:
    """The selector; without --match, all processes of the application or the pods."""
    text, directories = _wanted(options).selector, selector_directories(options.selector_dir)
    if text is None:
        chosen = job_selector(options.selector, directories)
    else:
        chosen = parse_selector(text, directories)
    return replace(
        chosen,
        native=chosen.native or options.engine in ("perf", "pyspy"),
        slices=chosen.slices if getattr(options, "slices", "stage") != "none" else (),
        children=chosen.children if _may_be_native(options) else (),
        starters=chosen.starters if _may_be_native(options) else (),
        name=_wanted(options).name,
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
        kubernetes=_pods(options, limit),
    )
    located = _locate(targets, getattr(options, "wait", 0.0))
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


def _locate(targets: TargetOptions, wait: float) -> Located:
    """Resolve, and wait so many seconds for the target; asks the user if there are very many containers."""
    try:
        return _when_there(targets, wait)
    except TooMany as much:
        if not asking.can_ask() or not asking.agrees(f"{much.reason}. Profile all of them?"):
            raise
        yarn = replace(targets.yarn, limit=None)
        return resolve(replace(targets, yarn=yarn, kubernetes=replace(targets.kubernetes, limit=None)))


def _when_there(targets: TargetOptions, wait: float) -> Located:
    until = time.monotonic() + wait
    waits = False
    while True:
        try:
            return resolve(targets)
        except NotYet as error:
            if time.monotonic() > until:
                if wait:
                    error.remedy = f"it was waited for {duration(wait)}; --wait takes a longer time"
                raise
            if not waits:
                say("note: ", f"{error.reason}; waiting for it for up to {duration(wait)}", sys.stderr)
                waits = True
        time.sleep(_LOOK_SECONDS)


def joining(options: argparse.Namespace, selector: Selector) -> dict[str, Any]:
    """The members of a `RunRequest` about processes that start later. UsageError for contradictions."""
    joins = not getattr(options, "no_join", True)
    wait, until_over = getattr(options, "wait", 0.0), getattr(options, "until_job", False)
    if wait and not joins:
        raise UsageError(
            "--wait waits for processes that join, but --no-join is given", "leave one of them out"
        )
    if wait and selector.kind in WITHOUT_JOINING:
        reason = f"--wait is for processes that start later, but -j {selector.text} names some that are there"
        raise UsageError(reason, "use a selector other than process ids or a pipe")
    trigger: Trigger | None = getattr(options, "when", None)
    keep_last = getattr(options, "keep_last", None)
    waits_for_it = trigger is not None and keep_last is None
    return {
        "joins": joins,
        "until_over": until_over,
        "wait": 0.0 if waits_for_it else wait,
        "most_hosts": getattr(options, "max_hosts", MOST_HOSTS),
        "trigger": trigger,
        "patience": wait or (WAIT if waits_for_it else threading.TIMEOUT_MAX),
        "keep_last": keep_last,
    }


def _pods(options: argparse.Namespace, limit: int | None = None) -> KubernetesOptions:
    if options.all_namespaces and options.namespace is not None:
        raise UsageError("-A (all namespaces) and -n (one namespace) exclude each other", "give one of them")
    if options.via == "ssh" and options.debug_container is not None:
        raise UsageError("--debug-container works only with --via exec", "leave out --via ssh")
    return KubernetesOptions(
        access=Access(options.kubeconfig, options.context, options.timeout),
        namespace=options.namespace,
        all_namespaces=options.all_namespaces,
        containers=tuple(options.container or ()),
        fields=options.field_selector,
        via=options.via,
        host_map={} if options.host_map is None else parse_host_map(options.host_map),
        limit=limit,
    )


def hosts(options: argparse.Namespace) -> Located:
    """The hosts of -h or --hosts-file, or this machine."""
    return resolve(TargetOptions(hosts=options.hosts, hosts_file=options.hosts_file))


def print_cautions(sampling: Sampling) -> None:
    """Print warnings about async-profiler's events on stderr."""
    by_others = sampling.engine in ("perf", "pyspy")
    for caution in map(caution_of, () if by_others else sampling.events):
        if caution:
            say("note: ", f"{caution.text}; {caution.remedy}", sys.stderr)


def print_limits(options: argparse.Namespace) -> None:
    """Print on stderr how long a run may take whose end is not its time."""
    wait, last = getattr(options, "wait", 0.0), getattr(options, "keep_last", None)
    trigger: Trigger | None = getattr(options, "when", None)
    if last is None and trigger:
        limit = f"for at most {duration(wait or WAIT)} (--wait TIME sets another limit)"
        print(f"note: recording when '{trigger}' is true; waiting {limit}", file=sys.stderr)
    elif wait:
        what = f"the first process, and until '{trigger}'," if trigger else "the first process"
        print(f"note: waiting for {what} for at most {duration(wait)}", file=sys.stderr)
    if last is not None:
        limit = f"for at most {duration(options.duration)} (-t TIME sets another limit)"
        until = f"until '{trigger}' or Ctrl-C" if trigger else "until Ctrl-C"
        print(f"note: keeping the last {duration(last)}: {until}, {limit}", file=sys.stderr)
    elif getattr(options, "until_job", False):
        limit = f"for at most {duration(options.duration)} (-t job:TIME sets another limit)"
        print(f"note: recording until the job ends, {limit}", file=sys.stderr)


def sampling(options: argparse.Namespace) -> Sampling:
    events = chosen_events(options)
    refuse_unused(options, events)
    refuse_not_kept(options, events)
    return Sampling(
        events=events,
        **members(options, "frequency", "duration", "engine", "keep_raw", "thread_names", "python_native"),
        **members(options, "alloc_interval", "lock_threshold", "wall_interval"),
        timeline=not options.no_timeline,
        metrics=not options.no_metrics,
        counters=options.counters or (),
        part=part_of(options.duration) if options.keep_last is None else PART,
    )


def care(options: argparse.Namespace) -> Care:
    """The chosen limits; `demo` has none of these options."""
    return Care(
        canary=getattr(options, "canary", False),
        busy=getattr(options, "force_busy", True),
        agent_cpu=getattr(options, "agent_cpu", AGENT_CPU),
    )


def spark_source(options: argparse.Namespace, located: Located) -> SparkDriver | Path | None:
    """Where stages are known. UsageError for a source that is none, or would not be used."""
    named: str | None = getattr(options, "spark", None)
    if getattr(options, "slices", "none") == "none" or options.no_timeline:
        if named is None:
            return None
        unused = "--no-timeline" if options.no_timeline else "--slices none"
        raise UsageError(f"--spark has no effect with {unused}", "leave one of them out")
    if named is None:
        return located.driver
    path = at_home(named)
    if "://" not in named and is_there(path):
        return path
    if not _ADDRESS.match(named):
        raise UsageError(f"--spark {named}: there is no such file", "name an event log, or write http://…")
    driver = spark_driver(named, options.yarn_ca)
    if driver.application is None and located.driver is not None:
        driver = replace(driver, application=located.driver.application)
    return driver


def refuse_without_driver(
    trigger: Trigger | None, source: SparkDriver | Path | None, located: Located
) -> None:
    """UsageError for a condition that only a Spark driver knows, where none is known."""
    if trigger and trigger.of_spark and not isinstance(source, SparkDriver) and located.driver is None:
        remedy = "name its page with --spark http://driver:4040, or its application on YARN with -j"
        raise UsageError(f"--when '{trigger}' needs Spark's driver, which is not known", remedy)


def output_folder(options: argparse.Namespace, begin: str = "hprofiler") -> Path:
    return at_home(options.output or f"{begin}-{datetime.now():%Y%m%d-%H%M%S}")


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
        connect = partial(ExecTransport, cluster=located.cluster, debugging=debugging(options))
        return Reach(connect, _binaries(options), options.parallel, options.timeout)
    from hprofiler.transport.ssh.connector import SshConnector  # imports paramiko
    from hprofiler.transport.ssh.route import SshOptions

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


def debugging(options: argparse.Namespace) -> Debugging | None:
    """Settings of debug containers; they live a little longer than the recording."""
    if options.debug_container is None:
        return None
    waits = getattr(options, "wait", 0.0) or (WAIT if getattr(options, "when", None) else 0.0)
    seconds = int(getattr(options, "duration", 0) + waits) + _BEFORE_AND_AFTER
    return Debugging(options.debug_container, seconds)


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
