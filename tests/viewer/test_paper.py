"""Printing of each view."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.viewer.browser import Viewer
from tests.viewer.made_run import MadeHost
from tests.viewer.page_objects import run_page, show, table


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    hosts = [
        MadeHost(name, {7: f"a;b {samples}\nc 20\n"}, events={"alloc": {7: "a;make 1048576\n"}})
        for name, samples in (("one", 80), ("two", 40))
    ]
    return run_page(tmp_path_factory.mktemp("paper"), hosts, "cpu", "alloc")


@contextmanager
def paper(viewer: Viewer) -> Iterator[None]:
    """The page as it is laid out while it is printed."""
    viewer.driver.execute_script("window.dispatchEvent(new Event('beforeprint'))")
    viewer.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        yield
    finally:
        viewer.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
        viewer.driver.execute_script("window.dispatchEvent(new Event('afterprint'))")


def from_the_top(viewer: Viewer, *ids: str) -> list[str]:
    """The elements that are printed, from the top."""
    tops = {id: viewer.element(id).rect["y"] for id in ids if viewer.element(id).is_displayed()}
    return sorted(tops, key=lambda id: tops[id])


PANELS = ("graph-panel", "methods-panel", "hosts-panel", "compare-panel", "run-panel")


def test_paper_begins_with_the_view_and_has_a_graph(viewer: Viewer, page: Path) -> None:
    viewer.open(page)
    for view, order in (
        ("graph", ["graph-panel", "hosts-panel", "run-panel"]),
        ("methods", ["methods-panel", "graph-panel", "hosts-panel", "run-panel"]),
        ("hosts", ["hosts-panel", "graph-panel", "run-panel"]),
        ("run", ["run-panel", "graph-panel", "hosts-panel"]),
        ("compare", ["compare-panel", "hosts-panel", "run-panel"]),
    ):
        viewer.element(f"view-{view}").click()
        with paper(viewer):
            assert from_the_top(viewer, *PANELS) == order
            viewer.canvas = "compare-canvas" if view == "compare" else "graph-canvas"
            assert max(viewer.color(0.1, 1)) - min(viewer.color(0.1, 1)) > 12  # there are frames in it
            assert viewer.element("legend").is_displayed() == (view != "compare")
            assert viewer.text("printed") == "Shown: CPU time of Cluster, sum. Not printed: allocations."
        assert from_the_top(viewer, *PANELS) == [f"{view}-panel"]
        assert viewer.element("legend").is_displayed() == (view == "graph")


def test_paper_shows_event_scope_and_search(viewer: Viewer, page: Path) -> None:
    viewer.open(page, "view=methods&scope=host:1&q=b")
    viewer.until_text("search-result", "66.7 % matched")
    with paper(viewer):
        assert viewer.text("printed") == (
            "Shown: CPU time of two. Not printed: allocations. Marked: b, 66.7 % matched."
        )


def test_a_view_works_after_printing(viewer: Viewer, page: Path) -> None:
    show(viewer, page, "hosts")
    with paper(viewer):
        pass
    viewer.element("view-graph").click()
    viewer.canvas = "graph-canvas"
    assert viewer.hover(0.1, 1).splitlines()[0] == "a"


def test_paper_has_the_processes_of_the_event_that_is_shown(viewer: Viewer, tmp_path: Path) -> None:
    recorded = {7: "a;b 80\n", 8: "a;b 20\n"}
    host = MadeHost("one", recorded, events={"alloc": {7: "a;make 1048576\n", 8: "a;make 3145728\n"}})
    viewer.open(run_page(tmp_path, [host], "cpu", "alloc"))
    with paper(viewer):
        assert [row[0] for row in table(viewer, "processes")] == ["80.0 %", "20.0 %"]
    viewer.follow("view=hosts")
    viewer.element("processes-sort-pid").click()
    viewer.follow("event=alloc")
    with paper(viewer):
        assert [row[0] for row in table(viewer, "processes")] == ["75.0 %", "25.0 %"]


def test_paper_cuts_no_table_off(viewer: Viewer, spark_page: Path) -> None:
    """A4 upright, with the usual margins, is 718 pixels wide."""
    viewer.driver.set_window_size(718, 1000)
    viewer.open(spark_page)
    for view in ("graph", "methods", "hosts", "compare"):
        viewer.element(f"view-{view}").click()
        with paper(viewer):
            cut = viewer.driver.execute_script(
                "return [...document.querySelectorAll('main table')].filter((one) => one.offsetParent"
                " && one.getBoundingClientRect().right > innerWidth).map((one) => one.innerText.slice(0, 90))"
            )
        assert cut == [], view
