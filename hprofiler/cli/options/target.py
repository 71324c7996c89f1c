"""What `-j` and the options beside it mean: decided once, for all that follows."""

from __future__ import annotations

import argparse
import re
from typing import NamedTuple

from hprofiler.base.errors import UsageError

YARN_PREFIX = "yarn:"
_PODS_PREFIX = re.compile(r"(?:^|\s)\s*k8s:", re.IGNORECASE)
_OF_PODS = (
    *("namespace", "all_namespaces", "context", "kubeconfig", "container", "field_selector", "via"),
    "debug_container",
)
_SHORT = {"namespace": "-n", "all_namespaces": "-A"}


class Wanted(NamedTuple):
    """`application` and `pods` are as in `TargetOptions`; where both are None hosts are meant.

    `selector` names processes on the hosts; None: all that runs in the containers. `name` is a text that
    their names must have.
    """

    application: str | None
    pods: tuple[str, ...] | None
    selector: str | None
    note: str | None = None
    name: str = ""


class SelectorAction(argparse.Action):
    """`-j` once, or several times if each names pods (`k8s:`)."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: object,
        option_string: str | None = None,
    ) -> None:
        before = getattr(namespace, self.dest)
        both = values if before is None else f"{before} {values}"
        if before is not None and not (_names_pods(before) and _names_pods(str(values))):
            reason = f"given twice, {before!r} and {values!r}; only k8s:… may be repeated"
            raise argparse.ArgumentError(self, reason)
        setattr(namespace, self.dest, both)


def _names_pods(typed: str) -> bool:
    return _PODS_PREFIX.match(typed) is not None


def wanted(options: argparse.Namespace) -> Wanted:
    """What is asked for. UsageError for options that contradict each other, or would do nothing."""
    typed: str = (options.selector or "").strip()
    if options.match is not None and _names_pods(options.match):
        remedy = "name pods with -j, which may be repeated; --match takes a selector of processes"
        raise UsageError("--match selects processes, but k8s: names pods", remedy)
    pods = tuple(map(str.strip, _PODS_PREFIX.split(typed)[1:])) if _names_pods(typed) else None
    if pods is None:
        _refuse_without_prefix(options, typed)
    application, note = _application(options, typed, pods is not None)
    _refuse_unused(options, application is not None, pods is not None)
    if application or pods is not None:
        return Wanted(application, pods, options.match)
    everything = typed == YARN_PREFIX
    if everything:
        return Wanted(application, pods, options.match, note)
    return Wanted(application, pods, str(options.selector), note, options.match or "")


def _application(options: argparse.Namespace, typed: str, names_pods: bool) -> tuple[str | None, str | None]:
    """`application_…` (or MapReduce's `job_…`) is one, `yarn:name=…` are several; and a note on neither.

    With -c anything else is a selector of processes in all running applications, but for what looks like an
    id and is none: that is a UsageError. Where hosts are named, and no -c, everything is a selector of
    processes there.
    """
    from hprofiler.resolve.yarn.ids import application_of, looks_like_id
    from hprofiler.resolve.yarn.site import is_configured

    if typed.startswith(YARN_PREFIX):
        return typed[len(YARN_PREFIX) :].strip(), None
    cluster, is_id = options.yarn is not None, looks_like_id(typed)
    hosts = options.hosts is not None or options.hosts_file is not None
    if not is_id or not (cluster or is_configured()):
        where = "on these hosts" if hosts else "on this machine"
        note = f"-j {typed} matches command lines {where}; for a YARN application add -c http://rm:8088"
        return ("" if cluster else None), (note if is_id else None)
    if not cluster and (hosts or names_pods):
        return None, None
    identity = application_of(typed)
    if identity is None:
        remedy = "copy the id from `hprofiler apps`, or use yarn:name=… for several applications"
        raise UsageError(f"-j {typed}: not the id of an application", remedy)
    return identity, None


def _refuse_without_prefix(options: argparse.Namespace, typed: str) -> None:
    """UsageError if options are for pods, but `-j` lacks `k8s:`."""
    from hprofiler.resolve.kubernetes.asked import names_workload

    given = next((name for name in _OF_PODS if getattr(options, name)), None)
    if given:
        option = _SHORT.get(given) or "--" + given.replace("_", "-")
        meant = f"k8s:{typed}" if names_workload(typed) or "=" in typed else "k8s:app=etl or -j k8s:pod/NAME"
        raise UsageError(f"{option} is for pods, but -j names none", f"write -j {meant}")
    elsewhere = options.hosts is not None or options.hosts_file is not None or options.yarn is not None
    if names_workload(typed) and not elsewhere:
        remedy = f"write -j k8s:{typed}; or -j text:{typed} to look for that text in command lines"
        raise UsageError(f"-j {typed} needs the prefix k8s: to name pods", remedy)


def _refuse_unused(options: argparse.Namespace, application: bool, pods: bool) -> None:
    """UsageError for an option that would have no effect."""
    if options.yarn_ca is not None and not application:
        unused, what = "--yarn-ca", "an application"
    elif (options.host_map is not None or options.yes) and not (application or pods):
        unused = "--host-map" if options.host_map is not None else "--yes"
        what = "an application or pods"
    else:
        return
    remedy = "leave it out, or use -j application_… -c URL"
    raise UsageError(f"{unused} is for {what}, but -j names none", remedy)
