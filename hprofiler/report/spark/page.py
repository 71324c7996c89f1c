"""The page of a Spark application: the answer of `hprofiler spark`, with its timeline and tables."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from hprofiler.base.text import printable
from hprofiler.report.blocks import Part
from hprofiler.report.plain_page import write_plain_page
from hprofiler.spark.application import Application


def write_page(
    application: Application,
    headline: Sequence[str],
    parts: Sequence[Part],
    out: Path,
    findings: Sequence[str] = (),
) -> None:
    """Write the page with the answer's headline, what else stands out, and parts. Raises OSError."""
    title = printable(application.name or application.id or "Spark application")
    ran, *found = headline
    # What stands out is the heading, and below it what ran.
    write_plain_page(title, [*(one[:1].upper() + one[1:] for one in found), ran], parts, out, findings)
