"""`hprofiler scale RUN…`: runs of a Spark job on more and fewer cores, and how far it scales."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from hprofiler.analysis.growth import Growth, grown_methods, work_by_size
from hprofiler.analysis.spark.failures import failure_findings, find_failures
from hprofiler.analysis.spark.words import sentence
from hprofiler.app.spark_source import read_source
from hprofiler.base.errors import UsageError, writing
from hprofiler.base.passwords import shown_url
from hprofiler.base.paths import at_home, is_file
from hprofiler.base.text import some
from hprofiler.cli.commands.spark import exit_of
from hprofiler.cli.options import yarn as yarn_options
from hprofiler.cli.options.numbers import output_path
from hprofiler.cli.terminal.exit_codes import Exit
from hprofiler.cli.terminal.lines import print_json
from hprofiler.cli.terminal.progress import counters
from hprofiler.report.spark.scaling import scaling_lines, warning_text
from hprofiler.report.spark.scaling_page import write_scaling_page
from hprofiler.runfolder import RUN_FILE
from hprofiler.spark.facts import SparkError
from hprofiler.spark.figures import figures
from hprofiler.spark.scaling import SizedRun, run_of, scaling


def command(options: argparse.Namespace) -> int:
    page = options.output and output_path(options.output, "docs/scaling.md")

    runs, failed, folders, ending = _read(options)
    found = scaling(runs, failed)
    growth = _growth(runs, folders)
    if page:
        with writing(page):
            write_scaling_page(found, options.by, growth, page)
    if options.json:
        record = found.record()
        for warning, one in zip(record["warnings"], found.warnings, strict=True):
            warning["text"] = warning_text(one)
        print_json({"by": options.by, **record, "growth": asdict(growth) if growth else None})
    else:
        print("\n".join(scaling_lines(found, options.by, growth)))
    return ending


def _read(
    options: argparse.Namespace,
) -> tuple[list[SizedRun], dict[str, str], dict[str, Path], Exit]:
    """All runs, why others failed by their source, and the run folders by the source of their run.

    A run may be named by its run folder and by its event log: the log knows all of the job.
    """
    runs: dict[tuple[str, str], SizedRun] = {}
    failed: dict[str, str] = {}
    folders: dict[tuple[str, str], Path] = {}
    named: dict[tuple[tuple[str, str], bool], str] = {}
    ending = Exit.OK
    for given in options.sources:
        source = shown_url(given) if "://" in given else given
        application = read_source(given, yarn_options.cluster(options))
        key = (application.id or source, application.attempt)
        is_run = "://" not in given and is_file(at_home(given) / RUN_FILE)
        if (key, is_run) in named:
            raise UsageError(f"{named[key, is_run]} and {source} are the same run", "name each run once")
        named[key, is_run] = source
        reason = sentence(failure_findings(find_failures(application)))
        if reason:
            failed[source] = reason
            ending = Exit.PARTIAL
            continue
        if is_run:
            folders[key] = at_home(given)
        if key not in runs or not is_run:
            runs[key] = run_of(source, application, figures(application), options.by)
        ending = max(ending, exit_of(application))
    if not runs:
        raise SparkError(
            f"all runs failed: {some([*failed.values()], 3)}", "name runs that did all of their work"
        )
    return list(runs.values()), failed, {runs[key].source: folder for key, folder in folders.items()}, ending


def _growth(runs: Sequence[SizedRun], folders: Mapping[str, Path]) -> Growth | None:
    """Methods that cost more in the largest run than in the smallest; None if not both were recorded."""
    recorded = sorted((one for one in runs if one.source in folders), key=lambda one: one.n)
    if not recorded or recorded[0].n == recorded[-1].n:
        return None
    first, last = recorded[0], recorded[-1]
    cpu = {one.source: (one.cpu_time or one.run_time * 1e6) / 1e6 for one in recorded}
    ends = (cpu[first.source], cpu[last.source])
    with counters() as listener:
        methods = grown_methods(folders[first.source], folders[last.source], ends, listener)
        work = work_by_size(((one.n, folders[one.source], cpu[one.source]) for one in recorded), listener)
    return Growth((first.n, last.n), methods, work)
