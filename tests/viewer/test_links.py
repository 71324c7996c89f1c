"""Links: the address keeps what is shown."""

from __future__ import annotations

from pathlib import Path

from selenium.webdriver.common.keys import Keys

from tests.viewer.browser import Viewer
from tests.viewer.page_objects import choose, name_at, show, table


def test_an_expression_in_a_link_waits_for_enter(viewer: Viewer, small_page: Path) -> None:
    viewer.open(small_page, "q=%5E%5Bbc%5D%24&regexp=1")
    assert viewer.text("search-result") == "regular expression from a link: press Enter to run it"
    viewer.press("/", Keys.ENTER)
    viewer.until_text("search-result", "80.0 % matched")


def test_the_address_restores_the_view(viewer: Viewer, two_hosts_page: Path) -> None:
    viewer.open(two_hosts_page)
    choose(viewer, "scope", "small")
    viewer.until_text("scope-note", "100 of 400")
    viewer.element("search").send_keys("cold")
    viewer.element("turn").click()
    viewer.element("color").click()
    viewer.still()
    viewer.driver.execute_script("document.getElementById('graph-scroller').focus()")
    viewer.press(Keys.ARROW_UP, Keys.ENTER)
    viewer.until_text("frame-name", "a")
    viewer.still()
    picture = "return document.getElementById('graph-canvas').toDataURL()"
    before, state = viewer.driver.execute_script(picture), viewer.state()
    viewer.open(two_hosts_page, state.lstrip("#"))
    viewer.until_text("search-result", "60.0 % matched, 66.7 % of view")
    viewer.still()
    assert viewer.driver.execute_script(picture) == before


def test_a_spoilt_address_still_shows_the_page(viewer: Viewer, small_page: Path) -> None:
    viewer.open(
        small_page, "zoom=999999&scope=nowhere&event=nothing&thread=7&rows=1e9&folds=0.999.x&full=yes&%"
    )
    for state in (
        *("zoom=999999", "zoom=-1", "scope=nowhere", "scope=host:99", "scope=label:a=b", "event=nothing"),
        *("thread=7", "view=%00&sort=x", "q=%28&regexp=1", "with=host:99", "color=%3Cimg%3E", "%"),
        *("view=reversed&reversed=-.1.zzzzzz.%00", "rows=1e9", "folds=0.999.x", "full=yes"),
    ):
        viewer.follow(state)
        viewer.element("view-graph").click()
        assert viewer.hover(0.1, 1).splitlines()[0] == "a", state
        viewer.driver.execute_script("document.getElementById('tooltip').hidden = true")


def test_a_cell_of_the_table_leads_to_its_host(viewer: Viewer, spark_page: Path) -> None:
    viewer.open(spark_page)
    viewer.until_text("hottest", "43.1")
    viewer.first("#hottest .most b a").click()
    viewer.until_text("search-result", "43.1 % matched")
    assert viewer.element("scope-input").get_attribute("value") == "worker08.prod.example"
    viewer.element("back").click()
    viewer.until_text("scope-note", "The sum of all hosts")


def reopened(viewer: Viewer, page: Path) -> None:
    """The page anew, by the address that it has now."""
    viewer.open(page, viewer.state().lstrip("#"))
    viewer.still()


def test_a_link_keeps_the_zoom_of_the_reversed_graph(viewer: Viewer, page: Path) -> None:
    show(viewer, page, "reversed")
    viewer.click(0.7, 1)
    viewer.click(0.5, 2)
    viewer.until_text("frame-name", "b")
    reopened(viewer, page)
    assert viewer.text("frame-name") == "b" and name_at(viewer, 0.5, 2) == "b"
    viewer.open(page, viewer.state().lstrip("#") + "&scope=host:2")
    assert viewer.text("frame-cost").startswith("Total 20.0 %")  # the same path of another host
    viewer.element("reset").click()
    viewer.until("return document.getElementById('frame-chosen').hidden")
    assert "reversed=" not in viewer.state()


