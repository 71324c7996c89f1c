"""Kubernetes: the containers of pods, and their nodes, from the API server.

It takes one list request, however many pods there are. `locating` imports the client.
"""

from __future__ import annotations

from hprofiler.resolve.options import Located, Resolver, TargetOptions

__all__ = ["RESOLVER"]


def _resolve(options: TargetOptions) -> Located:
    from hprofiler.resolve.kubernetes.locating import locate

    return locate(options.pods or (), options.kubernetes)


RESOLVER = Resolver("-j k8s:", lambda options: options.pods is not None, _resolve)
