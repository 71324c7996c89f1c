"""`hprofiler run`: records and prints the result."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from hprofiler.analysis.work import user_rules
from hprofiler.app.run import RecordLost, RunRequest, RunResult, run
from hprofiler.base.errors import HprofilerError, NotFired, PicturesError, UsageError
from hprofiler.base.passwords import hide_in_word
from hprofiler.cli.options import objects as chosen
from hprofiler.cli.terminal.exit_codes import Exit
from hprofiler.cli.terminal.progress import display
from hprofiler.collect.visit_group import Reach
from hprofiler.model import Sampling, Selector
from hprofiler.model.measures import counted
from hprofiler.resolve import Located


def command(options: argparse.Namespace) -> int:
    selector, sampling = chosen.selector(options), chosen.sampling(options)
    located = chosen.target(options)
    return record(options, sampling, located, selector, chosen.reach(options, located))


def record(
    options: argparse.Namespace, sampling: Sampling, located: Located, selector: Selector, reach: Reach
) -> int:
    """Record, show progress, print the result; returns the exit code."""
    request = run_request(options, sampling, located, selector)
    chosen.print_cautions(sampling)
    chosen.print_limits(options)
    user_rules()  # a wrong file would be noticed after the recording
    archive = _archive(options)
    try:
        with display(len(located.hosts), sampling.duration) as listener:
            result = run(request, reach, listener)
    except NotFired as error:
        if not error.signal:
            raise
        print(f"hprofiler: {error.reason}", file=sys.stderr)
        return Exit.after(error.signal)
    except RecordLost as lost:
        from hprofiler.cli.terminal.run_text import print_ledger

        print_ledger(lost.results, "")  # run.json will not say it
        processes, hosts = lost.coverage.processes, lost.coverage.hosts
        told = f"{processes.recorded} of {counted(processes.found, 'processes')}"
        told += f" on {hosts.recorded} of {counted(hosts.all, 'hosts')}"
        print(f"recorded {told}", file=sys.stderr)
        kind = PicturesError if lost.coverage.processes.recorded else HprofilerError
        raise kind(lost.reason, lost.remedy) from lost
    from hprofiler.cli.terminal.run_text import print_json, print_summary

    if options.json:
        print_json(result)
    else:
        print_summary(result, selector, options.outliers)
    code = exit_code(result)
    if archive and result.kept and not _is_archived(options, archive, result.folder.path):
        return code or Exit.PARTIAL
    return code


def _archive(options: argparse.Namespace) -> str:
    """The archive of the run, which can be written; "" for none. Raises UsageError and ArchiveError."""
    archive: str = getattr(options, "archive", None) or ""
    if archive:
        from hprofiler.archive.add import ready

        ready(archive, options.pseudonymise)
        return archive
    for option in ("pseudonymise", "app"):
        if getattr(options, option, None):
            raise UsageError(f"--{option} has no effect without --archive", "name the archive")
    return archive


def _is_archived(options: argparse.Namespace, archive: str, folder: Path) -> bool:
    from hprofiler.archive.add import Added, add
    from hprofiler.cli.commands.archive import print_added

    try:
        (added,) = add([folder], archive, options.pseudonymise, options.app)
    except HprofilerError as error:  # the run itself is there
        added = Added(folder, failure=error)
    print_added(added, archive, sys.stderr.write if options.json else sys.stdout.write)
    return added.failure is None


def run_request(
    options: argparse.Namespace, sampling: Sampling, located: Located, selector: Selector
) -> RunRequest:
    spark, joining = chosen.spark_source(options, located), chosen.joining(options, selector)
    chosen.refuse_without_driver(joining["trigger"], spark, located)
    return RunRequest(
        located,
        selector,
        sampling,
        chosen.output_folder(options),
        options.force,
        # a demo has no cluster
        ("hprofiler", *(hide_in_word(word, getattr(options, "yarn", None)) for word in options.words)),
        options.raw_names,
        options.threads,
        options.trim,
        chosen.care(options),
        keep_empty=bool(options.output),
        spark=spark,
        slices=getattr(options, "slices", "none") != "none",
        **joining,
    )


def exit_code(result: RunResult) -> Exit:
    if result.interrupted:
        return Exit.after(result.signal)
    if result.report.empty:
        return Exit.NOTHING
    analysis = result.report.analysis
    missing = any(line.code == "pid-missing" for host in result.results for line in host.outcomes)
    complete = result.coverage.complete and analysis.whole and not missing
    return Exit.OK if complete else Exit.PARTIAL
