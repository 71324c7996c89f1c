"""Options for YARN applications."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from hprofiler.base.errors import UsageError
from hprofiler.cli.options import kubernetes as kubernetes_options
from hprofiler.cli.options.numbers import named
from hprofiler.cli.terminal.prompt import agrees, can_ask

if TYPE_CHECKING:
    from hprofiler.resolve import Located, TargetOptions, YarnOptions

CONTAINERS = 200
"""hprofiler asks before profiling more."""
PREFIX = "yarn:"


def add_to(parser: argparse.ArgumentParser) -> None:
    """All YARN options."""
    group = parser.add_argument_group("YARN applications")
    add_cluster_to(group)
    group.add_argument(
        "--match",
        metavar="SELECTOR",
        help="profile only these processes of the application or the pods",
    )
    group.add_argument(
        "--host-map",
        type=named,
        metavar="MAP",
        help="map the cluster's host names to SSH host names: a=b,c=user@d:22, or a file, one pair per line",
    )
    group.add_argument(
        "--yes", action="store_true", help=f"do not ask before profiling more than {CONTAINERS} containers"
    )


def add_cluster_to(group: argparse._ActionsContainer) -> None:
    group.add_argument(
        "-c",
        "--yarn",
        metavar="URL,…",
        help="ResourceManager, such as http://rm:8088; several for high availability (default for "
        "application_… and yarn:…: yarn-site.xml in $HADOOP_CONF_DIR)",
    )
    group.add_argument("--yarn-ca", metavar="FILE", help="CA certificate of the ResourceManager")


def asked_for(options: argparse.Namespace) -> str | None:
    """`TargetOptions.application`; None if `-j` does not name an application.

    `application_…` (or MapReduce's `job_…`) is one application, `yarn:name=…` several. With -c, anything
    else selects processes in all running applications; a malformed id is a UsageError. If hosts are named
    without -c, `-j` selects processes on them.
    """
    typed = (options.selector or "").strip()
    if typed.startswith(PREFIX):
        return typed[len(PREFIX) :].strip()
    if options.yarn is None and (kubernetes_options.names_pods(typed) or _hosts_named(options)):
        return None
    if _looks_like_id(typed) and (options.yarn is not None or _is_configured()):
        return _application_of(typed)
    return None if options.yarn is None else ""


def hint(options: argparse.Namespace) -> str | None:
    """A note if an id is treated as text, because YARN is not configured."""
    typed = (options.selector or "").strip()
    if options.yarn is not None or _is_configured() or not _looks_like_id(typed):
        return None
    where = "on these hosts" if _hosts_named(options) else "on this machine"
    return f"-j {typed} matches command lines {where}; for a YARN application add -c http://rm:8088"


def refuse_unused(options: argparse.Namespace, application: str | None, pods: Sequence[str] | None) -> None:
    """UsageError for an option that would have no effect."""
    given = [("--yarn-ca", options.yarn_ca is not None and application is None)]
    given += (
        [("--host-map", options.host_map is not None), ("--yes", options.yes)]
        if not (application is not None or pods is not None)
        else []
    )
    unused = next((option for option, useless in given if useless), None)
    if unused:
        what = "an application" if unused == "--yarn-ca" else "an application or pods"
        raise UsageError(
            f"{unused} is for {what}, but -j names none", "leave it out, or use -j application_… -c URL"
        )


def selector_text(options: argparse.Namespace) -> str | None:
    """The selector of processes; None for all processes in the containers."""
    asked = asked_for(options)
    match: str | None = options.match
    if asked:
        return match
    if match is None:
        return None if _whole(options) else str(options.selector)
    if _whole(options):
        return match
    remedy = "name an application: -j application_… -c URL --match SELECTOR"
    raise UsageError("--match is for an application, but -j names none", remedy)


def cluster(options: argparse.Namespace, limit: int | None = None) -> YarnOptions:
    from hprofiler.cli.options.objects import file
    from hprofiler.resolve import YarnOptions
    from hprofiler.resolve.host_map import parse_host_map

    mapped = getattr(options, "host_map", None)
    ca = file(options.yarn_ca, "--yarn-ca")
    return YarnOptions(
        urls=options.yarn,
        ca_file=None if ca is None else str(ca),
        host_map={} if mapped is None else parse_host_map(mapped),
        limit=limit,
    )


def locate(targets: TargetOptions) -> Located:
    """Resolve; asks the user if there are very many containers."""
    from dataclasses import replace

    from hprofiler.resolve import TooMany, resolve

    try:
        return resolve(targets)
    except TooMany as much:
        if not can_ask() or not agrees(f"{much.reason}. Profile all of them?"):
            raise
        yarn = replace(targets.yarn, limit=None)
        return resolve(replace(targets, yarn=yarn, kubernetes=replace(targets.kubernetes, limit=None)))


def _whole(options: argparse.Namespace) -> bool:
    """Whether -j is just `yarn:`, every running application."""
    return str(options.selector).strip() == PREFIX


def _hosts_named(options: argparse.Namespace) -> bool:
    return options.hosts is not None or options.hosts_file is not None


def _looks_like_id(typed: str) -> bool:
    from hprofiler.resolve.yarn.ids import looks_like_id

    return looks_like_id(typed)


def _application_of(typed: str) -> str:
    from hprofiler.resolve.yarn.ids import application_of

    identity = application_of(typed)
    if identity is None:
        remedy = "copy the id from `hprofiler apps`, or use yarn:name=… for several applications"
        raise UsageError(f"-j {typed}: not the id of an application", remedy)
    return identity


def _is_configured() -> bool:
    from hprofiler.resolve.yarn.site import is_configured

    return is_configured()
