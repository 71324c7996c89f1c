"""The view that compares two scopes, with known shares and amounts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from tests.viewer.browser import Viewer
from tests.viewer.made_run import MadeHost
from tests.viewer.page_objects import (
    HOT,
    box,
    choose,
    copied_stack,
    folded_page,
    is_blue,
    is_red,
    name_at,
    names,
    noise_note,
    rows_by_name,
    run_page,
    show,
    tooltip,
)

SWAP = "document.getElementById('compare-swap').click();"
BUSY = "[...document.querySelectorAll('.unique, .changes')].map((list) => list.getAttribute('aria-busy'))"


@pytest.fixture(scope="module")
def large_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """More than 50,000 nodes: one host has 500 deep stacks beside `often`, the other every second of them."""
    stacks = [
        f"a;b{one};{';'.join(f'c{(one + depth) % 200}' for depth in range(100))} 120\n" for one in range(500)
    ]
    hosts = {"all": ["often 20000\n", *stacks], "half": ["often 20000\nlone 10000\n", *stacks[::2]]}
    made = [MadeHost(name, {7: "".join(folded)}) for name, folded in hosts.items()]
    return run_page(tmp_path_factory.mktemp("large"), made)


def judged(viewer: Viewer, page: Path, state: str) -> None:
    """Open the comparison, and wait for its noise."""
    show(viewer, page, "compare", state)
    noise_note(viewer)
    viewer.still()


def test_a_host_is_compared_with_the_rest(viewer: Viewer, page: Path) -> None:
    judged(viewer, page, HOT)
    assert box(viewer, "compare-with") == "All but hot"
    # b has 80 % of hot and 20 % of the rest, and is as wide as 50 %; d is on the others only
    assert tooltip(viewer, 0.25, 2) == {
        "": "b",
        "hot": "80.0 %",
        "All but hot": "20.0 %",
        "Difference": "60.0 points more in hot, 4.0 times as much; within noise",
    }
    assert tooltip(viewer, 0.7, 2)["Difference"] == "only in All but hot; within noise"
    assert is_red(viewer.color(0.25, 2)) and is_blue(viewer.color(0.7, 2))
    assert rows_by_name(viewer) == {
        "b": ["+60.0 points", "0", "20.0 %", "80.0 %"],
        "c": ["+60.0 points", "+60.0 points", "20.0 %", "80.0 %"],
        "d": ["−75.0 points", "−75.0 points", "75.0 %", "0 %"],
        "a": ["−15.0 points", "0", "95.0 %", "80.0 %"],
        "x": ["+15.0 points", "0", "5.0 %", "20.0 %"],
        "y": ["+15.0 points", "+15.0 points", "5.0 %", "20.0 %"],
    }
    assert names(viewer, "changes", 5)[0] == "d"
    # A host of 100 samples, and two that are not alike.
    assert viewer.text("only-there").splitlines()[1:] == ["1 within noise"]
    assert viewer.text("only-here").splitlines()[1:] == ["1 within noise"]


def test_the_rest_is_the_same_whatever_was_shown_before(viewer: Viewer, page: Path) -> None:
    show(viewer, page, "compare", HOT)
    viewer.until_text("only-there", "within noise")
    by_link = rows_by_name(viewer), viewer.text("only-there"), viewer.text("only-here")
    show(viewer, page, "graph")
    choose(viewer, "scope", "hot")
    viewer.element("view-compare").click()
    assert box(viewer, "compare-with") == "All but hot"
    viewer.until_text("only-there", "within noise")
    assert (rows_by_name(viewer), viewer.text("only-there"), viewer.text("only-here")) == by_link


def test_a_comparison_has_no_amounts_of_its_own(viewer: Viewer, page: Path) -> None:
    judged(viewer, page, HOT)
    viewer.click(0.25, 2)
    assert viewer.text("frame-name") == "b"
    assert viewer.text("frame-cost") == (
        "hot 80.0 %, All but hot 20.0 %, Difference 60.0 points more in hot, 4.0 times as much; within noise"
    )
    assert copied_stack(viewer) == "a;b"


def test_out_of_a_zoomed_comparison(viewer: Viewer, page: Path) -> None:
    show(viewer, page, "compare", HOT)
    ways: list[Callable[[], None]] = [
        lambda: viewer.press(Keys.ESCAPE),
        lambda: viewer.press("0"),
        viewer.element("reset").click,
        viewer.element("back").click,
    ]
    for way in ways:
        viewer.click(0.25, 2)
        assert "zoom=" in viewer.state() and viewer.element("frame-chosen").is_displayed()
        way()
        viewer.until("return !location.hash.includes('zoom=')")
        viewer.until("return document.getElementById('frame-chosen').hidden")
    viewer.element("view-graph").click()
    viewer.canvas = "graph-canvas"
    assert name_at(viewer, 0.95, 1) == "x"


def test_amounts_are_compared_when_asked_for(viewer: Viewer, page: Path) -> None:
    show(viewer, page, "compare", f"{HOT}&with=host:1")
    viewer.driver.find_element(By.XPATH, "//*[@id='compare-measure']/button[.='Amounts']").click()
    viewer.until("return location.hash.includes('normalize=0')")
    assert rows_by_name(viewer)["b"] == ["+60 samples", "0", "20 samples", "80 samples"]
    difference = tooltip(viewer, 0.25, 2)["Difference"]
    assert difference.startswith("60 samples more in hot, 4.0 times as much")


def test_sides_are_chosen_and_swapped_and_kept_in_the_address(viewer: Viewer, page: Path) -> None:
    show(viewer, page, "compare", HOT)
    choose(viewer, "compare-with", "cool2")
    viewer.until("return location.hash.includes('with=host')")
    assert rows_by_name(viewer)["b"] == ["+60.0 points", "0", "20.0 %", "80.0 %"]
    viewer.element("compare-swap").click()
    assert rows_by_name(viewer)["b"] == ["−60.0 points", "0", "80.0 %", "20.0 %"]
    state = viewer.state().lstrip("#")
    viewer.open(page, state)
    assert rows_by_name(viewer)["b"] == ["−60.0 points", "0", "80.0 %", "20.0 %"]
    assert is_blue(viewer.color(0.25, 2))


def test_a_lone_path_is_zoomed_into(viewer: Viewer, large_page: Path) -> None:
    judged(viewer, large_page, HOT)
    viewer.first("#only-there button").click()
    viewer.until_text("frame-name", "lone")
    assert name_at(viewer, 0.5, 1) == "lone" and "zoom=" in viewer.state()


def test_the_host_that_is_least_alike_is_compared_with_the_rest(viewer: Viewer, page: Path) -> None:
    show(viewer, page, "compare")
    assert viewer.text("compare-panel").splitlines()[:2] == ["hot", "compared with"]
    assert box(viewer, "compare-with") == "All but hot"
    assert rows_by_name(viewer)["b"] == ["+60.0 points", "0", "20.0 %", "80.0 %"]
    viewer.element("compare-swap").click()
    assert rows_by_name(viewer)["b"] == ["−60.0 points", "0", "80.0 %", "20.0 %"]


def test_a_comparison_begins_with_all_there_is(viewer: Viewer, page: Path) -> None:
    viewer.open(page)
    viewer.click(0.2, 2)
    viewer.until("return location.hash.includes('zoom=')")
    viewer.element("view-compare").click()
    viewer.canvas = "compare-canvas"
    assert "zoom=" not in viewer.state()
    assert name_at(viewer, 0.5, 0) == "both sides, average"


def test_one_process_has_nothing_to_be_compared_with(viewer: Viewer, tmp_path: Path) -> None:
    viewer.open(folded_page(tmp_path, "a;b 1\n"), "view=compare")
    assert "Nothing to compare with" in viewer.text("compare-panel")


def test_lists_of_a_large_comparison_come_after_its_picture(viewer: Viewer, large_page: Path) -> None:
    show(viewer, large_page, "compare", HOT)
    shown = f"const [one, other] = {BUSY}; return one === 'false' && other === 'false'"
    viewer.until(shown)
    assert names(viewer, "changes", 5)[:2] == ["a", "lone"]
    assert viewer.text("only-there").splitlines()[1:] == ["16.7 % lone"]

    assert viewer.driver.execute_script(f"{SWAP} return {BUSY}") == ["true", "true"]
    viewer.until(shown)
    assert viewer.text("only-here").splitlines()[1:] == ["16.7 % lone"]
    # What is left behind before its lists are there has them when it is looked at again.
    viewer.driver.execute_script(f"{SWAP} document.getElementById('view-methods').click()")
    viewer.until_text("methods-body", "often")
    viewer.element("view-compare").click()
    viewer.until(shown)
    assert viewer.text("only-there").splitlines()[1:] == ["16.7 % lone"]


def test_lists_that_cannot_be_made_are_reported(viewer: Viewer, large_page: Path) -> None:
    """Out of memory while they are made."""
    show(viewer, large_page, "compare", HOT)
    viewer.until(f"return !{BUSY}.includes('true')")
    viewer.driver.execute_script(
        f"""{SWAP} const sort = Array.prototype.sort;
        Array.prototype.sort = () => {{ Array.prototype.sort = sort; throw new RangeError("no memory"); }};"""
    )
    viewer.until_text("failure", "A part of this view cannot be shown: no memory")
    assert viewer.driver.execute_script(f"return {BUSY}") == ["false", "false"]
    assert not viewer.element("only-here").is_displayed(), "it is of the comparison before"
    viewer.element("view-graph").click()
    viewer.element("view-compare").click()
    viewer.until(f"return !{BUSY}.includes('true')")
    assert viewer.text("only-here").splitlines()[1:] == ["16.7 % lone"]
    assert not viewer.element("failure").is_displayed()
