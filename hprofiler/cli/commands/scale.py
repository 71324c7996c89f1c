"""`hprofiler scale LOG…`: runs of a Spark job on more and fewer cores, and how far it scales."""

from __future__ import annotations

import argparse

from hprofiler.base.errors import UsageError
from hprofiler.base.passwords import shown_url
from hprofiler.cli.commands.spark import exit_of
from hprofiler.cli.options import yarn as yarn_options
from hprofiler.cli.terminal.exit_codes import Exit
from hprofiler.cli.terminal.lines import print_json


def command(options: argparse.Namespace) -> int:
    from hprofiler.app.spark_source import read_source
    from hprofiler.report.spark_scaling import scaling_lines, warning_text
    from hprofiler.spark.figures import figures
    from hprofiler.spark.scaling import run_of, scaling

    runs = []
    seen: dict[tuple[str, str], str] = {}
    ending = Exit.OK
    for given in options.sources:
        source = shown_url(given) if "://" in given else given
        application = read_source(given, yarn_options.cluster(options))
        key = (application.id, application.attempt)
        if application.id and key in seen:
            raise UsageError(f"{seen[key]} and {source} are the same run", "name each run once")
        seen[key] = source
        runs.append(run_of(source, application, figures(application), options.by))
        ending = max(ending, exit_of(application))
    found = scaling(runs)
    if options.json:
        record = found.record()
        for warning, one in zip(record["warnings"], found.warnings, strict=True):
            warning["text"] = warning_text(one)
        print_json({"by": options.by, **record})
    else:
        print("\n".join(scaling_lines(found, options.by)))
    return ending
