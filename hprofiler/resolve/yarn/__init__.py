"""YARN: the hosts and containers of running applications, from the ResourceManager.

It takes a handful of requests, however large the cluster is. `locating` imports the HTTP library.
"""

from __future__ import annotations

from hprofiler.resolve.options import Located, Resolver, TargetOptions

__all__ = ["RESOLVER"]


def _resolve(options: TargetOptions) -> Located:
    from hprofiler.resolve.yarn.locating import locate

    return locate(options.application or "", options.yarn)


RESOLVER = Resolver("-c", lambda options: options.application is not None, _resolve)
