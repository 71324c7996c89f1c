"""`hprofiler report DIR`: pictures and page again, from the run folder alone."""

from __future__ import annotations

import argparse
from pathlib import Path

from hprofiler.cli.exits import Exit


def command(options: argparse.Namespace) -> int:
    from hprofiler.report import make_report

    report = make_report(Path(options.folder), options.raw_names, options.threads, options.trim)
    print(report.page)
    return Exit.OK
