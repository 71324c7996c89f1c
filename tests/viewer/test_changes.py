"""Changes of all stacks: idle threads, skipped, dropped and collapsed frames; in graphs, tables and files."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

import pytest
from selenium.webdriver.common.keys import Keys

from hprofiler._flamegraph import Profile
from tests.viewer.browser import Viewer
from tests.viewer.made_run import MadeHost
from tests.viewer.page_objects import names, run_page, save

STACKS = """\
run;a/One.f;a/One.f;b/c/Two.g;a/One.h 40
run;a/One.f;b/c/Two.g;b/Other.k 30
run;b/c/Two.g;b/c/Three.m 20
idle 10
"""
POOL = "java/lang/Thread.run_[j];java/util/concurrent/ThreadPoolExecutor.getTask_[j]"
PARKED = "java/util/concurrent/locks/LockSupport.park_[j];Unsafe_Park;__futex_wait"
BUSY = "app/Main.run_[j];app/Service.call_[j];__read 10\napp/Main.run_[j];app/Work.do_[j] 4\n"
WALL = f"{POOL};{PARKED} 86\n{BUSY}"
# What is left of the stacks, by the changes in the address.
CHANGED = {
    "skip:b/c/Two.g": (
        "idle 10\nrun;a/One.f;a/One.f;a/One.h 40\nrun;a/One.f;b/Other.k 30\nrun;b/c/Three.m 20\n"
    ),
    "drop:b/Other.k": "idle 10\nrun;a/One.f;a/One.f;b/c/Two.g;a/One.h 40\nrun;b/c/Two.g;b/c/Three.m 20\n",
    "focus:b/c/Two.g": "b/c/Two.g;a/One.h 40\nb/c/Two.g;b/Other.k 30\nb/c/Two.g;b/c/Three.m 20\n",
    "focus:b": "b/c/Two.g;a/One.h 40\nb/c/Two.g;b/Other.k 30\nb/c/Two.g;b/c/Three.m 20\n",
    "focus:a.One": "a/One.f;a/One.f;b/c/Two.g;a/One.h 40\na/One.f;b/c/Two.g;b/Other.k 30\n",
    "recursion": (
        "idle 10\nrun;a/One.f;b/c/Two.g;a/One.h 40\nrun;a/One.f;b/c/Two.g;b/Other.k 30\n"
        "run;b/c/Two.g;b/c/Three.m 20\n"
    ),
    "collapse": (
        "idle 10\nrun;a/One.f;b/c/Two.g;a/One.h 40\nrun;a/One.f;b/c/Two.g;b/Other.k 30\nrun;b/c/Two.g 20\n"
    ),
    "collapse:b": (
        "idle 10\nrun;a/One.f;a/One.f;b/c/Two.g;a/One.h 40\nrun;a/One.f;b/c/Two.g 30\nrun;b/c/Two.g 20\n"
    ),
    "recursion\ndrop:idle\nskip:a": (
        "run;b/c/Two.g 40\nrun;b/c/Two.g;b/Other.k 30\nrun;b/c/Two.g;b/c/Three.m 20\n"
    ),
}


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    hosts = [MadeHost("n1", {11: STACKS}, events={"wall": {11: WALL}})]
    return run_page(tmp_path_factory.mktemp("changes"), hosts, "cpu", "wall")


def test_stacks_are_changed_in_what_is_saved(viewer: Viewer, page: Path, downloads: Path) -> None:
    viewer.open(page)
    for changes, expected in CHANGED.items():
        viewer.follow(f"event=cpu&changes={quote(changes)}")
        file = save(viewer, downloads, "folded")
        assert (
            Profile.open(file).to_folded() == Profile.from_bytes(expected.encode(), "folded").to_folded()
        ), changes
        file.unlink()
    viewer.follow("changes=%23&zoom=3")
    assert not viewer.all("#part .chip")


def test_a_change_is_chosen_in_the_menu_of_a_frame_and_ends_with_its_chip(viewer: Viewer, page: Path) -> None:
    viewer.open(page, "event=cpu&view=methods")
    assert "idle" in names(viewer, "methods", 2)
    viewer.press("g", Keys.ARROW_DOWN, Keys.ARROW_RIGHT, "x")
    viewer.until("return document.getElementById('frame-menu').matches(':popover-open')")
    assert viewer.texts("#frame-menu h3") == ["run", "This frame alone", "All stacks", "Note"]
    viewer.press(Keys.ARROW_DOWN, Keys.ARROW_DOWN, Keys.ENTER)
    viewer.until_text("scope-note", "90 of 100 samples, 90.0 %. Shares are of the 90 samples shown.")
    viewer.press("m")
    assert "idle" not in names(viewer, "methods", 2)
    assert viewer.texts("#part .chip") == ["only run×"]
    viewer.first("#part .chip").click()
    assert "idle" in names(viewer, "methods", 2)
    assert "changes" not in viewer.state()


def test_idle_threads_are_hidden_until_they_are_asked_for(viewer: Viewer, page: Path) -> None:
    viewer.open(page, "event=wall&view=methods&sort=total")
    assert viewer.text("idle") == "86.0 % is idle: show"
    assert names(viewer, "methods", 2)[0] == "app.Main.run" and names(viewer, "methods", 1)[0] == "100 %"
    viewer.press("z")
    assert viewer.text("idle") == "86.0 % is idle: hide"
    assert names(viewer, "methods", 1)[0] == "86.0 %"
    viewer.press("g")
    assert "86.0 %" in viewer.hover(0.5, 1)
    viewer.follow("event=cpu")
    assert not viewer.all("#idle")