def test_a_link_keeps_a_zoom_into_narrow_frames(viewer: Viewer, wide_page: Path) -> None:
    show(viewer, wide_page, "reversed")
    viewer.click(0.9, 1)
    viewer.until_text("frame-name", "(2572 smaller frames)")
    viewer.click(0.001, 2)
    viewer.until_text("frame-name", "rare")
    chosen = viewer.text("frame-name")
    reopened(viewer, wide_page)
    assert viewer.text("frame-name") == chosen
    endless = f"view=reversed&reversed={'.'.join('-' * 9000)}"
    viewer.driver.execute_script("location.hash = arguments[0]", endless)
    viewer.until_text("frame-name", "smaller frames")


def test_a_link_keeps_both_zooms_of_the_sandwich_until_another_method_is_shown(
    viewer: Viewer, page: Path
) -> None:
    viewer.open(page, "view=sandwich&method=b")
    for canvas, place in (("callers-canvas", (0.5, 0)), ("callees-canvas", (0.2, 1))):
        viewer.canvas = canvas
        viewer.click(*place)
    assert "callers=" in viewer.state() and "callees=" in viewer.state()
    reopened(viewer, page)
    assert [name_at(viewer, 0.95, depth) for depth in (0, 1)] == ["b", "c"]
    viewer.press(Keys.BACKSPACE)
    viewer.open(page, viewer.state().lstrip("#"))
    viewer.element("sandwich-method-input").click()
    viewer.element("sandwich-method-input").send_keys("d", Keys.ENTER)
    viewer.until("return location.hash.includes('method=d')")
    assert "callers=" not in viewer.state() and "callees=" not in viewer.state()


def test_reset_ends_the_zoom_of_other_views(viewer: Viewer, page: Path) -> None:
    show(viewer, page, "reversed")
    viewer.click(0.7, 1)
    viewer.element("view-graph").click()
    assert "reversed=" in viewer.state()
    assert viewer.element("reset").is_enabled()
    viewer.element("reset").click()
    assert "reversed=" not in viewer.state()
    viewer.until("return document.getElementById('reset').disabled")


def test_a_link_keeps_how_many_rows_are_shown(viewer: Viewer, wide_page: Path) -> None:
    show(viewer, wide_page, "methods")
    viewer.element("methods-more").click()
    assert "rows=200" in viewer.state()
    viewer.open(wide_page, viewer.state().lstrip("#"))
    assert len(table(viewer, "methods")) == 200
    viewer.click_anew("methods-sort-name")
    assert "rows=" not in viewer.state() and len(table(viewer, "methods")) == 100
    viewer.follow("view=methods&rows=999999999")
    assert len(viewer.all("#methods-body tr")) == 5000


def open_folds(viewer: Viewer) -> list[bool]:
    return list(
        viewer.driver.execute_script(
            "return [...document.querySelectorAll('#run-panel details')].map((one) => one.open)"
        )
    )


def test_a_link_keeps_open_details(viewer: Viewer, spark_page: Path) -> None:
    show(viewer, spark_page, "run")
    before = open_folds(viewer)
    viewer.all("#run-panel summary")[-1].click()
    viewer.until("return location.hash.includes('folds=')")
    turned = [*before[:-1], not before[-1]]
    assert open_folds(viewer) == turned
    viewer.open(spark_page, viewer.state().lstrip("#"))
    assert open_folds(viewer) == turned
    viewer.all("#run-panel summary")[-1].click()
    viewer.until("return !location.hash.includes('folds=')")


def test_a_link_keeps_the_full_window(viewer: Viewer, page: Path) -> None:
    viewer.open(page)
    viewer.press("e")
    viewer.until("return location.hash.includes('full=1')")
    viewer.open(page, viewer.state().lstrip("#"))
    assert "expanded" in str(viewer.element("explorer").get_attribute("class"))
    assert viewer.element("expand").get_attribute("aria-pressed") == "true"
    viewer.press(Keys.ESCAPE)
    viewer.until("return !location.hash.includes('full')")
