"""A run in which every name is an attack: frames, threads, hosts, labels, reasons."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from selenium.webdriver.common.keys import Keys

from hprofiler.report import make_report
from tests.viewer.browser import Viewer
from tests.viewer.made_run import MadeHost, make_run
from tests.viewer.page_objects import box, choose, listed_options

SCRIPT = "window.intruder=1"
IMAGE = f"<img src=x onerror={SCRIPT}>"
TURNED = "a\u202eb\u2066c\u200fd"
FRAMES = [
    IMAGE,
    f"</script><script>{SCRIPT}</script>",
    f"<!--<script>{SCRIPT}",
    f"\"'><svg onload={SCRIPT}>",
    f"javascript:{SCRIPT}",
    "{{script}}${" + SCRIPT + "}",
    "__proto__",
    "constructor",
    TURNED,
    "\0\x01\x1b[31m\x7f",
    "\U0001f525\ufffe\u0000\u2028",
    "l" * 10_000,
    " ",
]
DEEP = 20_000
VIEWS = ["graph", "time", "reversed", "sandwich", "methods", "hosts", "compare", "run"]
MARKUP = """const found = document.querySelectorAll("img:not([src^='data:']), iframe, object, base,"
  + "form[action], [onerror], [onload], [onclick], a[href^=javascript]");
return [...found].map((element) => element.outerHTML.slice(0, 200))"""

# Text that runs from right to left although none of its own letters do.
TURNED_AROUND = """const turned = [], range = document.createRange();
const walker = document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT);
const place = (node, at) => {
  range.setStart(node, at);
  range.setEnd(node, at + 1);
  return range.getBoundingClientRect();
};
while (walker.nextNode()) {
  const node = walker.currentNode, text = node.data.trimEnd(), begin = text.search(/\\S/);
  if (begin < 0 || /[\\u200e\\u200f\\u202a-\\u202e\\u2066-\\u2069]/.test(text)) continue;
  const [first, last] = [place(node, begin), place(node, text.length - 1)];
  if (first.top === last.top && first.left > last.left) turned.push(text);
}
return turned"""


def attacked(record: Any) -> Any:
    """The record of a run with an attack in each text that somebody else may choose."""
    chosen = {"label", "main_class", "user", "reason", "remedy", "jvm_version", "executor", "selector"}
    if isinstance(record, list):
        return [attacked(each) for each in record]
    if not isinstance(record, dict):
        return record
    return {
        key: f"{value}{IMAGE}{TURNED}" if key in chosen and isinstance(value, str) else attacked(value)
        for key, value in record.items()
    }


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two hosts that differ, in stacks of all these names, and one that failed."""
    whole = ";".join(FRAMES)
    each = "".join(f"{frame} 10\n" for frame in FRAMES)
    deep = ";".join(["deep"] * DEEP)
    thread = f"[{IMAGE}]"
    hosts = [
        MadeHost(f"n1{IMAGE}", {1: f"{whole} 100\n{each}{thread};{IMAGE};b 50\n", 2: f"{IMAGE};a 20\n"}),
        MadeHost(f"n2</script><script>{SCRIPT}</script>{TURNED}", {3: f"{whole} 20\n{each}{deep} 50\n"}),
        MadeHost("n3").fails("failed", "no route", "none", pid=7),
    ]
    run = make_run(tmp_path_factory.mktemp("hostile") / "run", hosts)
    record = json.loads((run.path / "run.json").read_text())
    (run.path / "run.json").write_text(json.dumps(attacked(record)))
    return make_report(run.path).page


@pytest.fixture
def unharmed(viewer: Viewer) -> Any:
    """Checks that no script ran, no name became markup, and nothing was requested."""
    yield viewer
    assert viewer.driver.execute_script("return window.intruder") is None
    assert viewer.driver.execute_script(MARKUP) == []
    assert all(url.startswith("file:") for url in viewer.requests())
    assert not viewer.element("failure").is_displayed()


def test_every_view(unharmed: Viewer, page: Path) -> None:
    unharmed.open(page, f"method={quote(IMAGE)}&scope=host:1&with=host:0")
    for view in VIEWS:
        unharmed.element(f"view-{view}").click()
        assert f"view={view}" in unharmed.state() or view == "graph"
        assert unharmed.element(f"{view}-panel").is_displayed()
        assert unharmed.driver.execute_script(TURNED_AROUND) == []
        assert unharmed.driver.execute_script(MARKUP) == []


def test_names_are_shown_as_they_are(unharmed: Viewer, page: Path) -> None:
    unharmed.open(page, "view=methods")
    shown = unharmed.driver.execute_script(
        "return [...document.querySelectorAll('#methods-body tr')].map((row) => row.textContent)"
    )
    for frame in (IMAGE, FRAMES[1], FRAMES[3], "__proto__", "constructor", TURNED):
        assert any(frame in row for row in shown), frame


def test_search_zoom_and_keys_work_on_them(unharmed: Viewer, page: Path) -> None:
    unharmed.open(page)
    unharmed.element("search").send_keys("<img")
    unharmed.until_text("search-result", "matched")
    unharmed.press(Keys.ENTER)
    places = [place / 20 for place in range(1, 20)]
    unharmed.click(next(at for at in places if unharmed.hover(at, 1).startswith(IMAGE)), 1)
    assert "zoom=" in unharmed.state()
    unharmed.press("s")
    assert "view=sandwich" in unharmed.state()
    assert box(unharmed, "sandwich-method") == IMAGE


def test_scopes_are_listed_and_chosen(unharmed: Viewer, page: Path) -> None:
    unharmed.open(page)
    assert f"n1{IMAGE}" in listed_options(unharmed, "scope")
    choose(unharmed, "scope", "n2<")
    assert "scope=host" in unharmed.state()
    assert "samples" in unharmed.text("scope-note")


def test_links_made_by_others_do_no_harm(unharmed: Viewer, page: Path) -> None:
    unharmed.open(page, "view=hosts&with=host:999999&zoom=-1")
    for state in (
        f"q={quote(IMAGE)}&regexp=1",
        f"scope={quote('label:' + IMAGE)}&with=host:999999&event={quote(IMAGE)}",
        "zoom=99999999&view=__proto__&color=constructor&sort=__proto__",
        "q=(l%2B)%2Bx&regexp=1&zoom=-1",  # on the name of 10,000 letters it never ends
        "%",
    ):
        unharmed.follow(state)
        assert unharmed.element("views").is_displayed()
