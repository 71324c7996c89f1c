"""What the user named → hosts: `resolve(options) -> Located`.

A resolver is one file with a `RESOLVER`, and one line in `RESOLVERS`. A new kind of target also has a member
in `TargetOptions`.
"""

from __future__ import annotations

from hprofiler.base.errors import UsageError
from hprofiler.resolve import host_list, kubernetes, yarn
from hprofiler.resolve.options import (
    KubernetesOptions,
    Located,
    Resolver,
    TargetOptions,
    TooMany,
    YarnOptions,
)

__all__ = [
    "RESOLVERS",
    "KubernetesOptions",
    "Located",
    "Resolver",
    "TargetOptions",
    "TooMany",
    "YarnOptions",
    "resolve",
]

RESOLVERS: tuple[Resolver, ...] = (
    host_list.LIST,
    host_list.FILE,
    yarn.RESOLVER,
    kubernetes.RESOLVER,
)


def resolve(options: TargetOptions) -> Located:
    """The hosts of the target; this machine if the options name none.

    Hosts keep their order, without duplicates, and have unique names. UsageError names the wrong option, or
    the line of the file.
    """
    asked = [resolver for resolver in RESOLVERS if resolver.is_asked(options)]
    if len(asked) > 1:
        both = " and ".join(resolver.option for resolver in asked)
        raise UsageError(f"{both} exclude each other", "give one of them")
    return (asked[0] if asked else host_list.LOCAL).resolve(options)
