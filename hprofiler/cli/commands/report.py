"""`hprofiler report DIR`: regenerates the report of a run folder or of a dump, or shows it."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from hprofiler.base.errors import UsageError
from hprofiler.base.paths import is_file
from hprofiler.cli.terminal.exit_codes import Exit
from hprofiler.cli.terminal.ledger import print_failures, print_problems
from hprofiler.model.measures import counted
from hprofiler.runfolder import RunFolder
from hprofiler.runfolder.dumps import DumpFolder


def command(options: argparse.Namespace) -> int:
    if DumpFolder.stands_for(Path(options.folder)):
        return _of_dump(options)
    page = _page_to_show(options)
    if page is not None:
        print(page)
        _show(page, options)
        return Exit.OK
    return _make(options)


def _page_to_show(options: argparse.Namespace) -> Path | None:
    """The existing page, if it is only to be shown."""
    if _changes(options):
        return None
    if not options.open and options.serve is None:
        return None
    page = RunFolder.open(Path(options.folder)).page_path
    return page if is_file(page) else None


def _changes(options: argparse.Namespace) -> bool:
    """Whether the report is to be another than the usual one."""
    chosen = options.raw_names or options.threads or options.trim or options.time
    return bool(chosen) or options.slices == "none"


def _make(options: argparse.Namespace) -> int:
    from hprofiler.analysis.result import CUT_OFF
    from hprofiler.report import make_report

    how = (options.raw_names, options.threads, options.trim, options.time, options.slices != "none")
    report = make_report(Path(options.folder), *how)
    print(report.page)
    if (facts := report.analysis.facts).unfinished:
        from hprofiler.app.run import failures

        print_problems("cut off", [note for note in facts.notes if note.code == CUT_OFF])
        print_failures(failures(facts.record.hosts), str(report.page))
    print_problems("not in the pictures", report.analysis.problems)
    print_problems("not in the report", report.analysis.faults)
    for event in report.analysis.events:
        if broken := len(event.facts.untrusted):
            of = f"of {counted(broken, 'processes')}"
            print(
                f"{event.event}: more than a third of the stacks {of} are broken: see the page",
                file=sys.stderr,
            )
    _show(report.page, options)
    if report.empty:
        reason = f"no samples to show ({report.coverage}); there are no pictures, and the page says why"
        if report.analysis.cut_off:
            kept = RunFolder.open(Path(options.folder)).how_to_read_profiles()
            before = "its outcome was written" if kept else "its samples were kept"
            reason = f"the run ended before {before}: {kept or 'record it again'}"
        print(f"hprofiler: {reason}", file=sys.stderr)
        return Exit.NOTHING
    return Exit.OK if report.analysis.whole else Exit.PARTIAL


def _of_dump(options: argparse.Namespace) -> int:
    from hprofiler.report.dump import make_dump_report

    if _changes(options):
        raise UsageError(
            f"{options.folder} is a dump: --threads, --raw-names, --trim, --time and --slices are for runs",
            "leave them out; the page has groups of threads",
        )
    report = make_dump_report(Path(options.folder))
    print(report.text)
    print(report.page)
    print_problems("not answered", [one for one in report.analysis.outcomes if one.reason])
    _show(report.page, options)
    return Exit.NOTHING if report.empty else Exit.OK if report.whole else Exit.PARTIAL


def _show(page: Path, options: argparse.Namespace) -> None:
    """Opens the page in the browser, or serves it."""
    from hprofiler.cli.terminal.serve import PageServer, open_in_browser

    server = None if options.serve is None else PageServer(page, options.serve)
    if server is not None:
        print(f"{server.address}\n  from another machine: {server.tunnel}\n  Ctrl-C ends it", flush=True)
    address = server.address if server else page.absolute().as_uri()
    if options.open and not open_in_browser(address):
        print(f"hprofiler: no browser found; open {address}", file=sys.stderr)
    if server is not None:
        server.serve()
