"""The options that name pods of Kubernetes."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from hprofiler.base.errors import UsageError

if TYPE_CHECKING:
    from hprofiler.resolve import KubernetesOptions
    from hprofiler.transport.pod_exec import Debugging

VIAS = ("exec", "ssh")
_BEFORE_AND_AFTER = 300


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
    group.add_argument(
        "--field-selector", metavar="FIELDS", help="only pods with these fields, such as spec.nodeName=node7"
    )
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
        help="add a debug container (an image with sh) to pods whose containers have no shell; it "
        "ends after the run, but stays listed in the pod until the pod is deleted",
    )


def cluster(options: argparse.Namespace, limit: int | None = None) -> KubernetesOptions:
    from hprofiler.kubernetes import Access
    from hprofiler.resolve import KubernetesOptions
    from hprofiler.resolve.host_list import parse_host_map

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


def debugging(options: argparse.Namespace) -> Debugging | None:
    """Settings of debug containers; they live a little longer than the recording."""
    from hprofiler.transport.pod_exec import Debugging

    if options.debug_container is None:
        return None
    return Debugging(options.debug_container, int(getattr(options, "duration", 0)) + _BEFORE_AND_AFTER)
