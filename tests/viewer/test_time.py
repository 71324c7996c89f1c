"""Ranges of time: the heat map, and all views of a range."""

from __future__ import annotations

import gzip
import re
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

from hprofiler._flamegraph import Profile
from hprofiler.model.metrics import Metrics, Series
from hprofiler.report import make_report
from hprofiler.runfolder.metrics_file import write_metrics
from hprofiler.spark.facts import DriverClock, RecordedStage, SparkFacts, write_facts
from hprofiler.spark.saved import save_application
from tests.timed_profile import Row, timed_profile
from tests.unit.spark_application import START as MADE_START
from tests.unit.spark_application import Made
from tests.viewer import axe
from tests.viewer.block import described
from tests.viewer.browser import Viewer
from tests.viewer.made_run import MadeHost, content_of, make_run, rewrite
from tests.viewer.made_time import ROWS, START, timed_run
from tests.viewer.page_objects import (
    box,
    chips,
    choose,
    is_match,
    listed_options,
    name_at,
    names,
    run_page,
    save,
    table,
)

# Of the map: room at the left, a row; in pixels.
GUTTER, ROW = 80, 6


@pytest.fixture(scope="module")
def page(timed_page: Path) -> Path:
    return timed_page


@pytest.fixture(scope="module")
def staged_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two stages at once, samples of one of them partly likely, and some of no stage."""
    slices = [("stage 3.0", True), ("stage 3.0", False), ("stage 4.0", True)]
    rows = [
        Row(("run", "scan"), 0, 40, (40, 40_000_000), slice=1),
        Row(("run", "scan"), 0, 10, (10, 10_000_000), slice=2),
        Row(("run", "sort"), 0, 30, (30, 30_000_000), slice=3),
        Row(("gc",), 0, 20, (20, 20_000_000)),
    ]
    host = MadeHost("n1", {11: timed_profile(rows, start=START, slices=slices)})
    return run_page(tmp_path_factory.mktemp("stages"), [host])


def middle(viewer: Viewer, second: float) -> float:
    """The middle of a second's column, in pixels from the map's left edge."""
    columns = str(viewer.element("heat").get_attribute("data-cells")).split(" ")[0]
    return GUTTER + (second + 0.5) * (viewer.element("heat-canvas").size["width"] - GUTTER) / int(columns)


def at(viewer: Viewer, second: int, row: int) -> ActionChains:
    """The pointer on a cell of the heat map."""
    canvas = viewer.element("heat-canvas")
    viewer.driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", canvas)
    size = canvas.size
    x, y = middle(viewer, second), (ROWS - row - 0.5) * ROW
    chain = ActionChains(viewer.driver, duration=0)
    return chain.move_to_element_with_offset(canvas, int(x - size["width"] / 2), int(y - size["height"] / 2))


def drag(viewer: Viewer, start: tuple[int, int], end: tuple[int, int], key: str = "") -> None:
    at(viewer, *start).perform()
    if key:
        ActionChains(viewer.driver).key_down(key).perform()
    ActionChains(viewer.driver).click_and_hold().perform()
    at(viewer, *end).release().perform()
    if key:
        ActionChains(viewer.driver).key_up(key).perform()


def cell_color(viewer: Viewer, second: int, row: int) -> list[int]:
    viewer.canvas = "heat-canvas"
    return viewer.pixel(middle(viewer, second), (ROWS - row - 0.5) * ROW)


def test_a_range_has_its_own_samples(viewer: Viewer, page: Path) -> None:
    viewer.open(page)
    for time, samples, methods in (
        ("0-0.5", 50, {"main", "work", "even", "steady"}),
        ("0.5-1", 50, {"main", "work", "odd", "steady"}),
        # The edges belong to one side alone.
        ("0.48-0.5", 2, {"main", "work", "even", "steady"}),
        ("0.5-0.52", 2, {"main", "work", "odd", "steady"}),
        ("7.3-7.32", 7, {"main", "work", "even", "steady", "burst"}),
        # n2's buckets begin 7 ms after those of n1.
        ("0.5-0.505", 1, {"main", "work", "odd"}),
        ("0.505-0.51", 1, {"main", "steady"}),
        ("60-70", 0, set()),
    ):
        viewer.follow(f"view=methods&time={time}")
        assert set(names(viewer, "methods", 2)) == methods
        counted = rf"{samples}( sample)? of 1,005 samples" if samples else "No samples here in "
        assert re.match(counted, viewer.text("scope-note"))


def test_dragging_over_cells_selects_what_lies_between_in_time(viewer: Viewer, page: Path) -> None:
    viewer.open(page, "view=time")
    drag(viewer, (3, 25), (5, 9))
    assert "time=3.5-5.2" in viewer.state() and chips(viewer) == ["3.50–5.20 s"]
    assert "170 samples" in viewer.text("time-note")
    viewer.canvas = "time-graph-canvas"
    assert name_at(viewer, 0.25, 2) == "steady"
    drag(viewer, (7, 15), (7, 15))
    assert "time=7.3-7.32" in viewer.state()
    viewer.first("#part .chip").click()
    assert "time=" not in viewer.state().replace("view=time", "") and chips(viewer) == []


def test_ctrl_compares_two_ranges(viewer: Viewer, page: Path) -> None:
    viewer.open(page, "view=time")
    drag(viewer, (3, 0), (3, 24))
    drag(viewer, (4, 25), (4, 49), Keys.CONTROL)
    assert {"view=compare", "time=3-3.5", "time2=4.5-5"} <= set(viewer.state().lstrip("#").split("&"))
    changes = {row[5]: (row[3], row[4]) for row in table(viewer, "changes")}
    assert changes["even"] == ("0 %", "50.0 %") and changes["odd"] == ("50.0 %", "0 %")
    viewer.element("compare-swap").click()
    assert {"time=4.5-5", "time2=3-3.5"} <= set(viewer.state().lstrip("#").split("&"))


def test_keys_select_a_range(viewer: Viewer, page: Path) -> None:
    viewer.open(page)
    viewer.press("l")
    assert viewer.focused() == "heat"
    viewer.press(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT, Keys.ARROW_UP)
    assert viewer.text("time-note") == "1.02–1.04 s: 2 samples. Enter selects."
    extend = ActionChains(viewer.driver).key_down(Keys.SHIFT)
    extend.send_keys(Keys.ARROW_RIGHT, Keys.ARROW_UP).key_up(Keys.SHIFT).perform()
    viewer.press(Keys.ENTER)
    assert "time=1.02-2.06" in viewer.state()
    viewer.press(Keys.ESCAPE)
    assert chips(viewer) == []


def test_a_search_lights_up_cells(viewer: Viewer, page: Path) -> None:
    viewer.open(page, "view=time&scope=host:0&q=odd")
    assert is_match(cell_color(viewer, 2, 25)) and is_match(cell_color(viewer, 2, 49))
    assert not is_match(cell_color(viewer, 2, 24)) and not is_match(cell_color(viewer, 3, 0))
    viewer.follow("view=time&q=burst")
    assert is_match(cell_color(viewer, 7, 15)) and not is_match(cell_color(viewer, 7, 16))


def test_a_cell_says_when_it_was_and_what_it_has(viewer: Viewer, page: Path) -> None:
    viewer.open(page, "view=time&q=burst")
    at(viewer, 7, 15).perform()
    viewer.until("return !document.getElementById('tooltip').hidden")
    lines = viewer.text("tooltip").replace("\n", " ")
    assert lines == "7.30–7.32 s Samples 7 Matched 71.4 % Clock 14:13:27.300 UTC"


def test_a_link_restores_the_range_and_other_views_follow(viewer: Viewer, page: Path) -> None:
    viewer.open(page, "view=hosts&time=0.5-0.52")
    assert [row[2] for row in table(viewer, "hosts-of-part")] == ["n1", "n2"]
    viewer.element("view-graph").click()
    assert viewer.hover(0.1, 0).splitlines()[0].startswith("Cluster, sum · 0.50–0.52 s · 2 samples")
    viewer.element("view-reversed").click()
    viewer.canvas = "reversed-canvas"
    viewer.still()
    assert {name_at(viewer, 0.25, 1), name_at(viewer, 0.75, 1)} == {"odd", "steady"}
    # What was written with the page is of the whole recording, and says so.
    assert viewer.first(".of-all").text == "Whole run:"


def test_files_are_of_the_range_and_say_so(viewer: Viewer, page: Path, downloads: Path) -> None:
    viewer.open(page, "scope=host:0&time=0.5-1")
    folded = save(viewer, downloads, "folded")
    assert "0.50-1.00-s" in folded.name and folded.read_text() == "main;work;odd 25\n"
    folded.unlink()
    pprof = save(viewer, downloads, "pprof")
    assert "0.50-1.00-s" in pprof.name
    assert Profile.from_bytes(gzip.decompress(pprof.read_bytes()), "pprof").total(0) == 25
    pprof.unlink()
    picture = save(viewer, downloads, "svg")
    title = ElementTree.parse(picture).getroot().find("{http://www.w3.org/2000/svg}text")
    assert title is not None and "n1 · 0.50–1.00\u202fs" in "".join(title.itertext())


def test_the_page_and_the_core_agree(viewer: Viewer, page: Path, downloads: Path) -> None:
    """Also at edges between the buckets of two processes."""
    begin, end = 493_000, 3_017_000
    viewer.open(page, f"time={begin / 1e6}-{end / 1e6}")
    expected: Counter[str] = Counter()
    for path in page.parent.glob("hosts/*/*/cpu.time"):
        for stack in Profile.open(path, "compact").in_range(START + begin, START + end).paths():
            expected[";".join(stack.frames)] += stack.values[0]
    lines = save(viewer, downloads, "folded").read_text().splitlines()
    assert {stack: int(count) for stack, count in (line.rsplit(" ", 1) for line in lines)} == +expected
    assert expected.total() == 252


def test_durations_have_a_map_and_a_band_has_a_flame_graph(viewer: Viewer, page: Path) -> None:
    viewer.open(page, "view=time&event=lock")
    canvas = viewer.element("durations-canvas")
    viewer.driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", canvas)
    size = canvas.size
    # The slowest band is the highest row.
    x, y = middle(viewer, 2) - size["width"] / 2, 5 - size["height"] / 2
    ActionChains(viewer.driver, duration=0).move_to_element_with_offset(
        canvas, int(x), int(y)
    ).click().perform()
    assert {"time=2-3", "band=21"} <= set(viewer.state().lstrip("#").split("&"))
    assert chips(viewer) == ["2.00–3.00 s", "1.05 to 2.1 s each"]
    viewer.element("view-methods").click()
    assert set(names(viewer, "methods", 2)) == {"main", "Pool.take", "waits for a lock in Pool.take"}
    viewer.follow("view=methods&event=lock&band=0-20")
    assert set(names(viewer, "methods", 2)) == {"main", "Cache.get", "waits for a lock in Cache.get"}


def test_a_click_on_a_pause_selects_its_time(viewer: Viewer, page: Path) -> None:
    viewer.open(page, "view=time")
    canvas = viewer.element("lanes-canvas")
    x = middle(viewer, 3.95) - canvas.size["width"] / 2
    ActionChains(viewer.driver, duration=0).move_to_element_with_offset(canvas, int(x), 0).perform()
    viewer.until("return !document.getElementById('tooltip').hidden")
    assert viewer.text("tooltip").splitlines()[0] == "G1 Young Generation"
    ActionChains(viewer.driver, duration=0).click().perform()
    assert "time=4.4-4.5" in viewer.state()
    choose(viewer, "scope", "n2")
    assert not canvas.is_displayed()


def test_lanes_are_reached_by_keys(viewer: Viewer, tmp_path: Path) -> None:
    folder = timed_run(tmp_path / "run")
    run = content_of(folder)
    pauses = [(START + end, duration) for end, duration in ((4_500_000, 100_000), (6_500_000, 200_000))]
    (of_n1,) = run["hosts"][0]["pauses"]
    of_n1["collector"], (of_n1["end"], of_n1["duration"]) = [0, 0], map(list, zip(*pauses, strict=True))
    rewrite(folder, run)
    stage = RecordedStage(3, 0, "collect at App.scala:42", START // 1000 + 6000, START // 1000 + 8000)
    write_facts(SparkFacts(clock=DriverClock(0.0, 0.0), stages=(stage,)), folder.path)
    viewer.open(make_report(folder.path).page, "view=time")
    viewer.press("l")
    ActionChains(viewer.driver).key_down(Keys.SHIFT).send_keys(Keys.TAB).key_up(Keys.SHIFT).perform()
    assert viewer.focused() == "lanes"
    viewer.press(Keys.ARROW_RIGHT)
    assert viewer.text("time-note") == "G1 Young Generation: 4.40–4.50 s, 100 ms. Enter selects."
    viewer.press(Keys.ARROW_RIGHT, Keys.ARROW_DOWN)
    assert viewer.text("time-note").startswith("stage 3.0: collect at App.scala:42: 6.00–8.00 s")
    viewer.press(Keys.ARROW_UP, Keys.ENTER)
    assert "time=6.3-6.5" in viewer.state() and viewer.focused() == "lanes"


def test_a_process_without_times_is_not_passed_over(viewer: Viewer, tmp_path: Path) -> None:
    hosts = [
        MadeHost("n1", {11: timed_profile([Row(("a",), 0)], start=START)}, events={"alloc": {11: "b 9\n"}}),
        MadeHost("n2", {12: "c 3\n"}),
    ]
    viewer.open(run_page(tmp_path, hosts, "cpu", "alloc"), "time=0-1")
    assert viewer.text("scope-note") == (
        "1 sample of 4 samples, 25.0 %, in 0.00–1.00 s. "
        "Without 1 process of which the times of samples are not known."
    )
    viewer.follow("time=0-1&event=alloc&view=time")
    unknown = "It is not known when samples of allocations were taken"
    assert f"{unknown}: nothing is shown of 0.00–1.00 s." in viewer.text("scope-note")
    assert viewer.first("#time-panel .none").text == f"{unknown}."


def test_a_long_recording_has_longer_columns(viewer: Viewer, tmp_path: Path) -> None:
    """Two hours in steps of 40 ms, with a sample in the first and in the last."""
    rows = [Row(("first",), 0), Row(("last",), 2 * 3600 * 25 - 1)]
    host = MadeHost("n1", {11: timed_profile(rows, start=START, width=40_000)})
    viewer.open(run_page(tmp_path, [host]), "view=time")
    columns, cells = str(viewer.element("heat").get_attribute("data-cells")).split(" × ")
    assert 100 < int(columns) < 400 and cells == "25"
    assert "A column is 32 s, upwards in cells of 1.28 s." in viewer.text("time-panel")
    viewer.press("l", Keys.ARROW_RIGHT, Keys.ENTER)
    assert "time=0-1.28" in viewer.state()
    viewer.canvas = "time-graph-canvas"
    assert name_at(viewer, 0.5, 1) == "first"


def test_what_spark_knows(viewer: Viewer, tmp_path: Path) -> None:
    """The application's curves above the heat map; its table leads to a stage's flame graph."""
    slices = [("stage 3.0", True)]
    rows = [Row(("run", "scan"), 50, 40, (40, 40_000_000), slice=1), Row(("gc",), 0, 20, (20, 20_000_000))]
    host = MadeHost("n1", {11: timed_profile(rows, start=START, slices=slices)})
    folder = make_run(tmp_path / "run", [host]).path
    made = Made(a=2)
    shift = START // 1000 - MADE_START
    tasks = [(shift + launch, 500, {"gc_time": 100}) for launch in (0, 0, 500)]
    made.job(0, shift, shift + 1000, (3, 4))
    made.stage(3, shift, shift + 1000, tasks)
    made.stage(4, shift, shift + 1000, tasks[:1])
    save_application(made.application, folder)
    write_facts(SparkFacts(clock=DriverClock(0.0, 0.0)), folder)
    viewer.open(make_report(folder).page, "view=time")
    assert viewer.element("curves").is_displayed()
    assert "active tasks" in viewer.text("curves") and "gc" in viewer.text("curves")
    viewer.press("j")
    assert "Blocked time" in viewer.text("spark-panel")
    assert axe.faults(viewer.driver) == []
    assert len(viewer.all("#table-stages td.name")) == 2
    viewer.first("#table-stages .beside-name").click()
    assert "scope=slice%3Astage+3.0" in viewer.state()


def test_machines(viewer: Viewer, tmp_path: Path) -> None:
    """Two hosts of ten seconds; on n2 the CPU is busy from second 3 on, and seconds 5 to 7 are not known."""
    rows = [Row(("a",), second * 50, 10, (10, 10_000_000)) for second in range(10)]
    hosts = [
        MadeHost(name, {pid: timed_profile(rows, start=START)}) for name, pid in (("n1", 11), ("n2", 12))
    ]
    folder = make_run(tmp_path / "run", hosts)
    seconds = (START, *[1_000_000] * 9)
    for name, user in (("n1", [0] + [10] * 9), ("n2", [0, 10, 10, 10, 90, 90, None, None, 270, 90])):
        idle = [None if one is None else 100 - one for one in user]
        series = [
            Series("host", "", f"{mode}_ticks", "counter", "ticks", values)
            for mode, values in (("user", user), ("idle", idle))
        ]
        if name == "n1":
            series += [
                Series("counters", "11:ipc", one, "counter", "count", (0, *[value] * 9))
                for one, value in (
                    ("enabled_ns", 5),
                    ("running_ns", 4),
                    ("cycles", 200),
                    ("instructions", 90),
                )
            ]
        write_metrics(folder.metrics_path(name), Metrics(1.0, seconds, {"cpus": 1}, series))
    page = make_report(folder.path).page
    chart, of_counters = described(page)["machines"]["charts"]
    assert of_counters["title"] == "instructions per cycle" and of_counters["values"][0][0] == 0.45
    assert chart["title"] == "CPU" and chart["values"][1][2:5] == [10.0, 90.0, 90.0]
    assert chart["values"][1][5:8] == [None, None, None]
    viewer.open(page, "view=time")
    heat_map = viewer.element("heat-canvas").size["width"]
    viewer.press("v")
    assert "One line per host. Drag" in viewer.text("machines-panel")
    cpu = viewer.texts("#machines-panel .machines td:nth-child(2)")
    assert [cell.split("\n")[:2] for cell in cpu] == [["10 %", "max 10 %"], ["50 %", "max 90 %"]]
    assert viewer.texts("#machines-panel .counters td") == ["n1", "executor 11 (pid 11)", "0.45", "80%"]
    assert axe.faults(viewer.driver) == []
    canvas = viewer.first("#machines-panel .chart canvas")
    assert canvas.size["width"] == heat_map, "charts are beside the heat map"
    width = canvas.size["width"] - GUTTER
    places = [GUTTER + width * part - canvas.size["width"] / 2 for part in (3.3 / 60, 4.6 / 60)]
    chain = ActionChains(viewer.driver, duration=0).move_to_element_with_offset(canvas, int(places[0]), 0)
    chain.click_and_hold().move_to_element_with_offset(canvas, int(places[1]), 0).release().perform()
    assert "time=3-5" in viewer.state()
    canvas.send_keys(Keys.ESCAPE)
    assert "time=" not in viewer.state()
    canvas.send_keys(*[Keys.ARROW_RIGHT] * 3)
    assert "CPU at 2.0 s: most n1 10 %, least n2 10 %." in viewer.text("machines-panel")
    canvas.send_keys(Keys.ARROW_RIGHT)
    assert "CPU at 3.0 s: most n2 90 %, least n1 10 %." in viewer.text("machines-panel")
    canvas.send_keys(Keys.SHIFT + Keys.ARROW_RIGHT + Keys.NULL, Keys.ENTER)
    assert "time=3-5" in viewer.state()
    viewer.first("#machines-panel td.name button").click()
    assert "scope=host%3An1" in viewer.state()
    viewer.press("v")
    assert "The thick line is n1" in viewer.text("machines-panel")


def test_stages_are_scopes(viewer: Viewer, staged_page: Path) -> None:
    viewer.open(staged_page)
    assert listed_options(viewer, "scope")[1:] == ["stage 3.0", "stage 4.0", "No stage"]
    choose(viewer, "scope", "stage 3")
    assert "scope=slice%3Astage+3.0" in viewer.state()
    assert viewer.text("scope-note") == (
        "50 of 100 samples, 50.0 %: 40 samples certain, 10 samples likely. "
        "Its CPU time is its share of all that the processes used, also of what was not sampled."
    )
    choose(viewer, "scope", "no stage")
    assert viewer.text("scope-note") == "20 of 100 samples, 20.0 %."
    viewer.follow("view=compare&scope=slice:0&with=slice:2")
    assert box(viewer, "compare-with") == "stage 4.0"
    assert {row[5] for row in table(viewer, "changes")} == {"run", "scan", "sort"}
    viewer.follow("view=compare&scope=slice:0")
    assert box(viewer, "compare-with") == "All but stage 3.0"


def test_without_times_the_tab_says_why(viewer: Viewer, small_page: Path, spark_page: Path) -> None:
    viewer.open(small_page, "view=time&time=1-2")
    assert viewer.first("#time-panel .none").text.startswith("This page was made")
    assert chips(viewer) == [] and not viewer.element("tools").is_displayed()
    viewer.open(spark_page, "view=time")
    assert "--no-timeline" in viewer.first("#time-panel .none").text


def test_frames_in_the_order_of_time(viewer: Viewer, timed_page: Path) -> None:
    viewer.open(timed_page, "time=0-10")
    viewer.press("u")
    viewer.until_text("scope-note", "505 of 1,005 samples")
    assert "order=1" in viewer.state() and "scope=process%3An1%2F11" in viewer.state()
    assert viewer.hover(0.02, 3).splitlines()[:3] == ["even", "Time", "0.00–0.50 s"]
    assert viewer.hover(0.07, 3).splitlines()[:3] == ["odd", "Time", "0.50–1.00 s"]
    viewer.follow(viewer.state().lstrip("#").replace("time=0-10", "time=7.2-7.4"))
    viewer.still()
    assert viewer.hover(0.55, 2).splitlines()[0] == "burst"
    viewer.click(0.55, 2)
    viewer.until_text("frame-cost", "Lasts 20 ms")
    viewer.press("u")
    viewer.until_text("wider", "CPU time")
    assert "order" not in viewer.state()
