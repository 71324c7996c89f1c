"""Kubernetes: the containers of pods, as the API server knows them, and the nodes they are on.

One list, whatever the number of pods. What is imported here is light; the client comes with `locating`.
"""

from __future__ import annotations

from hprofiler.resolve.options import Located, Resolver, TargetOptions

__all__ = ["RESOLVER"]


def _resolve(options: TargetOptions) -> Located:
    from hprofiler.resolve.kubernetes.locating import locate

    return locate(options.pods or (), options.kubernetes)


RESOLVER = Resolver("-j k8s:", lambda options: options.pods is not None, _resolve)
