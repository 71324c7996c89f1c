"""The questions to the API server: which pods were asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, List, Mapping, NamedTuple, Optional

from hprofiler.errors import UsageError
from hprofiler.kubernetes import KubernetesError, Need
from hprofiler.resolvers.answers import member, objects, text
from hprofiler.resolvers.kubernetes.asked import JOB_LABELS, SPARK_LABELS, Asked, is_short_name
from hprofiler.resolvers.kubernetes.pods import Pods, read
from hprofiler.resolvers.options import KubernetesOptions

if TYPE_CHECKING:
    from hprofiler.kubernetes.cluster import Cluster

_OPERATORS = {"In": "{key} in ({values})", "NotIn": "{key} notin ({values})"}
_PRESENCE = {"Exists": "{key}", "DoesNotExist": "!{key}"}


class Question(NamedTuple):
    """Which pods: label selectors, of which the first that finds some counts, and a field selector."""

    labels: List[str]
    fields: str


class Lister:
    """Lists the pods that were asked for, once or again."""

    def __init__(self, cluster: Cluster, asked: Asked, options: KubernetesOptions) -> None:
        """Raises HprofilerError where the workload is not there."""
        self.namespace = _namespace(cluster, options)
        self._cluster = cluster
        self._container = options.container
        self._question = self._ask(asked, options.fields or "")

    def pods(self) -> Pods:
        """The containers of the pods, as they are now. Raises KubernetesError."""
        items: List[Dict[str, Any]] = []
        for labels in self._question.labels:
            items = self._list(labels)
            if items:
                break
        return read(items, self._container)

    def _list(self, labels: str) -> List[Dict[str, Any]]:
        asked = {"labelSelector": labels, "fieldSelector": self._question.fields}
        scope = "" if self.namespace is None else f"/namespaces/{self.namespace}"
        parameters = {name: value for name, value in asked.items() if value}
        return self._cluster.list(f"/api/v1{scope}/pods", parameters, Need("list", "pods", self.namespace))

    def _ask(self, asked: Asked, fields: str) -> Question:
        if asked.kind is None:
            return Question([asked.labels], fields)
        if asked.kind == "pod":
            return Question([""], ",".join(filter(None, (f"metadata.name={asked.name}", fields))))
        if asked.kind in ("job", "sparkapplication"):
            names = JOB_LABELS if asked.kind == "job" else SPARK_LABELS
            return Question([f"{label}={asked.name}" for label in names], fields)
        return Question([self._selector(f"{asked.kind}s", asked.name)], fields)

    def _selector(self, resource: str, name: str) -> str:
        """The label selector by which a deployment or stateful set knows its pods."""
        if self.namespace is None:
            raise UsageError(f"-A with {resource[:-1]}/{name}: it is in one namespace", "name that with -n")
        need = Need("get", resource, self.namespace, "apps")
        found = self._cluster.get(f"/apis/apps/v1/namespaces/{self.namespace}/{resource}/{name}", {}, need)
        selector = label_selector(member(found, "spec", "selector"))
        if not selector:
            raise KubernetesError(f"{resource[:-1]} {name} does not say which pods are its own", "name them")
        return selector


def label_selector(selector: object) -> str:
    """A selector object as one text, as `kubectl -l` takes it; "" where there is none."""
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
            f"the API server uses an unknown selector {operator!r}", "name the pods' labels"
        )
    return form.format(key=key, values=listed)


def _namespace(cluster: Cluster, options: KubernetesOptions) -> Optional[str]:
    if options.all_namespaces:
        return None
    namespace = options.namespace or cluster.namespace
    if not is_short_name(namespace):
        raise UsageError(f"{namespace!r} is no name of a namespace", "write -n NAMESPACE")
    return namespace
