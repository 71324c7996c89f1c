"""The page by keyboard alone, and on paper."""

from __future__ import annotations

from pathlib import Path

import pytest
from selenium.webdriver.common.keys import Keys

from tests.viewer.browser import ROW, Viewer
from tests.viewer.conftest import prefer
from tests.viewer.made_run import MadeHost
from tests.viewer.page_objects import run_page

MOST_TABS = 60


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """In `a` are 80 of 100 samples, in its `hot` 60, all of them on h1; 10 are in `deep` below 60 others."""
    deep = ";".join(f"d{depth}" for depth in range(60))
    hosts = [
        MadeHost("h1", {1: "a;hot_[j] 60\nz 5\n"}, events={"alloc": {1: "a;make 1048576\n"}}),
        MadeHost("h2", {2: f"a;cold_[j] 20\n{deep};deep 10\nz 5\n"}),
    ]
    return run_page(tmp_path_factory.mktemp("keys"), hosts, "cpu", "alloc")


def tab_to(viewer: Viewer, id: str) -> None:
    """Press Tab until the element has the focus."""
    for _ in range(MOST_TABS):
        if viewer.focused() == id:
            return
        viewer.press(Keys.TAB)
    raise AssertionError(f"Tab never reaches {id}")


def test_a_host_is_chosen_and_its_hottest_frame_zoomed(viewer: Viewer, page: Path) -> None:
    viewer.open(page)
    viewer.press("w")
    assert viewer.focused() == "scope-input"
    viewer.press("h1", Keys.ENTER)
    viewer.until_text("scope-note", "65 of 100 samples")
    tab_to(viewer, "graph-scroller")
    viewer.press(Keys.ARROW_DOWN, Keys.ARROW_DOWN)
    assert viewer.text("frame-name") == "hot" and "92.3 % total" in viewer.text("frame-cost")
    assert "Java, JIT-compiled" in viewer.text("tooltip")
    viewer.press(Keys.ENTER)
    viewer.until("return location.hash.includes('zoom=')")
    viewer.press(Keys.ESCAPE)
    viewer.until("return !location.hash.includes('zoom=')")


def test_escape_leaves_a_field_and_nothing_else(viewer: Viewer, page: Path) -> None:
    viewer.open(page, "q=hot")
    viewer.click(0.2, 1)
    state = viewer.state()
    assert "zoom=" in state
    viewer.press("w", Keys.ESCAPE)
    assert viewer.focused() == "scope-input" and not viewer.element("scope-list").is_displayed()
    viewer.press(Keys.ESCAPE)
    assert viewer.focused() == "" and viewer.state() == state
    viewer.press("/", Keys.ESCAPE)
    viewer.until("return !location.hash.includes('q=')")
    assert viewer.focused() == "" and "zoom=" in viewer.state()
    viewer.press("/", Keys.ESCAPE)
    assert viewer.focused() == "" and "zoom=" in viewer.state()
    viewer.press(Keys.ESCAPE)
    viewer.until("return !location.hash.includes('zoom=')")


def test_keys_work_after_a_scope_was_chosen(viewer: Viewer, page: Path) -> None:
    viewer.open(page)
    viewer.press("w", "h2", Keys.ENTER)
    viewer.until_text("scope-note", "35 of 100 samples")
    viewer.press("m")
    viewer.until("return !document.getElementById('methods-panel').hidden")


