"""Tables as files: rows by names of columns, written as CSV or Parquet so many rows at a time."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from io import TextIOWrapper
from itertools import islice
from typing import Any, BinaryIO, TextIO

from hprofiler.base.errors import UsageError

_ROWS = 20_000
Row = Mapping[str, Any]


def check_parquet(option: str, remedy: str) -> None:
    """Raises UsageError if the library for Parquet is not installed."""
    try:
        import pyarrow.parquet  # noqa: F401
    except ImportError as error:
        raise UsageError(f"{option} needs the library pyarrow", remedy) from error


@dataclass(frozen=True)
class Table:
    """Rows, which can be read several times. `alike`: all have the columns and types of the first."""

    rows: Callable[[], Iterable[Row]]
    alike: bool = False


def write_csv(file: BinaryIO, table: Table) -> None:
    text = TextIOWrapper(file, "utf-8", newline="")
    print_csv(text, table)
    text.detach()


def print_csv(file: TextIO, table: Table) -> None:
    names = _names(next(_parts(table), []) if table.alike else table.rows())
    writer = csv.DictWriter(file, names)
    if names:
        writer.writeheader()
    for part in _parts(table):
        writer.writerows(part)


def write_parquet(file: BinaryIO, table: Table) -> None:
    import pyarrow
    import pyarrow.parquet

    def arrow(part: list[Row], names: Iterable[str], schema: Any = None) -> Any:
        columns = {name: [row.get(name) for row in part] for name in names}
        return pyarrow.table(columns, schema=schema)

    parts = islice(_parts(table), 1 if table.alike else None)
    schemas = (arrow(part, _names(part)).schema for part in parts)
    schema = pyarrow.unify_schemas([pyarrow.schema([]), *schemas], promote_options="permissive")
    with pyarrow.parquet.ParquetWriter(file, schema) as writer:
        for part in _parts(table):
            writer.write_table(arrow(part, schema.names, schema))


def _parts(table: Table) -> Iterator[list[Row]]:
    """Rows, so many at a time; tables may be long."""
    rows = iter(table.rows())
    while part := list(islice(rows, _ROWS)):
        yield part


def _names(rows: Iterable[Row]) -> list[str]:
    return list(dict.fromkeys(name for row in rows for name in row))
