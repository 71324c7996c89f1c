"""From what the user named to hosts: `resolve(options) -> Located`.

A resolver is one file with a `RESOLVER`, and one line in `RESOLVERS`. A new kind of target also adds
its own member to `TargetOptions`.
"""

from __future__ import annotations

from hprofiler.base.errors import UsageError
from hprofiler.resolve import host_list, hosts_file, kubernetes, local, yarn
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
    host_list.RESOLVER,
    hosts_file.RESOLVER,
    yarn.RESOLVER,
    kubernetes.RESOLVER,
)


def resolve(options: TargetOptions) -> Located:
    """The hosts of the one target the options name; this machine where they name none.

    Hosts come in the order given, without repetition, each with a name of its own. UsageError says
    which option, or which line of which file, makes no sense.
    """
    asked = [resolver for resolver in RESOLVERS if resolver.is_asked(options)]
    if len(asked) > 1:
        both = " and ".join(resolver.option for resolver in asked)
        raise UsageError(f"{both} exclude each other", "give one of them")
    return (asked[0] if asked else local.RESOLVER).resolve(options)
