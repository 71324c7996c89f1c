"""YARN: the hosts and containers of running applications, as the ResourceManager knows them.

A handful of requests, whatever the cluster's size; no node is asked that runs nothing of the application.
What is imported here is light; the HTTP library comes with `locating`.
"""

from __future__ import annotations

from hprofiler.resolve.options import Located, Resolver, TargetOptions

__all__ = ["RESOLVER"]


def _resolve(options: TargetOptions) -> Located:
    from hprofiler.resolve.yarn.locating import locate

    return locate(options.application or "", options.yarn)


RESOLVER = Resolver("-c", lambda options: options.application is not None, _resolve)
