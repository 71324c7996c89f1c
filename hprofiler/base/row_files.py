"""Tables as files: rows by names of columns, written as CSV or Parquet so many rows at a time."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, TextIO

from hprofiler.base.errors import UsageError

_ROWS = 20_000
Row = Mapping[str, Any]


def check_parquet(option: str, remedy: str) -> None:
    """Raises UsageError if the library for Parquet is not installed."""
    try:
        import pyarrow.parquet  # noqa: F401
    except ImportError as error:
        raise UsageError(f"{option} needs the library pyarrow", remedy) from error


def write_csv(path: Path, rows: Iterable[Row]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        print_csv(file, rows)


def print_csv(file: TextIO, rows: Iterable[Row]) -> None:
    """The columns are those of the first rows."""
    writer = None
    for part in _parts(rows):
        if writer is None:
            writer = csv.DictWriter(file, _names(part), extrasaction="ignore")
            writer.writeheader()
        writer.writerows(part)


def write_parquet(path: Path, rows: Iterable[Row]) -> None:
    """The columns and their types are those of the first rows."""
    import pyarrow
    import pyarrow.parquet

    writer = None
    try:
        for part in _parts(rows):
            names = _names(part)
            columns = {name: [row.get(name) for row in part] for name in names}
            table = pyarrow.table(columns) if writer is None else pyarrow.table(columns, schema=writer.schema)
            writer = writer or pyarrow.parquet.ParquetWriter(path, table.schema)
            writer.write_table(table)
        if writer is None:
            pyarrow.parquet.write_table(pyarrow.table({}), path)
    finally:
        if writer is not None:
            writer.close()


def _parts(rows: Iterable[Row]) -> Iterator[list[Row]]:
    """Rows, so many at a time; tables may be long."""
    rows = iter(rows)
    while part := list(islice(rows, _ROWS)):
        yield part


def _names(rows: Iterable[Row]) -> list[str]:
    return list(dict.fromkeys(name for row in rows for name in row))
