"""The view Work: bars of categories."""

from __future__ import annotations

from pathlib import Path

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from tests.timed_profile import Row, timed_profile
from tests.viewer import axe
from tests.viewer.browser import Viewer, plain
from tests.viewer.made_run import MadeHost, make_run
from tests.viewer.made_time import START
from tests.viewer.page_objects import chips, diff_page, name_at, names, run_page, table

JOB, JSON = "com/acme/Job.run_[j]", "com/acme/Job.run_[j];com/google/gson/Gson.toJson_[j]"


def test_bars_of_hosts_and_processes_lead_to_their_flame_graphs(viewer: Viewer, tmp_path: Path) -> None:
    hosts = [
        MadeHost("n1", {7: f"{JOB} 30\n{JSON} 10\n"}),
        MadeHost("n2", {8: f"{JOB} 20\n", 9: f"{JSON} 40\n"}),
    ]
    viewer.open(run_page(tmp_path, hosts))
    viewer.press("o")
    text = viewer.text("work-panel")
    for said in ("application code 50.0 %", "JSON 50.0 %", "Hosts", "Processes", "pid 9"):
        assert said in text, (said, text)
    assert axe.faults(viewer.driver) == []
    bars = viewer.all("#work-panel .bar")
    # The whole, two hosts, three processes; of n2 two thirds are JSON.
    assert len(bars) == 6
    widest = bars[1].find_elements(By.TAG_NAME, "span")[0 if text.index("JSON") < text.index("app") else 1]
    assert "JSON 66.7" in str(widest.get_attribute("title"))
    assert abs(widest.size["width"] / bars[1].size["width"] - 2 / 3) < 0.02
    viewer.all("#work-panel .name button")[1].click()
    assert "scope=host%3An2" in viewer.state() and "color=category" in viewer.state()
    viewer.until_text("legend", "JSON")


def test_phases_have_bars_of_their_categories(viewer: Viewer, tmp_path: Path) -> None:
    sort = "org/apache/spark/util/collection/unsafe/sort/RadixSort.sort_[j]"
    viewer.open(run_page(tmp_path, [MadeHost("n1", {7: f"{sort} 30\n{JSON} 10\n"})]), "view=work")
    text = viewer.text("work-panel")
    assert "Phases" in text and "sort 75.0 %" in text and "no phase 25.0 %" in text, text
    bars = viewer.all("#work-panel .bar")
    assert len(bars) == 3  # the whole, two phases
    bars[2].find_element(By.CSS_SELECTOR, "[title^=JSON]").click()
    assert "category=json" in viewer.state() and "view=work" in viewer.state()


GSON, DEFLATE = "com.google.gson.Gson.toJson", "java.util.zip.Deflater.deflate"


@pytest.fixture(scope="module")
def timed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """n1 makes JSON for 5 s, then compresses for 5 s; functions of n2's collector are in no rule."""
    rows = [Row(("main", GSON if bucket < 250 else DEFLATE), bucket) for bucket in range(500)]
    garbage = [Row(("[GC Thread#N]", "start_thread", "copy"), bucket) for bucket in range(500)]
    hosts = [
        MadeHost("n1", {11: timed_profile(rows, start=START)}),
        MadeHost("n2", {12: timed_profile(garbage, start=START)}),
    ]
    return run_page(tmp_path_factory.mktemp("work"), hosts)


def choose_category(viewer: Viewer, label: str, within: str = "work-panel") -> None:
    buttons = viewer.all(f"#{within} li button")
    next(button for button in buttons if button.text.startswith(label)).click()


def test_a_category_is_shown_alone_in_every_view(viewer: Viewer, timed: Path) -> None:
    viewer.open(timed, "view=work")
    choose_category(viewer, "JSON")
    assert "category=json" in viewer.state() and chips(viewer) == ["JSON"]
    viewer.element("view-methods").click()
    assert set(names(viewer, "methods", 2)) == {"main", GSON}
    assert viewer.text("scope-note") == "250 of 1,000 samples, 25.0 %, in JSON."
    viewer.element("view-hosts").click()
    assert [row[2] for row in table(viewer, "hosts-of-part")] == ["n1"]
    viewer.element("view-time").click()
    assert viewer.text("time-note").startswith("JSON: 250 samples")
    viewer.element("heat").send_keys(Keys.ARROW_RIGHT)
    assert viewer.text("time-note") == "0.00–0.02 s: 1 sample. Enter selects."
    viewer.press(Keys.ESCAPE)
    viewer.element("view-graph").click()
    assert name_at(viewer, 0.9, 2) == GSON
    viewer.press("k")
    assert "JSON 100 %" in viewer.text("legend") and "compression" not in viewer.text("legend")
    viewer.first("#part .chip").click()
    assert chips(viewer) == [] and "category=" not in viewer.state()


