"""Sections of tables and charts: what the pages without a profile and the view of Spark share."""

from __future__ import annotations

from pathlib import Path

import pytest
from selenium.webdriver.common.keys import Keys

from hprofiler.report.blocks import Chart, Column, Mark, Part, Row, Series, Span, SpanLane, Table, Timeline
from hprofiler.report.plain_page import write_plain_page
from tests.unit.command import exit_code
from tests.unit.spark_application import LOG
from tests.viewer import axe
from tests.viewer.browser import Viewer
from tests.viewer.conftest import prefer

DAY = 86_400_000


def stage(number: int, queries: int = 5) -> Row:
    cells = (
        f"stage {number}.0 scan",
        (f"{number} s", float(number)),
        "" if number else ("7", 7.0),
        ("wide " * 30, 1.0),
    )
    return Row(cells, f"stage {number}.0", [f"query {number % queries}"])


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """25 stages of 5 queries, and a chart of two days."""
    columns = (Column("stage", number=False), Column("took"), Column("failed"), Column("more", minor=True))
    stages = Table("stages", columns, [stage(number) for number in range(25)], "stages")
    heads = (Column("took"), Column("query", number=False))
    queries = Table(
        "queries", heads, [Row([("1 s", 1.0), f"{one} select"], f"query {one}") for one in range(5)]
    )
    groups = Table(
        "groups",
        heads,
        [Row([("3 s", 3.0), "1 select and alike"], "queries like query 1", (), ["query 1", "query 2"])],
    )
    spans = [Span(number, number + 1, f"stage {number}.0", f"stage {number}.0") for number in range(25)]
    line = Timeline("Tasks", 25, 0.5, [("active tasks", [1.0] * 50)], [SpanLane("stages", spans)])
    marks = [Mark(day * DAY, 0.5, f"{day} %", 0.4, 0.6, f"run {day}") for day in (0, 1)]
    chart = Chart("Share", [Series("m", marks)], [(0, "0 %"), (1, "1 %")])
    parts = [
        Part("time", [line]),
        Part("stages", [stages]),
        Part("queries", [groups, queries]),
        Part("days", [chart]),
    ]
    out = tmp_path_factory.mktemp("sections") / "page.html"
    write_plain_page("job", ["Heading", "second"], parts, out)
    return out


def names(viewer: Viewer, table: str) -> list[str]:
    return viewer.texts(f"#table-{table} td.name")


def test_a_table_sorts_filters_and_shows_ten_rows_first(viewer: Viewer, page: Path) -> None:
    viewer.open(page)
    assert len(names(viewer, "stages")) == 10
    assert viewer.text("table-stages-more") == "Show all 25"
    viewer.element("table-stages-sort-c1").click()
    assert names(viewer, "stages")[0] == "stage 24.0 scan"
    viewer.element("table-stages-more").click()
    assert len(names(viewer, "stages")) == 25
    # What is not known stands last, whatever it is sorted by.
    viewer.element("table-stages-sort-c2").click()
    assert names(viewer, "stages")[0] == "stage 0.0 scan"
    viewer.first("input[type=search]").send_keys("stage 7")
    assert names(viewer, "stages") == ["stage 7.0 scan"]
    # A row's name stands first, also where the terminal has it last.
    assert viewer.texts("#table-queries th")[0] == "query"


def test_what_belongs_to_a_row(viewer: Viewer, page: Path) -> None:
    viewer.open(page)
    viewer.first("#table-queries td.name button").click()
    assert names(viewer, "stages") == [f"stage {number}.0 scan" for number in (0, 5, 10, 15, 20)]
    assert names(viewer, "queries") == ["0 select"]
    assert len(viewer.all(".bar.faint")) == 20
    assert "query 0" in viewer.first(".chosen").text
    viewer.all(".chosen button")[-1].click()
    assert len(names(viewer, "queries")) == 5 and not viewer.all(".bar.faint")


def test_a_row_of_several_leads_to_all_of_them(viewer: Viewer, page: Path) -> None:
    viewer.open(page)
    viewer.first("#table-groups td.name button").click()
    assert names(viewer, "queries") == ["1 select", "2 select"]
    assert names(viewer, "groups") == ["1 select and alike"]
    assert names(viewer, "stages") == [
        f"stage {number}.0 scan" for number in (1, 2, 6, 7, 11, 12, 16, 17, 21, 22)
    ]
    assert viewer.first(".chosen span").text == "Only queries like query 1 and what belongs to them"
    viewer.all(".chosen button")[-1].click()
    viewer.first("#table-queries td.name button").click()
    assert names(viewer, "queries") == ["0 select"] and names(viewer, "groups") == []


def test_values_are_read_by_keys(viewer: Viewer, page: Path) -> None:
    viewer.open(page)
    timeline, chart = viewer.all(".picture")
    timeline.send_keys(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
    assert viewer.texts(".readout")[0] == "0.5 s: active tasks 1"
    timeline.send_keys(Keys.ARROW_DOWN, Keys.ARROW_RIGHT)
    assert viewer.texts(".readout")[0] == "stage 1.0"
    timeline.send_keys(Keys.ENTER)
    assert names(viewer, "stages") == ["stage 1.0 scan"]
    chart.send_keys(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
    assert viewer.texts(".readout")[1] == "1970-01-02 00:00, m: 1 %"


def test_a_chart_is_drawn_where_it_has_no_room(viewer: Viewer, page: Path) -> None:
    """As for a moment while a page is laid out for paper."""
    metrics = {"width": 70, "height": 844, "deviceScaleFactor": 1, "mobile": False}
    viewer.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    try:
        viewer.open(page)
        viewer.until("return [...document.querySelectorAll('.picture')].every((one) => one.firstChild)")
    finally:
        viewer.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


@pytest.mark.parametrize("width", [400, 1300])
def test_it_is_never_wider_than_the_window(viewer: Viewer, page: Path, tmp_path: Path, width: int) -> None:
    """Columns that have no room are left out, with a button that shows them; one log is real."""
    real = tmp_path / "spark.html"
    assert exit_code(["spark", LOG, "-o", real]) == 0
    metrics = {"width": width, "height": 844, "deviceScaleFactor": 1, "mobile": width < 500}
    viewer.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    try:
        for one in (page, real):
            for scheme in ("light", "dark"):
                prefer(viewer.driver, scheme)
                viewer.open(one)
                viewer.until(
                    "return [...document.querySelectorAll('.picture')].every((one) => one.firstChild)"
                )
                wide = "return document.documentElement.scrollWidth > document.documentElement.clientWidth"
                assert not viewer.driver.execute_script(wide)
                assert axe.faults(viewer.driver) == []
            viewer.picture(f"sections-{one.stem}-{width}")
    finally:
        viewer.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
