"""Notes of the reader, and walking over matches."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

from selenium.webdriver.common.keys import Keys

from tests.viewer import axe
from tests.viewer.browser import Viewer


def test_a_note_travels_in_the_address(viewer: Viewer, timed_page: Path) -> None:
    viewer.open(timed_page)
    viewer.driver.execute_script("document.getElementById('graph-scroller').focus()")
    viewer.press(Keys.ARROW_DOWN, "a")
    viewer.until("return document.getElementById('note').open")
    title = viewer.text("note-title")
    viewer.press("too slow <b>", Keys.ENTER)
    viewer.until_text("notes", "too slow")  # the dialog is closed before its note is listed
    assert viewer.text("notes") == f"{title.removeprefix('Note on ')} 100 %too slow <b>×"
    viewer.follow(viewer.state().lstrip("#") + "%0A0.5-1 a pause%0Anothing%0A9-1 x")
    assert len(viewer.all("#notes li")) == 2
    assert axe.faults(viewer.driver) == []
    assert "too slow" in viewer.hover(0.1, 1)
    viewer.all("#notes .link")[1].click()
    assert "time=0.5-1" in viewer.state()
    for remove in ("Remove the note on 0.50", "Remove the note on"):
        viewer.first(f'#notes [aria-label^="{remove}"]').click()
    assert not viewer.element("notes").is_displayed() and "notes=" not in viewer.state()
    viewer.follow("notes=" + quote("\n".join(f"#{node} {'x' * 400}" for node in range(1, 40))))
    assert len(viewer.element("notes").text) < 12 * 200


def test_keys_walk_over_the_matches(viewer: Viewer, small_page: Path) -> None:
    viewer.open(small_page)
    viewer.press("/", "b", Keys.ENTER)
    for key, at, method in (
        ("", "1 of 3", "b"),
        ("n", "2 of 3", "b"),
        ("n", "3 of 3", "b"),
        ("n", "1 of 3", "b"),
        ("N", "3 of 3", "b"),
    ):
        viewer.press(key)
        assert viewer.text("search-at") == at and viewer.text("frame-name") == method
    viewer.element("match-next").click()
    assert viewer.text("search-at") == "1 of 3"
    viewer.press("f")
    assert viewer.text("frame-name") == "d"  # a, b, d: each at least half of what it stands on


def test_the_headline_leads_to_its_method(viewer: Viewer, small_page: Path) -> None:
    viewer.open(small_page)
    viewer.first("h1 a").click()
    viewer.until_text("frame-name", viewer.first("h1 a").text)


def test_a_note_on_a_frame_that_a_change_hides_has_no_share(viewer: Viewer, small_page: Path) -> None:
    viewer.open(small_page, f"notes={quote('#1 first')}")
    place = viewer.text("notes").split()[0]
    shown = viewer.text("notes")
    viewer.follow(f"notes={quote('#1 first')}&changes={quote(f'skip:{place}')}")
    viewer.until_text("notes", f"{place} not shown")
    viewer.first("#notes .link").click()
    viewer.until_text("notes", shown)
    assert "changes" not in viewer.state() and "zoom=1" in viewer.state()


def test_the_headline_leads_to_its_method_of_the_whole_recording(viewer: Viewer, timed_page: Path) -> None:
    viewer.open(timed_page)
    link = viewer.first("h1 a")
    method = link.text
    viewer.follow(f"changes={quote('drop:' + method)}&time=0.5-1")
    before = viewer.state()
    viewer.driver.execute_script("arguments[0].click()", link)
    viewer.until_text("frame-name", method)
    assert "changes" not in viewer.state() and "time" not in viewer.state()
    viewer.element("back").click()
    viewer.until(f"return location.hash === {before!r}")
