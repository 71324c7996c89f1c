"""Queries to the API server for the requested pods."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from hprofiler.base.answers import member, objects, text
from hprofiler.base.errors import UsageError
from hprofiler.kubernetes import BadRequest, KubernetesError, Need
from hprofiler.model import JobPart
from hprofiler.resolve.kubernetes.asked import JOB_LABEL, SPARK_LABELS, Asked, is_short_name
from hprofiler.resolve.kubernetes.pods import Pods, lives, read
from hprofiler.resolve.options import KubernetesOptions

if TYPE_CHECKING:
    from hprofiler.kubernetes.cluster import Cluster

_OPERATORS = {"In": "{key} in ({values})", "NotIn": "{key} notin ({values})"}
_PRESENCE = {"Exists": "{key}", "DoesNotExist": "!{key}"}
_SELECTORS = "write labels as for `kubectl -l`, and fields as for `kubectl --field-selector`"

Object = Mapping[str, Any]


class Question(NamedTuple):
    """Which pods: label selectors (the first that matches counts), a field selector, the jobs' names."""

    labels: list[str]
    fields: str
    jobs: str = ".*"


class Lister:
    """Lists the requested pods, also repeatedly."""

    def __init__(self, cluster: Cluster, asked: Sequence[Asked], options: KubernetesOptions) -> None:
        """Raises HprofilerError if a workload does not exist."""
        self.namespace = _namespace(cluster, options)
        self._cluster = cluster
        self._asked = asked
        self.containers = options.containers
        self._questions = [self._ask(one, options.fields or "") for one in asked]

    def pods(self) -> Pods:
        """The current containers of the pods. Raises HprofilerError."""
        items, counts = self._items()
        return read(items, self.containers)._replace(counts=counts)

    def lives(self, by_node: bool) -> list[JobPart]:
        """From when to when the containers ran that are known now. Raises HprofilerError."""
        return lives(self._items()[0], self.containers, by_node)

    def _items(self) -> tuple[Collection[Object], tuple[int, ...]]:
        """The pods, and the number of containers by question."""
        found: dict[object, Object] = {}
        counts = []
        for question in self._questions:
            pods = self._answer(question)
            own = read(pods, self.containers)
            counts.append(len(own.running) + len(own.idle))
            for pod in pods:
                name = text(pod, "metadata", "namespace"), text(pod, "metadata", "name")
                found.setdefault(name if all(name) else id(pod), pod)
        return found.values(), tuple(counts)

    def over(self) -> bool | None:
        """Whether all requested jobs have finished or failed; None where that is not known."""
        names = [one.name for one in self._asked if one.kind == "job"]
        if len(names) < len(self._asked) or self.namespace is None:
            return None
        need = Need("get", "jobs", self.namespace, "batch")
        path = f"/apis/batch/v1/namespaces/{self.namespace}/jobs"
        try:
            return all(_is_over(self._cluster.get(f"{path}/{name}", {}, need)) for name in names)
        except KubernetesError:  # the user may not be allowed to, or the job was deleted
            return None

    def _answer(self, question: Question) -> list[dict[str, Any]]:
        for labels in question.labels:
            items = self._list(labels, question.fields)
            if items:
                jobs = [text(one, "metadata", "labels", JOB_LABEL) for one in items]
                found = zip(items, jobs, strict=True)
                return [one for one, job in found if re.fullmatch(question.jobs, job)]
        return []

    def _list(self, labels: str, fields: str) -> list[dict[str, Any]]:
        asked = {"labelSelector": labels, "fieldSelector": fields}
        scope = "" if self.namespace is None else f"/namespaces/{self.namespace}"
        parameters = {name: value for name, value in asked.items() if value}
        need = Need("list", "pods", self.namespace)
        try:
            return self._cluster.list(f"/api/v1{scope}/pods", parameters, need)
        except BadRequest as error:
            words = " ".join(parameters.values())
            raise UsageError(f"{words}: the API server rejects it: {error.reason}", _SELECTORS) from error

    def _ask(self, asked: Asked, fields: str) -> Question:
        kind, name = asked.kind, asked.name
        if kind is None:
            return Question([asked.labels], fields)
        if kind == "pod":
            return Question([""], ",".join(filter(None, (f"metadata.name={name}", fields))))
        if kind == "sparkapplication":
            return Question([f"{label}={name}" for label in SPARK_LABELS], fields)
        if kind == "job":
            return Question([f"{JOB_LABEL}={name}"], fields)
        if kind == "cronjob":  # its jobs have its name and the minute when they were due
            return Question([JOB_LABEL], fields, rf"{re.escape(name)}-[0-9]{{8,}}")
        return Question([self._selector(f"{kind}s", name)], fields)

    def _selector(self, resource: str, name: str) -> str:
        """The label selector of a workload, as `kubectl logs` uses it."""
        if self.namespace is None:
            raise UsageError(
                f"-A cannot be combined with {resource[:-1]}/{name}, which is in one namespace",
                "name the namespace with -n",
            )
        need = Need("get", resource, self.namespace, "apps")
        found = self._cluster.get(f"/apis/apps/v1/namespaces/{self.namespace}/{resource}/{name}", {}, need)
        selector = label_selector(member(found, "spec", "selector"))
        if not selector:
            raise KubernetesError(f"{resource[:-1]} {name} does not say which pods belong to it", "name them")
        return selector


def label_selector(selector: object) -> str:
    """A selector object as text, as for `kubectl -l`, or ""."""
    labels = member(selector, "matchLabels")
    parts = [f"{key}={text(labels, key)}" for key in labels] if isinstance(labels, dict) else []
    for expression in objects(selector, "matchExpressions"):
        parts.append(_expression(expression))
    return ",".join(parts)


def _expression(expression: Mapping[str, Any]) -> str:
    key, operator = text(expression, "key"), text(expression, "operator")
    values = member(expression, "values")
    listed = ",".join(value for value in values if isinstance(value, str)) if isinstance(values, list) else ""
    form = _OPERATORS.get(operator) or _PRESENCE.get(operator)
    if not form or not key:
        raise KubernetesError(
            f"the API server uses an unknown selector {operator!r}", "select the pods by label"
        )
    return form.format(key=key, values=listed)


def _is_over(job: object) -> bool:
    conditions = objects(job, "status", "conditions")
    return any(
        text(one, "type") in ("Complete", "Failed") and text(one, "status") == "True" for one in conditions
    )


def _namespace(cluster: Cluster, options: KubernetesOptions) -> str | None:
    if options.all_namespaces:
        return None
    namespace = options.namespace or cluster.namespace
    if not is_short_name(namespace):
        raise UsageError(f"{namespace!r} is not a valid name of a namespace", "write -n NAMESPACE")
    return namespace
