"""Whose a pod is. A workload's label selector may match pods of others as well; its own name it as owner."""

from __future__ import annotations

import re
from typing import Any, Mapping

from hprofiler.resolvers.answers import objects, text

_KINDS = {
    "statefulset": "StatefulSet",
    "daemonset": "DaemonSet",
    "replicaset": "ReplicaSet",
    "deployment": "ReplicaSet",
    "job": "Job",
    "cronjob": "Job",
}


def owned(pod: Mapping[str, Any], kind: str, name: str) -> bool:
    """Whether the pod is one of that workload's.

    Between a deployment and its pods there are replica sets, which have the deployment's name and the hash
    that their pods are labelled with; a cron job's jobs have its name and the time they were due.
    """
    if kind == "deployment":
        ours = re.escape(f"{name}-{text(pod, 'metadata', 'labels', 'pod-template-hash') or '?'}")
    elif kind == "cronjob":
        ours = rf"{re.escape(name)}-\d+"
    else:
        ours = re.escape(name)
    owners = objects(pod, "metadata", "ownerReferences")
    return any(text(one, "kind") == _KINDS[kind] and re.fullmatch(ours, text(one, "name")) for one in owners)
