"""The options that name pods of Kubernetes."""

from __future__ import annotations

import argparse

VIAS = ("exec", "ssh")


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
