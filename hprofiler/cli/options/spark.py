"""The options that divide samples by the stages of a Spark application."""

from __future__ import annotations

import argparse

SLICES = ("stage", "none")


def add_to(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("Spark stages")
    add_source_to(group, "the application's stages")
    add_slices_to(group)


def add_source_to(group: argparse._ActionsContainer, what: str) -> None:
    group.add_argument(
        "--spark",
        metavar="URL|FILE",
        help=f"what knows {what}: the address of its driver or of a history server, or its "
        "event log (default with application_…: the driver; docs/spark.md)",
    )


def add_slices_to(group: argparse._ActionsContainer) -> None:
    group.add_argument(
        "--slices",
        choices=SLICES,
        default="stage",
        help="stage (default): show the samples of each stage of a Spark application, if its stages are "
        "known; none: do not",
    )
