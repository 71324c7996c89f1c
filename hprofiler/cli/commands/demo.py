"""`hprofiler demo`: starts a small JVM job on this machine and records it."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace

from hprofiler.app.demo import running_job
from hprofiler.base.resources import selector_directory
from hprofiler.cli.commands.run import record
from hprofiler.cli.options import objects as chosen
from hprofiler.resolve import TargetOptions, resolve
from hprofiler.selectors.selection import parse_selector


def command(options: argparse.Namespace) -> int:
    located, sampling = resolve(TargetOptions()), chosen.sampling(options)
    with running_job(_say) as job:
        started = ", ".join(f"{process.role} (pid {process.pid})" for process in job.processes)
        _say(f"a job of two JVMs is running: {started}")
        selector = parse_selector(job.selector, [selector_directory()])
        own = [{**rule, "options": job.options} for rule in selector.query["any"]]
        selector = replace(selector, query={**selector.query, "any": own})
        return record(options, sampling, located, selector, chosen.local_reach(options))


def _say(what: str) -> None:
    print(f"demo: {what}", file=sys.stderr, flush=True)
