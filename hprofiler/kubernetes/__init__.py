"""The Kubernetes API: configuration, requests, and commands in containers.

`connect` imports the libraries.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hprofiler.kubernetes.problems import BadRequest, Forbidden, KubernetesError, Need, NotRunning

if TYPE_CHECKING:
    from hprofiler.kubernetes.cluster import Cluster

__all__ = ["Access", "BadRequest", "Forbidden", "KubernetesError", "Need", "NotRunning", "connect"]


@dataclass(frozen=True)
class Access:
    """Which cluster. None as for kubectl: `$KUBECONFIG`, the current context."""

    kubeconfig: str | None = None
    context: str | None = None
    timeout: float = 30.0


def connect(access: Access) -> Cluster:
    """The API server of the configuration; sends no request yet. Raises HprofilerError."""
    try:
        from hprofiler.kubernetes.cluster import Cluster
    except ImportError as error:
        reason = f"Kubernetes needs a library that is not installed ({error.name})"
        raise KubernetesError(reason, "pip install 'hprofiler[kubernetes]'") from error
    return Cluster(access)
