"""The options that name applications of YARN."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from hprofiler.cli.options.numbers import named

if TYPE_CHECKING:
    from hprofiler.resolve import YarnOptions

CONTAINERS = 200
"""hprofiler asks before profiling more."""


def add_to(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("YARN applications")
    add_cluster_to(group)
    group.add_argument(
        "--match",
        metavar="SELECTOR",
        help="profile only the matching processes of the application or the pods; with another -j, only "
        "those that have this text in their names, such as -j spark-driver --match etl",
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
        "application_… and yarn:…: yarn-site.xml in $YARN_CONF_DIR or $HADOOP_CONF_DIR)",
    )
    group.add_argument("--yarn-ca", metavar="FILE", help="CA certificate of the ResourceManager")


def cluster(options: argparse.Namespace, limit: int | None = None) -> YarnOptions:
    from hprofiler.cli.options.objects import file
    from hprofiler.resolve import YarnOptions
    from hprofiler.resolve.host_list import parse_host_map

    mapped = getattr(options, "host_map", None)
    ca = file(options.yarn_ca, "--yarn-ca")
    return YarnOptions(
        urls=options.yarn,
        ca_file=None if ca is None else str(ca),
        host_map={} if mapped is None else parse_host_map(mapped),
        limit=limit,
    )
