"""The options that divide samples by the stages of a Spark application."""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import TYPE_CHECKING

from hprofiler.base.errors import UsageError
from hprofiler.base.paths import at_home, is_there

if TYPE_CHECKING:
    from hprofiler.resolve import Located, SparkDriver

_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*://|[\w.-]+:[0-9]+(?:/|$)", re.IGNORECASE)
SLICES = ("stage", "none")


def add_to(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("Spark stages")
    group.add_argument(
        "--spark",
        metavar="URL|FILE",
        help="what knows the application's stages: the address of its driver or of a history server, or its "
        "event log (default with application_…: the driver; docs/spark.md)",
    )
    add_slices_to(group)


def add_slices_to(group: argparse._ActionsContainer) -> None:
    group.add_argument(
        "--slices",
        choices=SLICES,
        default="stage",
        help="stage (default): show the samples of each stage of a Spark application, if its stages are "
        "known; none: do not",
    )


def source(options: argparse.Namespace, located: Located) -> SparkDriver | Path | None:
    """Where stages are known. UsageError for a source that is none, or would not be used."""
    from hprofiler.resolve import spark_driver

    named: str | None = getattr(options, "spark", None)
    if getattr(options, "slices", "none") == "none" or options.no_timeline:
        if named is None:
            return None
        unused = "--no-timeline" if options.no_timeline else "--slices none"
        raise UsageError(f"--spark has no effect with {unused}", "leave one of them out")
    if named is None:
        return located.driver
    path = at_home(named)
    if "://" not in named and is_there(path):
        return path
    if not _ADDRESS.match(named):
        raise UsageError(f"--spark {named}: there is no such file", "name an event log, or write http://…")
    driver = spark_driver(named, options.yarn_ca)
    if driver.application is None and located.driver is not None:
        from dataclasses import replace

        driver = replace(driver, application=located.driver.application)
    return driver
