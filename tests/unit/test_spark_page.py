"""The page of a Spark application."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

import pytest

from hprofiler.report.spark_page import write_page
from hprofiler.report.spark_text import Part
from hprofiler.spark.application import SUCCESS, Application, Stage, TaskTable
from hprofiler.spark.figures import figures
from tests.unit.command import hprofiler
from tests.unit.spark_application import LOG

HOSTILE = "<script>alert(1)</script>\"'&\x1b"


class Seen(HTMLParser):
    """Elements by name, those that are open, and cells of the table."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: dict[str, int] = {}
        self.open: list[str] = []
        self.cells: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements[tag] = self.elements.get(tag, 0) + 1
        if tag not in ("meta",):
            self.open.append(tag)
        if tag == "td":
            self.cells.append("")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements[tag] = self.elements.get(tag, 0) + 1

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "td":
            self.cells[-1] += data


def written(application: Application, tmp_path: Path, *parts: Part) -> Seen:
    page = tmp_path / "spark.html"
    write_page(application, figures(application), ["headline"], parts, page)
    seen = Seen(page.read_text())
    assert seen.open == []
    return seen


def test_names_are_text(tmp_path: Path) -> None:
    tasks = TaskTable.of([{"launch": 1000, "finish": 2000, "status": SUCCESS}] * 3)
    stage = Stage(0, name=HOSTILE, start=900, end=2100, status="COMPLETE", tasks=tasks)
    application = Application(name=HOSTILE, stages={(0, 0): stage}, end=3000)
    seen = written(application, tmp_path, Part("more", [HOSTILE]), Part(HOSTILE))
    assert "script" not in seen.elements
    assert seen.cells[:4] == [f"stage 0.0 {HOSTILE[:-1]}\ufffd", "3 s", "100%", "1.2 s"]
    assert seen.elements["rect"] == 1 and seen.elements["path"] == 5 + 6


def test_an_application_without_tasks(tmp_path: Path) -> None:
    assert "svg" not in written(Application(), tmp_path).elements


def test_the_command_writes_it(tmp_path: Path) -> None:
    page = tmp_path / "spark.html"
    done = hprofiler("spark", str(LOG), "-o", str(page))
    assert done.returncode == 0, done.stderr
    assert "stages-together" in done.stdout
    seen = Seen(page.read_text())
    assert seen.elements["h1"] == 1 and seen.elements["tr"] > 3
    for wrong in (tmp_path, tmp_path / "spark.txt", tmp_path / "no" / "spark.html"):
        done = hprofiler("spark", str(LOG), "-o", str(wrong))
        assert done.returncode == 2 and "cannot write" in done.stderr


@pytest.mark.parametrize("moment", [0, 1, 1 << 53])
def test_impossible_times(tmp_path: Path, moment: int) -> None:
    tasks = TaskTable.of([{"launch": moment, "finish": 5, "status": SUCCESS}])
    stage = Stage(0, start=moment, end=5, status="COMPLETE", tasks=tasks)
    written(Application(stages={(0, 0): stage}, end=3), tmp_path)
