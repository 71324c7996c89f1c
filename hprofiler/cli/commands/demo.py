"""`hprofiler demo`: starts a small JVM job on this machine and records it."""

from __future__ import annotations

import argparse
import shlex
import shutil
import sys
from dataclasses import replace
from pathlib import Path

from hprofiler.app.demo import running_job
from hprofiler.base.resources import selector_directory
from hprofiler.cli.commands.run import record
from hprofiler.cli.options import objects as chosen
from hprofiler.cli.terminal.exit_codes import Exit
from hprofiler.resolve import TargetOptions, resolve
from hprofiler.selectors.selection import parse_selector


def command(options: argparse.Namespace) -> int:
    located, sampling = resolve(TargetOptions()), chosen.sampling(options)
    options.output = options.output or str(chosen.output_folder(options))
    with running_job(_say) as job:
        started = ", ".join(f"{process.role} (pid {process.pid})" for process in job.processes)
        _say(f"a job of two JVMs is running: {started}")
        selector = parse_selector(job.selector, [selector_directory()])
        own = [{**rule, "options": job.options} for rule in selector.query["any"]]
        selector = replace(selector, query={**selector.query, "any": own})
        code = record(options, sampling, located, selector, chosen.local_reach(options))
    if code in (Exit.OK, Exit.PARTIAL) and not options.json:
        _say_next(options.output)
    return code


def _say_next(folder: str) -> None:
    """How to look at the result, and what to do next."""
    program = _program()
    _say(f"open the page: {program} report {shlex.quote(folder)} --open    (on a server: --serve)")
    _say(f"profile your own JVMs: {program} ps -j java lists them")


def _program() -> str:
    """How this program is called: its name if the shell finds it, else its path."""
    called, found = Path(sys.argv[0]), shutil.which("hprofiler")
    if called.name != "hprofiler":
        return f"{shlex.quote(sys.executable)} -m hprofiler"
    return "hprofiler" if found and called.samefile(found) else shlex.quote(sys.argv[0])


def _say(what: str) -> None:
    print(f"demo: {what}", file=sys.stderr, flush=True)
