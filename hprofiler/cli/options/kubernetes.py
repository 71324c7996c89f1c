"""Options for Kubernetes pods."""

from __future__ import annotations

import argparse
import re
from typing import TYPE_CHECKING

from hprofiler.base.errors import UsageError

if TYPE_CHECKING:
    from hprofiler.resolve import KubernetesOptions
    from hprofiler.transport import Debugging

_PREFIX = re.compile(r"(?:^|\s)\s*k8s:", re.IGNORECASE)
VIAS = ("exec", "ssh")
_OWN = ("namespace", "all_namespaces", "context", "kubeconfig", "container", "field_selector", "via")
_SHORT = {"namespace": "-n", "all_namespaces": "-A"}
_BEFORE_AND_AFTER = 300
_OF_SSH = ("user", "port", "identity", "ssh_config", "become", "host_map")


def add_to(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("Kubernetes pods (with -j k8s:…)")
    group.add_argument(
        "-n", "--namespace", metavar="NS", help="namespace of the pods (default: the context's)"
    )
    group.add_argument("-A", "--all-namespaces", action="store_true", help="pods in all namespaces")
    group.add_argument(
        "--container",
        metavar="NAME",
        action="append",
        help="only containers of this name; may be repeated",
    )
    group.add_argument("--field-selector", metavar="FIELDS", help="such as spec.nodeName=node7")
    group.add_argument("--context", metavar="NAME", help="kubeconfig context (default: the current one)")
    group.add_argument(
        "--kubeconfig",
        metavar="FILE",
        help="default: $KUBECONFIG, ~/.kube/config, or the pod's service account",
    )
    group.add_argument(
        "--via",
        choices=VIAS,
        help="exec into the containers (default), or ssh to their nodes",
    )
    group.add_argument(
        "--debug-container",
        metavar="IMAGE",
        help="add a debug container (an image with sh) to pods whose containers have no shell; the pod "
        "lists it, ended, until the pod is deleted",
    )


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
        if before is not None and not (names_pods(before) and names_pods(str(values))):
            reason = f"given twice, {before!r} and {values!r}; only k8s:… may be repeated"
            raise argparse.ArgumentError(self, reason)
        setattr(namespace, self.dest, both)


def names_pods(typed: str) -> bool:
    return _PREFIX.match(typed) is not None


def asked_for(options: argparse.Namespace) -> tuple[str, ...] | None:
    """`TargetOptions.pods`; None if `-j` does not name pods."""
    typed: str = (options.selector or "").strip()
    if options.match is not None and names_pods(options.match):
        remedy = "name pods with -j, which may be repeated; --match takes a selector of processes"
        raise UsageError("--match selects processes, but k8s: names pods", remedy)
    if names_pods(typed):
        return tuple(part.strip() for part in _PREFIX.split(typed)[1:])
    _refuse_without_prefix(options, typed)
    return None


def _refuse_without_prefix(options: argparse.Namespace, typed: str) -> None:
    """UsageError if options are for pods, but `-j` lacks `k8s:`."""
    from hprofiler.resolve.kubernetes.asked import names_workload

    given = next((name for name in (*_OWN, "debug_container") if getattr(options, name)), None)
    if given:
        option = _SHORT.get(given) or "--" + given.replace("_", "-")
        meant = f"k8s:{typed}" if names_workload(typed) or "=" in typed else "k8s:app=etl or -j k8s:pod/NAME"
        raise UsageError(f"{option} is for pods, but -j names none", f"write -j {meant}")
    elsewhere = options.hosts is not None or options.hosts_file is not None or options.yarn is not None
    if names_workload(typed) and not elsewhere:
        remedy = f"write -j k8s:{typed}; or -j text:{typed} to look for that text in command lines"
        raise UsageError(f"-j {typed} needs the prefix k8s: to name pods", remedy)


def cluster(options: argparse.Namespace, limit: int | None = None) -> KubernetesOptions:
    from hprofiler.kubernetes import Access
    from hprofiler.resolve import KubernetesOptions
    from hprofiler.resolve.host_map import parse_host_map

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
        ssh_configured=any(getattr(options, name) is not None for name in _OF_SSH),
        host_map={} if options.host_map is None else parse_host_map(options.host_map),
        limit=limit,
    )


def debugging(options: argparse.Namespace) -> Debugging | None:
    """Settings of debug containers; they live a little longer than the recording."""
    from hprofiler.transport import Debugging

    if options.debug_container is None:
        return None
    return Debugging(options.debug_container, int(getattr(options, "duration", 0)) + _BEFORE_AND_AFTER)