def test_threads_of_collectors_are_known_by_their_names(viewer: Viewer, timed: Path) -> None:
    viewer.open(timed, "view=methods&category=gc")
    assert set(names(viewer, "methods", 2)) == {"start_thread", "copy"}
    viewer.follow("view=methods&category=other")
    assert viewer.text("scope-note") == "No samples here in other."


def test_colours_legend_and_keys_mean_the_categories_of_bars(viewer: Viewer, timed: Path) -> None:
    viewer.open(timed, "color=category")
    legend = viewer.text("legend")
    assert "garbage collection 50.0 %" in legend and "other" not in legend, legend
    viewer.click(0.75, 2)
    viewer.press("K")
    assert chips(viewer) == ["garbage collection"]
    assert name_at(viewer, 0.5, 2) == "copy"


def test_a_category_of_a_host_by_mouse_and_of_a_frame_by_key(viewer: Viewer, timed: Path) -> None:
    viewer.open(timed, "view=work")
    bars = viewer.all("#work-panel .bar")
    bars[1].find_element(By.CSS_SELECTOR, "[title^=compression]").click()
    assert {"scope=host%3An1", "category=compression"} <= set(viewer.state().lstrip("#").split("&"))
    assert name_at(viewer, 0.5, 2) == DEFLATE
    viewer.press(Keys.ESCAPE)
    assert chips(viewer) == []
    viewer.click(0.25, 2)
    viewer.press("K")
    assert chips(viewer) == ["JSON"]
    viewer.press("K")
    assert chips(viewer) == []
    choose_category(viewer, "JSON", "legend")
    assert chips(viewer) == ["JSON"]


def test_work_by_time_and_of_a_range(viewer: Viewer, timed: Path) -> None:
    viewer.open(timed, "view=work")
    assert axe.faults(viewer.driver) == []
    viewer.picture("work-by-time")
    viewer.element("work-time").send_keys(Keys.ARROW_RIGHT)
    said = viewer.texts("#work-panel .time-note")
    assert said == ["0.00–1.00 s: JSON 50.0 %, garbage collection 50.0 %. Enter selects."]
    viewer.press(Keys.ENTER)
    assert "time=0-1" in viewer.state() and "view=work" in viewer.state()
    text = viewer.text("work-panel")
    assert "Of 0.00–1.00 s." in text and "JSON 50.0 %" in text and "compression" not in text
    viewer.element("work-time").send_keys(Keys.ESCAPE)
    assert "time=" not in viewer.state() and "compression 25.0 %" in viewer.text("work-panel")


def test_a_comparison_has_bars_of_both_sides_before_methods(viewer: Viewer, tmp_path: Path) -> None:
    sides = [
        make_run(tmp_path / name, [MadeHost("n1", {7: f"{JOB} {40 - json}\n{JSON} {json}\n"})]).path
        for name, json in (("before", 10), ("after", 30))
    ]
    diff_page(*sides, tmp_path / "diff.html")
    viewer.open(tmp_path / "diff.html")
    work, changes = (viewer.first(f"#compare-panel .{name}") for name in ("work", "changes"))
    said = plain(work.text)
    assert "JSON 75.0 %, 25.0 %" in said and "application code 25.0 %, 75.0 %" in said
    assert work.location["y"] < changes.location["y"]
    assert axe.faults(viewer.driver) == []
    choose_category(viewer, "JSON", "compare-panel .work")
    assert chips(viewer) == ["JSON"] and "JSON 75.0 %, 25.0 %" in plain(work.text)
    assert "30 samples and 10 samples" in viewer.text("compare-panel")
