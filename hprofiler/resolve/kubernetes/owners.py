"""Owners of pods. A workload's label selector may match pods of others; its own pods name it as owner."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from hprofiler.resolve.answers import objects, text

_KINDS = {
    "statefulset": ("apps", "StatefulSet"),
    "daemonset": ("apps", "DaemonSet"),
    "replicaset": ("apps", "ReplicaSet"),
    "deployment": ("apps", "ReplicaSet"),
    "job": ("batch", "Job"),
    "cronjob": ("batch", "Job"),
}
_LONGEST = 253


def owned(pod: Mapping[str, Any], kind: str, name: str) -> bool:
    """Whether the pod belongs to that workload.

    Between a deployment and its pods is a replica set, named after the deployment (possibly shortened) and
    the hash in the pods' label. Jobs of a cron job have its name and the minute when they were due (old
    releases: the second).
    """
    if kind == "deployment":
        its_hash = text(pod, "metadata", "labels", "pod-template-hash") or "?"
        ours = re.escape(f"{name[: _LONGEST - 1 - len(its_hash)]}-{its_hash}")
    elif kind == "cronjob":
        ours = rf"{re.escape(name)}-[0-9]{{8,}}"
    else:
        ours = re.escape(name)
    return any(
        (text(one, "apiVersion").partition("/")[0], text(one, "kind")) == _KINDS[kind]
        and re.fullmatch(ours, text(one, "name"))
        for one in objects(pod, "metadata", "ownerReferences")
    )
