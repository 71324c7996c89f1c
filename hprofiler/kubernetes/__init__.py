"""The Kubernetes API: where the cluster is and who we are there, questions to it, commands in its containers.

Who wants a cluster calls `connect`; the libraries behind it are imported then, and not before.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hprofiler.kubernetes.problems import BadRequest, Forbidden, KubernetesError, Need

if TYPE_CHECKING:
    from hprofiler.kubernetes.cluster import Cluster

__all__ = ["Access", "BadRequest", "Forbidden", "KubernetesError", "Need", "connect"]


@dataclass(frozen=True)
class Access:
    """Which cluster. None means what kubectl would take: `$KUBECONFIG`, the file's current context."""

    kubeconfig: str | None = None
    context: str | None = None
    timeout: float = 30.0


def connect(access: Access) -> Cluster:
    """The API server that the configuration names; nothing is asked of it yet. Raises HprofilerError."""
    try:
        from hprofiler.kubernetes.cluster import Cluster
    except ImportError as error:
        reason = f"Kubernetes needs a library that is not installed ({error.name})"
        raise KubernetesError(reason, "pip install 'hprofiler[kubernetes]'") from error
    return Cluster(access)
