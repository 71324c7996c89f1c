"""The archive: tables, places, adding and compacting, and what a kill or a damaged file leaves."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hprofiler.archive.place import ArchiveError, open_place
from hprofiler.archive.reading import opened
from hprofiler.archive.schema import MARKER, TABLES, TYPES, VERSION
from hprofiler.base.errors import UsageError


def test_tables_have_only_types_that_all_readers_know():
    for table in TABLES.values():
        assert set(table.columns.values()) <= set(TYPES), table.name
        assert set(table.order) <= set(table.columns), table.name
        assert next(iter(table.columns)) == ("stack_high" if table.name == "stacks" else "run")


def test_a_new_archive_has_all_views_without_rows(tmp_path: Path):
    open_place(str(tmp_path / "archive"), create=True)
    with opened(str(tmp_path / "archive")) as duckdb:
        for table in TABLES.values():
            found = duckdb.execute(f"SELECT * FROM {table.name}")
            assert [column[0] for column in found.description] == list(table.columns)
            assert [str(column[1]) for column in found.description] == list(table.columns.values())
            assert found.fetchall() == []


def test_what_is_no_archive_is_refused(tmp_path: Path):
    with pytest.raises(UsageError, match="is not an archive"):
        open_place(str(tmp_path))
    (tmp_path / "letter.txt").write_text("mine")
    with pytest.raises(UsageError, match="not empty"):
        open_place(str(tmp_path), create=True)


def test_an_archive_of_another_version_is_refused(tmp_path: Path):
    (tmp_path / MARKER).write_text(json.dumps({"version": VERSION + 1}))
    with pytest.raises(ArchiveError, match=f"version {VERSION + 1}"), opened(str(tmp_path)):
        pass


def test_a_wrong_query_is_an_error_of_the_archive(tmp_path: Path):
    open_place(str(tmp_path), create=True)
    with pytest.raises(ArchiveError, match="nothing"), opened(str(tmp_path)) as duckdb:
        duckdb.execute("SELECT nothing FROM runs")
