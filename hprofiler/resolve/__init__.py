"""Resolves a target to hosts: `resolve(options) -> Located`.

A resolver is one module, and one line in `RESOLVERS`. A new kind of target also has a member in
`TargetOptions`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from hprofiler.base.errors import UsageError
from hprofiler.resolve import host_list
from hprofiler.resolve.options import (
    KubernetesOptions,
    Located,
    SparkDriver,
    TargetOptions,
    TooMany,
    YarnOptions,
)

__all__ = [
    "RESOLVERS",
    "KubernetesOptions",
    "Located",
    "SparkDriver",
    "TargetOptions",
    "TooMany",
    "YarnOptions",
    "resolve",
    "spark_driver",
]


def _yarn(options: TargetOptions) -> Located:
    from hprofiler.resolve.yarn.locating import locate  # imports the HTTP library

    return locate(options.application or "", options.yarn)


def _kubernetes(options: TargetOptions) -> Located:
    from hprofiler.resolve.kubernetes.locating import locate  # imports the client

    return locate(options.pods or (), options.kubernetes)


# Option on the command line -> what names its target in the options (None: nothing), and its resolver.
RESOLVERS: Mapping[str, tuple[Callable[[TargetOptions], object], Callable[[TargetOptions], Located]]] = {
    "-h": (lambda options: options.hosts, host_list.listed),
    "--hosts-file": (lambda options: options.hosts_file, host_list.in_file),
    "-c": (lambda options: options.application, _yarn),
    "-j k8s:": (lambda options: options.pods, _kubernetes),
}


def spark_driver(address: str, ca_file: str | None) -> SparkDriver:
    """Spark's REST interface at an address. Raises UsageError if it is none."""
    from hprofiler.resolve.yarn.spark import driver_at  # imports the HTTP library

    return driver_at(address, ca_file)


def resolve(options: TargetOptions) -> Located:
    """The hosts of the target; this machine if the options name none.

    Hosts keep their order, without duplicates, and have unique names. UsageError names the wrong option, or
    the line of the file.
    """
    asked = [option for option, (named, _) in RESOLVERS.items() if named(options) is not None]
    if len(asked) > 1:
        raise UsageError(f"{' and '.join(asked)} exclude each other", "give one of them")
    return RESOLVERS[asked[0]][1](options) if asked else host_list.this_machine()
