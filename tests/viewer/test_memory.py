"""Memory: scopes share buffers, and hidden graphs have no pictures."""

from __future__ import annotations

from pathlib import Path

import pytest
from selenium.webdriver.common.keys import Keys

from tests.viewer.browser import Viewer
from tests.viewer.made_run import MadeHost
from tests.viewer.page_objects import choose, name_at, run_page, show, tooltip

TINY = 40
# How many times one of them m is.
WHOLE = 2500
SAMPLES = {"n1": 2, "n2": 6, "n3": 10}
# More than have their numbers at once.
OTHERS = ("n2", "n3", "average", "Cluster sum")
SIZES = "return ['graph', 'reversed'].map(id => document.getElementById(`${id}-canvas`).width > 1)"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three hosts, on each of which c calls methods that are too narrow to be seen below m."""
    hosts = []
    for pid, (name, samples) in enumerate(SAMPLES.items(), 1):
        tiny = "".join(f"top;m;c;tiny{number};leaf {samples}\n" for number in range(TINY))
        rest = f"top;m;d {(WHOLE - TINY) * samples}\ntop;{name} {WHOLE * samples}\n"
        hosts.append(MadeHost(name, {pid: tiny + rest}))
    return run_page(tmp_path_factory.mktemp("memory"), hosts)


def test_a_graph_has_its_own_numbers_after_other_scopes(viewer: Viewer, page: Path) -> None:
    viewer.open(page, "view=sandwich&method=m&scope=host:0")
    viewer.canvas = "callees-canvas"
    viewer.still()
    assert name_at(viewer, 0.99, 2) == f"({TINY} smaller frames)"
    viewer.element("view-graph").click()
    for name in (*OTHERS, "n1"):
        choose(viewer, "scope", name)
    viewer.element("view-sandwich").click()
    viewer.still()
    viewer.click(0.99, 1)
    viewer.until_text("frame-name", "c")
    assert tooltip(viewer, 0.3, 2)[""].startswith("tiny")
    assert " 2 samples" in tooltip(viewer, 0.3, 2)["Total"]


def test_a_comparison_has_its_own_numbers_after_other_scopes(viewer: Viewer, page: Path) -> None:
    show(viewer, page, "compare", "scope=host:1&with=host:0")
    choose(viewer, "compare-with", "n3")
    viewer.still()
    before = tooltip(viewer, 0.2, 2)
    assert before["n2"] == before["n3"] == "50.0 %"
    viewer.element("view-graph").click()
    for name in (*OTHERS, "n1", "n2"):
        choose(viewer, "scope", name)
    viewer.element("view-compare").click()
    viewer.still()
    assert tooltip(viewer, 0.2, 2) == before
    assert (
        "only in n3" in tooltip(viewer, 0.9, 2).values() or "only in n2" in tooltip(viewer, 0.9, 2).values()
    )


def test_a_hidden_graph_has_no_picture(viewer: Viewer, page: Path) -> None:
    show(viewer, page, "reversed")
    assert viewer.driver.execute_script(SIZES) == [False, True]
    viewer.element("view-graph").click()
    viewer.canvas = "graph-canvas"
    viewer.still()
    assert viewer.driver.execute_script(SIZES) == [True, False]
    assert viewer.color(0.5, 0) != [0, 0, 0] and name_at(viewer, 0.2, 2) == "m"


def test_a_long_list_has_its_first_options_and_page_keys(viewer: Viewer, tmp_path: Path) -> None:
    hosts = [MadeHost(f"node{number:03}", {number: "a;b 10\n"}) for number in range(1, 121)]
    viewer.open(run_page(tmp_path, hosts))
    viewer.element("scope-input").click()
    options = viewer.all("#scope-list .option")
    assert len(options) == 100 and options[-1].get_attribute("aria-posinset") == "100"
    viewer.press(*[Keys.PAGE_DOWN] * 9)
    viewer.until("return document.querySelector('#scope-list .active').textContent.startsWith('node089')")
    viewer.press(Keys.ENTER)
    viewer.until("return location.hash.includes('scope=host%3Anode089')")
