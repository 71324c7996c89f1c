"""The page of a Spark application: what its description holds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hprofiler.analysis.spark.findings import judge
from hprofiler.report.blocks import Column, Lines, Part, Row, Table
from hprofiler.report.spark.job import page_parts
from hprofiler.report.spark.page import write_page
from hprofiler.spark.application import SUCCESS, Application, Executor, Stage, TaskTable
from hprofiler.spark.figures import figures
from hprofiler.spark.log.sql import SqlExecution
from hprofiler.spark.replay.schedule import Replay
from tests.unit.command import hprofiler
from tests.unit.spark_application import LOG
from tests.viewer.block import blocks, described

HOSTILE = "<script>alert(1)</script>\"'&\x1b"
SHOWN = HOSTILE[:-1] + "\ufffd"


def parts_of(application: Application) -> list[Part]:
    return page_parts(judge(application, Replay(application)), figures(application))


def written(application: Application, tmp_path: Path, *parts: Part) -> dict[str, Any]:
    page = tmp_path / "spark.html"
    write_page(application, ["what ran", "headline"], [*parts_of(application), *parts], page)
    assert "<script>alert" not in page.read_text()
    return described(page)


def stage_rows(found: dict[str, Any]) -> list[dict[str, Any]]:
    (table,) = (one for one in blocks(found, "table") if one["id"] == "stages")
    rows: list[dict[str, Any]] = table["rows"]
    return rows


def test_names_are_text(tmp_path: Path) -> None:
    tasks = TaskTable.of([{"launch": 1000, "finish": 2000, "status": SUCCESS}] * 3)
    stage = Stage(0, name=HOSTILE, start=900, end=2100, status="COMPLETE", tasks=tasks)
    application = Application(name=HOSTILE, stages={(0, 0): stage}, executor_ids=["1"], end=3000)
    keyed = Table("keyed", [Column("name")], [Row([HOSTILE], HOSTILE, [HOSTILE])])
    found = written(application, tmp_path, Part("more", [Lines([HOSTILE]), keyed]), Part(HOSTILE))
    assert blocks(found, "table")[-1]["rows"] == [{"cells": [SHOWN], "key": SHOWN, "belongs": [SHOWN]}]
    assert found["title"] == SHOWN and found["headline"] == ["Headline", "what ran"]
    (row,) = stage_rows(found)
    assert row["cells"][:4] == [f"stage 0.0 {SHOWN}", ["3 s", 3000], ["100%", 3000], ["1.2 s", 1200]]
    assert {"title": SHOWN[:1].upper() + SHOWN[1:], "about": "", "blocks": []} in found["sections"]


def test_the_timeline_is_the_whole_application(tmp_path: Path) -> None:
    """The driver alone before, between and after two stages; an executor that was lost, with the reason."""
    tasks = [TaskTable.of([{"launch": at, "finish": at + 1000, "status": SUCCESS}]) for at in (4000, 7000)]
    stages = {
        (number, 0): Stage(number, start=at, end=at + 1000, status="COMPLETE", tasks=table)
        for number, (at, table) in enumerate(zip((4000, 7000), tasks, strict=True))
    }
    executor = Executor("1", "n1", added=2000, removed=9000, cores=4, reason="Container killed")
    query = SqlExecution(5, 5, "count", 3500, 8500, stages={0: None, 1: None})
    application = Application(
        start=1000,
        end=11_000,
        stages=stages,
        executors={"1": executor},
        executor_ids=["1"],
        sql={5: query},
    )
    found = written(application, tmp_path)
    (timeline,) = blocks(found, "timeline")
    assert 10 <= timeline["seconds"] < 10.1
    lanes = {one["name"]: one["spans"] for one in timeline["lanes"]}
    alone = [(since, until) for since, until, *_ in lanes["driver alone"]]
    assert alone == [(0, 3), (4, 6), (7, 10)]
    assert lanes["executors"] == [
        [1, 8, "executor 1 on n1, 4 cores, removed: Container killed, 7 s", "executor 1", "removed"]
    ]
    assert [span[3] for span in lanes["stages"]] == ["stage 0.0", "stage 1.0"]
    assert lanes["queries"][0][:2] == [2.5, 7.5]
    curves = {one["name"]: one["values"] for one in timeline["curves"]}
    assert max(curves["active tasks"]) == 1 and max(curves["cores of executors"]) == 4
    belongs = [row["belongs"] for row in stage_rows(found)]
    assert belongs == [["query 5", "executor 1"]] * 2


def test_an_application_without_tasks(tmp_path: Path) -> None:
    assert not blocks(written(Application(), tmp_path), "timeline")


def test_the_command_writes_it(tmp_path: Path) -> None:
    page = tmp_path / "spark.html"
    done = hprofiler("spark", str(LOG), "-o", str(page))
    assert done.returncode == 0, done.stderr
    assert "stages-together" in done.stdout
    found = described(page)
    assert "stages-together" in found["headline"][-1] and len(blocks(found, "table")[0]["rows"]) > 3
    for wrong in (tmp_path, tmp_path / "spark.txt", tmp_path / "no" / "spark.html"):
        done = hprofiler("spark", str(LOG), "-o", str(wrong))
        assert done.returncode == 2 and "cannot write" in done.stderr


@pytest.mark.parametrize("moment", [0, 1, 1 << 53])
def test_impossible_times(tmp_path: Path, moment: int) -> None:
    tasks = TaskTable.of([{"launch": moment, "finish": 5, "status": SUCCESS}])
    stage = Stage(0, start=moment, end=5, status="COMPLETE", tasks=tasks)
    for start in (0, moment):
        made = Application(start=start, stages={(0, 0): stage}, executor_ids=["1"], end=3)
        found = written(made, tmp_path)
        for timeline in blocks(found, "timeline"):
            for lane in timeline["lanes"]:
                assert all(0 <= since <= until <= timeline["seconds"] for since, until, *_ in lane["spans"])
