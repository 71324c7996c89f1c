"""`hprofiler convert HOST/metrics.json.gz… -o OUT`: metrics of hosts as CSV, Parquet or OpenMetrics text."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from hprofiler.base.errors import UsageError, writing
from hprofiler.base.row_files import check_parquet, print_csv, write_csv, write_parquet
from hprofiler.cli.terminal.exit_codes import Exit
from hprofiler.runfolder import METRICS_FILE, replacing
from hprofiler.runfolder.metrics_file import read_metrics

_ENDINGS = {".csv": "csv", ".parquet": "parquet", ".txt": "openmetrics"}
# Options that have a meaning here, and what the parser adds.
_OPTIONS = frozenset({"inputs", "output", "to", "command", "words"})


def is_asked(options: argparse.Namespace) -> bool:
    """Whether the inputs are metrics. Raises UsageError if only some are."""
    metrics = [name for name in options.inputs if Path(name).name.endswith(METRICS_FILE)]
    if metrics and len(metrics) < len(options.inputs):
        raise UsageError("metrics and profiles cannot be converted together", "give them to a command each")
    return bool(metrics)


def command(options: argparse.Namespace) -> int:
    format = _check(options)
    paths = [Path(name) for name in options.inputs]
    if options.output == "-":  # what cannot be read is an error before anything is printed
        for path in paths:
            read_metrics(path)
    with writing("to stdout" if options.output == "-" else options.output):
        _write(paths, options.output, format)
    return Exit.OK


def _check(options: argparse.Namespace) -> str:
    """The format. Raises UsageError for what cannot work."""
    without = next((name for name, value in vars(options).items() if value and name not in _OPTIONS), None)
    if without is not None:
        raise UsageError(
            f"--{without.replace('_', '-')} is for profiles, but {options.inputs[0]} has metrics"
        )
    known = f"end the name with one of {' '.join(_ENDINGS)}, or use --to {' '.join(_ENDINGS.values())}"
    format: str = options.to or _ENDINGS.get(Path(options.output).suffix, "")
    if format not in _ENDINGS.values():
        raise UsageError(f"cannot write metrics to {options.output}", known)
    if format == "parquet":
        if options.output == "-":
            raise UsageError("cannot write Parquet to stdout", "name a file with -o")
        check_parquet("Parquet", "install hprofiler[parquet], or write a .csv")
    if options.output == "-" and not sys.stdout:
        raise UsageError("cannot write to stdout: it is closed", "name a file with -o")
    return format


def _write(paths: Sequence[Path], output: str, format: str) -> None:
    from hprofiler.report.metric_files import open_metrics, table_of  # not needed to convert profiles

    table = table_of(paths)
    if output == "-" and format == "csv":
        print_csv(sys.stdout, table)
    elif output == "-":
        sys.stdout.writelines(open_metrics(paths))
    else:
        with replacing(Path(output)) as file:
            if format == "parquet":
                write_parquet(file, table)
            elif format == "csv":
                write_csv(file, table)
            else:
                file.writelines(line.encode() for line in open_metrics(paths))
