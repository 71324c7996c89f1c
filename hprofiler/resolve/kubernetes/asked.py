"""Parses `k8s:…`: a workload by name, or a label selector."""

from __future__ import annotations

import re
from typing import NamedTuple

from hprofiler.base.errors import UsageError

_NOTATION = "write k8s:LABEL=VALUE,… or k8s:KIND/NAME, such as k8s:deployment/NAME"
_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")
_CONTAINER = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_ID = re.compile(r"[A-Za-z0-9_]{1,128}")

KINDS = {
    word: kind
    for kind, words in {
        "pod": ("pod", "pods", "po"),
        "deployment": ("deployment", "deployments", "deploy"),
        "statefulset": ("statefulset", "statefulsets", "sts"),
        "daemonset": ("daemonset", "daemonsets", "ds"),
        "replicaset": ("replicaset", "replicasets", "rs"),
        "job": ("job", "jobs"),
        "cronjob": ("cronjob", "cronjobs", "cj"),
        "sparkapplication": ("sparkapplication", "sparkapplications", "sparkapp"),
    }.items()
    for word in words
}
JOB_LABEL = "job-name"
# Each Spark operator has its own.
SPARK_LABELS = ("sparkoperator.k8s.io/app-name", "spark.operator/spark-app-name")


class Asked(NamedTuple):
    """`kind` and `name` of a workload, or a label selector (empty `labels`: all pods)."""

    kind: str | None
    name: str
    labels: str


def parse(text: str) -> Asked:
    """Parse the text after `k8s:`. Raises UsageError."""
    typed = text.strip()
    kind, slash, name = typed.partition("/")
    if slash and kind.lower() in KINDS:
        if not is_name(name):
            raise UsageError(
                f"k8s:{typed}: {name!r} is not a valid name of a {KINDS[kind.lower()]}", _NOTATION
            )
        return Asked(KINDS[kind.lower()], name, "")
    if slash and not any(mark in typed for mark in "=!(, ") and "." not in kind:
        known = ", ".join(sorted(set(KINDS.values())))
        raise UsageError(f"k8s:{typed}: {kind!r} is not a kind of workload (known: {known})", _NOTATION)
    if len(typed) > 2000 or not typed.isprintable():
        raise UsageError("k8s: not a label selector", _NOTATION)
    return Asked(None, "", typed)


def names_workload(text: str) -> bool:
    """Whether it is KIND/NAME, with or without `k8s:` before it."""
    kind, _, name = text.partition("/")
    return kind.lower() in KINDS and is_name(name)


def is_name(text: str) -> bool:
    """Whether it is a valid name of a pod or workload, safe in a URL."""
    return _NAME.fullmatch(text) is not None and ".." not in text


def is_short_name(text: str) -> bool:
    """Whether it is a valid name of a container or namespace."""
    return _CONTAINER.fullmatch(text) is not None


def is_id(text: str) -> bool:
    return _ID.fullmatch(text) is not None
