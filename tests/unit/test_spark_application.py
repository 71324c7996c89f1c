"""The model of a Spark application: tables of tasks, and its notes."""

from __future__ import annotations

import random
import zlib

import msgspec
import pytest

from hprofiler.report.blocks import Table
from hprofiler.report.spark.stages import stage_part
from hprofiler.report.spark.text import application_part
from hprofiler.report.spark.words import NOTES, note_text
from hprofiler.spark.application import (
    DERIVED_COLUMNS,
    FAILED,
    KILLED,
    RUNNING,
    SUCCESS,
    TASK_COLUMNS,
    Application,
    Note,
    Stage,
    TaskTable,
)
from hprofiler.spark.figures import Figures, figures


def test_a_table_gives_back_what_was_put_in() -> None:
    chance = random.Random(1)
    widest = {name: chance.choice((1, 200, 60_000, 1 << 31, 1 << 40, 1 << 62)) for name in TASK_COLUMNS}
    rows = [
        {name: chance.randrange(most) - (name == "partition") for name, most in widest.items()}
        for _ in range(2500)
    ]
    table = TaskTable.of(rows)
    assert len(table) == len(rows)
    for name in TASK_COLUMNS:
        assert list(table.column(name)) == [row[name] for row in rows]
    table.pack()
    assert list(table.rows()) == rows
    assert list(table.columns("tid", "launch"))[7] == (rows[7]["tid"], rows[7]["launch"])
    assert table.total("run_time") == sum(row["run_time"] for row in rows)


def test_rows_may_be_added_to_a_packed_table() -> None:
    table = TaskTable.of([{"tid": 1}])
    table.pack()
    table.add((2,) + (0,) * (len(TASK_COLUMNS) - 1))
    assert list(table.column("tid")) == [1, 2]
    assert list(TaskTable().column("duration")) == []
    with pytest.raises(KeyError, match="runtime"):
        TaskTable.of([{"runtime": 5}])


def test_what_follows_from_the_columns_is_as_spark_has_it() -> None:
    parts = {"run_time": 700, "deserialize_time": 100, "serialize_time": 50}
    table = TaskTable.of(
        [
            {"launch": 1000, "finish": 2000, "getting_result": 1950, "status": SUCCESS, **parts},
            {"launch": 1000, "finish": 1500, "status": FAILED, **parts},
            {"launch": 1000, "status": RUNNING},
            {"launch": 1000, "finish": 1900, "status": FAILED},  # its executor was lost, and its times
        ]
    )
    found = {name: list(table.column(name)) for name in DERIVED_COLUMNS}
    assert found == {
        "duration": [1000, 500, 0, 900],
        "getting": [50, 0, 0, 0],
        "scheduler_delay": [100, 0, 0, 0],
    }


def test_columns_of_equal_values_take_no_memory() -> None:
    rows = [{"tid": number, "launch": 1_700_000_000_000 + 5 * number} for number in range(100_000)]
    assert sum(map(len, TaskTable.of(rows).packed())) < 4 * len(rows)


@pytest.mark.parametrize(
    "column",
    [
        pytest.param(("Bz", 0, zlib.compress(bytes(100 << 20))), id="unpacks to too much"),
        pytest.param(("Bz", 0, b"x"), id="is not packed"),
        pytest.param(("B", 0, bytes(3)), id="is too short"),
        pytest.param(("d", 0, bytes(800)), id="is of another type"),
        pytest.param(("B", (1 << 63) - 1, bytes(99) + b"\1"), id="is beyond 64 bits"),
        pytest.param(1 << 63, id="is a number beyond 64 bits"),
    ],
)
def test_a_damaged_column_is_an_error(column: object) -> None:
    """A run folder may come from somebody else."""
    (part,) = TaskTable.of([{"tid": number} for number in range(100)]).packed()
    assert len(TaskTable.unpacked([part])) == 100
    columns = [column, *msgspec.msgpack.decode(part)[1:]]
    with pytest.raises(ValueError, match=r"of a task|of tasks"):
        TaskTable.unpacked([msgspec.msgpack.encode(columns)])


def test_a_table_with_some_speculative_tasks_is_read_again() -> None:
    """The event log has true and false for them."""
    rows = [{"speculative": True}, {"speculative": False}]
    assert [row["speculative"] for row in TaskTable.unpacked(TaskTable.of(rows).packed()).rows()] == [1, 0]


@pytest.mark.parametrize("code", NOTES)
def test_every_note_has_a_text(code: str) -> None:
    assert "{" not in note_text(Note(code, 3, "x"))


def cells_of_stage(found: Figures) -> dict[str, str]:
    """The texts of the only stage by the heads of the table."""
    tables = [table for table in stage_part(found, {}).blocks if isinstance(table, Table)]
    table = next(table for table in tables if table.id == "stages")
    texts = [cell if isinstance(cell, str) else cell[0] for cell in table.rows[0].cells]
    return dict(zip((column.head for column in table.columns), texts, strict=True))


def test_cpu_of_short_tasks_is_no_share_above_one() -> None:
    """Their run time is rounded down to milliseconds; figures for programs stay as Spark has them."""
    short = {"launch": 1000, "finish": 1010, "status": SUCCESS, "run_time": 0, "cpu_time": 900_000}
    rows = [{**short, "run_time": int(number == 0)} for number in range(100)]
    stage = Stage(0, start=1000, end=1010, status="COMPLETE", tasks=TaskTable.of(rows))
    found = figures(Application(stages={stage.key: stage}))
    text = application_part(Application(), found).text + stage_part(found, {}).text
    assert cells_of_stage(found)["CPU/run"] == "100%"
    assert "1 ms, CPU 90 ms" in text and "100%" in text and "9000%" not in text
    assert found.record()["executorCpuTime"] == 90_000_000


def test_the_terminal_and_the_page_have_the_same_cells() -> None:
    """Failed tasks are those that Spark counts as failed; killed ones are apart."""
    row = {"launch": 1000, "finish": 2000}
    spilled = {"memory_spilled": 1 << 30, "disk_spilled": 1 << 20}
    rows = [{**row, **spilled, "status": SUCCESS}, {**row, "status": FAILED}, {**row, "status": KILLED}]
    stage = Stage(0, start=1000, end=2000, status="COMPLETE", tasks=TaskTable.of(rows), resubmitted=1)
    found = figures(Application(stages={stage.key: stage}))
    cells = cells_of_stage(found)
    assert (cells["failed"], cells["killed"], cells["disk spill"]) == ("2", "1", "1 MiB")
    head, line = (line.split() for line in stage_part(found, {}).text.splitlines()[1:])
    assert head[2:5] == ["tasks", "failed", "killed"] and line[3:6] == ["1", "2", "1"] and "MiB" in line