def test_arrows_stay_in_what_is_zoomed(viewer: Viewer, page: Path) -> None:
    viewer.open(page)
    viewer.click(0.2, 1)
    viewer.until_text("frame-name", "a")
    viewer.driver.execute_script("document.getElementById('graph-scroller').focus()")
    viewer.press(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
    assert viewer.text("frame-name") == "a"
    viewer.press(Keys.ARROW_DOWN, Keys.ARROW_LEFT, Keys.ARROW_LEFT)
    assert viewer.text("frame-name") == "cold"
    viewer.press(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
    assert viewer.text("frame-name") == "hot"


def test_views_are_a_row_of_tabs(viewer: Viewer, page: Path) -> None:
    viewer.open(page)
    tab_to(viewer, "view-graph")
    for view in ("time", "reversed", "sandwich", "methods", "hosts", "compare", "work", "run", "graph"):
        viewer.press(Keys.ARROW_RIGHT)
        assert viewer.focused() == f"view-{view}"
        assert viewer.element(f"view-{view}").get_attribute("aria-selected") == "true"
        assert viewer.element(f"{view}-panel").is_displayed()
    tab_to(viewer, "search")


def test_back_leads_out_of_graphs_that_zoom_by_themselves(viewer: Viewer, page: Path) -> None:
    viewer.open(page)
    viewer.press("r")
    viewer.until("return !document.getElementById('reversed-panel').hidden")
    tab_to(viewer, "reversed-scroller")
    viewer.press(Keys.ARROW_DOWN, Keys.ENTER)
    viewer.until_text("frame-name", "hot")
    assert viewer.element("reset").is_enabled()
    viewer.press(Keys.BACKSPACE)
    viewer.until("return document.getElementById('frame-chosen').hidden")
    assert "view=reversed" in viewer.state()
    viewer.press(Keys.BACKSPACE)
    viewer.until("return !document.getElementById('graph-panel').hidden")


def test_keys_of_views_lead_into_their_tables(viewer: Viewer, page: Path) -> None:
    """The next stop is in the view, not at the beginning of the page."""
    viewer.open(page)
    viewer.press("d")
    assert viewer.focused() == "compare-scroller"
    viewer.press("m", Keys.TAB)
    assert viewer.focused() == "methods-sort-self"
    viewer.press("h", Keys.TAB)
    assert viewer.driver.execute_script("return document.activeElement.closest('#hosts-panel') !== null")


def test_the_keyboard_goes_where_a_row_leads_and_back(viewer: Viewer, page: Path) -> None:
    viewer.open(page, "view=methods")
    tab_to(viewer, "methods-sort-self")
    viewer.driver.execute_script("document.querySelector('#methods-body button').focus()")
    viewer.press(Keys.ENTER)
    assert viewer.focused() == "callers-scroller"
    viewer.press(Keys.BACKSPACE)
    viewer.until("return !document.getElementById('methods-panel').hidden")
    viewer.press(Keys.TAB)
    assert viewer.focused() == "methods-sort-self"


def test_all_keys_are_listed_and_obeyed_only_outside_of_fields(viewer: Viewer, page: Path) -> None:
    viewer.open(page)
    viewer.press("?")
    listed = viewer.text("keys-list")
    for what in ("search", "methods", "copy the whole stack", "fill the window", "this list"):
        assert what in listed
    viewer.press(Keys.ESCAPE, "/", "m", "r")
    assert viewer.element("search").get_attribute("value") == "mr"
    assert viewer.element("graph-panel").is_displayed()


def test_paper_has_all_rows_in_light_colours_without_controls(viewer: Viewer, page: Path) -> None:
    rows = 62
    viewer.open(page)
    light = viewer.color(0.1, 1)
    prefer(viewer.driver, "dark")
    assert viewer.element("graph-canvas").size["height"] < rows * ROW
    viewer.driver.execute_script("window.dispatchEvent(new Event('beforeprint'))")
    assert viewer.element("graph-canvas").size["height"] == rows * ROW
    assert viewer.color(0.1, 1) == light
    viewer.driver.execute_script("window.dispatchEvent(new Event('afterprint'))")
    assert viewer.element("graph-canvas").size["height"] < rows * ROW
    assert sum(viewer.color(0.1, 1)) < sum(light)
    viewer.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        for hidden in ("tools", "views", "status"):
            assert not viewer.element(hidden).is_displayed(), hidden
    finally:
        viewer.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
