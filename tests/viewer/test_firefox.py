"""Every view in a headless Firefox: it is drawn, without errors in the console."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.needed import lacking
from tests.viewer.firefox import Firefox, firefox, firefox_program

pytestmark = pytest.mark.nightly

READY = """new Promise((ready) => {
  const root = document.documentElement;
  const look = () => root.dataset.ready && ready(true);
  new MutationObserver(look).observe(root, { attributes: true });
  look();
})"""
# How many of the canvas's pixels are not of the colour of its last one.
DRAWN = """(() => {
  const canvas = document.getElementById("CANVAS");
  const picture = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  const pixels = new Uint32Array(picture.data.buffer);
  return pixels.filter((one) => one !== pixels[pixels.length - 1]).length;
})()"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Firefox]:
    if firefox_program() is None:
        lacking("the viewer is tested in a real Firefox, too, and there is none")
    with firefox(tmp_path_factory.mktemp("firefox")) as browser:
        yield browser


@pytest.mark.parametrize(
    "view", ["graph", "time", "reversed", "sandwich", "methods", "hosts", "compare", "run"]
)
def test_every_view_comes_up(browser: Firefox, spark_page: Path, view: str) -> None:
    browser.open(f"{spark_page.as_uri()}#view={view}&method=java/lang/String.replaceAll")
    assert browser.evaluate(READY) is True
    chosen = browser.evaluate("""document.querySelector('[role="tab"][aria-selected="true"]').textContent""")
    assert chosen.lower().startswith("flame graph" if view == "graph" else view)
    assert browser.evaluate(f'document.getElementById("{view}-panel").checkVisibility()') is True
    assert browser.complaints == []


def test_the_graph_is_drawn_and_searched(browser: Firefox, spark_page: Path) -> None:
    browser.open(f"{spark_page.as_uri()}#q=String.replaceAll")
    assert browser.evaluate(READY) is True
    assert browser.evaluate(DRAWN.replace("CANVAS", "graph-canvas")) > 10_000
    assert "30.1" in browser.evaluate('document.getElementById("search-result").textContent')
    assert browser.complaints == []


def test_the_heat_map_is_drawn(browser: Firefox, timed_page: Path) -> None:
    browser.open(f"{timed_page.as_uri()}#view=time&time=3.5-5.2")
    assert browser.evaluate(READY) is True
    assert browser.evaluate(DRAWN.replace("CANVAS", "heat-canvas")) > 10_000
    assert "170 samples" in browser.evaluate('document.getElementById("time-note").textContent')
    assert browser.complaints == []
