"""Events of threads that wait: colours and totals by kind, names of waits, threads over time."""

from __future__ import annotations

from pathlib import Path

import pytest
from selenium.webdriver.common.keys import Keys

from tests.timed_profile import Row, timed_profile
from tests.viewer import axe
from tests.viewer.browser import Viewer
from tests.viewer.made_run import MadeHost
from tests.viewer.made_time import START
from tests.viewer.page_objects import chips, run_page, save, table, tooltip

WALL = [("wall_samples", "count"), ("wall", "nanoseconds")]
SLEEP = ("app/Job.nap", "java/lang/Thread.sleep", "JVM_Sleep", "___pthread_cond_timedwait")
MONITOR = ("app/Job.enter", "_complete_monitor_locking_Java", "ObjectMonitor::enter", "___pthread_cond_wait")
POOL = ("java/lang/Thread.run", "java/util/concurrent/ThreadPoolExecutor.getTask", "java/lang/Object.wait")


def thread(name: str, stack: tuple[str, ...], seconds: range) -> list[Row]:
    """A sample of a thread every 20 ms."""
    return [
        Row((f"[{name}]", *stack), second * 50 + tick, amounts=(1, 20_000_000))
        for second in seconds
        for tick in range(50)
    ]


@pytest.fixture(scope="module")
def waits_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two threads sleep for three seconds, then one of them waits for a monitor; three are idle."""
    rows = thread("napper", SLEEP, range(4)) + thread("writer", SLEEP, range(3))
    rows += thread("writer", MONITOR, range(3, 4))
    for pool in ("a", "b", "c"):
        rows += thread(f"pool-{pool}", POOL, range(4))
    profile = timed_profile(rows, start=START, values=WALL)
    return run_page(tmp_path_factory.mktemp("waits"), [MadeHost("n1", events={"wall": {7: profile}})], "wall")


def test_waits_have_names_and_kinds_in_every_view(viewer: Viewer, waits_page: Path) -> None:
    viewer.open(waits_page)
    viewer.until_text("legend", "sleep 87.5 %")
    assert "locks 12.5 %" in viewer.text("legend") and "idle" not in viewer.text("legend")
    assert tooltip(viewer, 0.01, 1)["Waits for a monitor"] == "100 %"
    viewer.press("m")
    rows = {row[2]: row[:2] for row in table(viewer, "methods")}
    assert rows["sleeps in app.Job.nap"] == ["87.5 %", "87.5 %"]
    assert rows["waits for a monitor in app.Job.enter"] == ["12.5 %", "12.5 %"]
    assert not any("pthread" in name or "Thread.sleep" in name for name in rows)


def test_ranges_that_are_alike_have_no_changes(viewer: Viewer, waits_page: Path) -> None:
    viewer.open(waits_page, "view=compare&time=0-1&time2=1-2")
    viewer.until_text("compare-panel", "Changes by method")
    rows = {row[5]: row[:5] for row in table(viewer, "changes")}
    assert rows["sleeps in app.Job.nap"][0::2] == ["0", "0", "100 %"]
    assert {row[0] for row in rows.values()} == {row[2] for row in rows.values()} == {"0"}
    viewer.follow("view=compare&time=3-4&time2=1-2")
    viewer.until_text("compare-panel", "waits for a monitor in")
    rows = {row[5]: row[:5] for row in table(viewer, "changes")}
    assert rows["waits for a monitor in app.Job.enter"][2] == "+50.0 points"
    assert rows["sleeps in app.Job.nap"][2] == "−50.0 points"
    assert rows["app.Job.nap"][2] == "0"


def test_hosts_differ_in_waits(viewer: Viewer, tmp_path: Path) -> None:
    """The table's spread of a wait has the table's shares; sleeping frames are not the method's own."""
    naps = "app/Main.run;app/Main.rest;java/lang/Thread.sleep;__GI___clock_nanosleep"
    hosts = {
        "n1": f"{naps} 30\napp/Main.run;app/Main.work 10\n",
        "n2": f"{naps} 10\napp/Main.run;app/Main.work 30\n",
    }
    made = [MadeHost(name, events={"wall": {7: stacks}}) for name, stacks in hosts.items()]
    viewer.open(run_page(tmp_path, made, "wall"), "view=methods")
    viewer.until_text("methods-panel", "2 of 2")
    rows = {row[2]: row for row in table(viewer, "methods")}
    assert "2 of 2" in rows["sleeps in app.Main.rest"] and "n1 75.0 %" in rows["sleeps in app.Main.rest"]
    assert "n2 75.0 %" in rows["app.Main.work"]
    assert rows["app.Main.rest"][0] == "0 %" and not any("%" in cell for cell in rows["app.Main.rest"][3:])


def test_threads_over_time_lead_to_a_thread_and_a_range(viewer: Viewer, waits_page: Path) -> None:
    viewer.open(waits_page, "view=time")
    viewer.until_text("time-panel", "Threads of")
    assert axe.faults(viewer.driver) == []
    tracks = viewer.element("tracks")
    # From the first bar of the lowest row to its last second.
    tracks.send_keys(Keys.ARROW_DOWN, *[Keys.ARROW_RIGHT] * 9, Keys.ARROW_RIGHT)
    note = viewer.text("time-panel")
    assert "napper" in note or "writer" in note
    tracks.send_keys(Keys.ENTER)
    (range_chip,) = [chip for chip in chips(viewer) if " s" in chip]
    assert range_chip
    assert "scope=process" in viewer.state() and "thread=" in viewer.state()


def test_what_idle_threads_hide_is_said(viewer: Viewer, waits_page: Path, downloads: Path) -> None:
    viewer.open(waits_page, "view=time")
    viewer.until_text("time-note", "The whole recording, without idle threads: 8.0 s")
    assert "Shares are of the 8.0 s shown, without idle threads." in viewer.text("scope-note")
    file = save(viewer, downloads, "folded")
    assert "without-idle-threads" in file.name
    file.unlink()
    viewer.follow("order=1&thread=pool-a")
    viewer.until_text("scope-note", "Only idle threads have samples here. They are hidden.")
    viewer.still()
    assert viewer.hover(0.02, 1).splitlines()[0] == "samples that are not shown"


def test_time_order_is_pressed_where_frames_are_in_order(viewer: Viewer, waits_page: Path) -> None:
    viewer.open(waits_page, "order=1")
    button = viewer.element("in-order")
    assert button.get_attribute("aria-pressed") == "false"
    button.click()
    viewer.until_text("wider", "time on the clock")
    assert button.get_attribute("aria-pressed") == "true" and "thread=" in viewer.state()
