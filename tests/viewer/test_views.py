"""The views, with known shares."""

from __future__ import annotations

from pathlib import Path

from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement

from hprofiler._flamegraph import Profile
from hprofiler.report.file_page import write_page
from tests.timed_profile import Row, timed_profile
from tests.viewer.browser import Viewer, plain
from tests.viewer.made_run import MadeHost
from tests.viewer.page_objects import (
    box,
    choose,
    copied_stack,
    folded_page,
    is_match,
    name_at,
    names,
    run_page,
    search,
    show,
    sorted_by,
    table,
    tooltip,
)


def test_the_reversed_graph_begins_with_what_costs_by_itself(viewer: Viewer, page: Path) -> None:
    show(viewer, page, "reversed")
    first = [tooltip(viewer, place, 1) for place in (0.25, 0.7, 0.95)]
    assert [(one[""], one["Total"].split(" · ")[0]) for one in first] == [
        ("d", "50.0 %"),
        ("c", "40.0 %"),
        ("y", "10.0 %"),
    ]
    # c: 100 of its 120 samples come from a through one b, 20 through two
    assert [name_at(viewer, 0.7, depth) for depth in (2, 3)] == ["b", "a"]
    assert [name_at(viewer, 0.88, depth) for depth in (2, 3, 4)] == ["b", "b", "a"]
    assert name_at(viewer, 0.25, 2) == "a" and name_at(viewer, 0.95, 2) == "x"


def test_the_reversed_graph_zooms_searches_and_goes_back(viewer: Viewer, page: Path) -> None:
    show(viewer, page, "reversed")
    viewer.click(0.7, 1)
    assert viewer.text("frame-name") == "c"
    assert tooltip(viewer, 0.5, 3) == {
        "": "a",
        "Total": "33.3 % · 100 samples · 333 ms · 0.0056 cores",
        "Of view": "83.3 %",
    }
    viewer.press(Keys.BACKSPACE)
    viewer.still()
    assert name_at(viewer, 0.25, 1) == "d"
    assert search(viewer, "b") == "40.0 % matched"
    assert is_match(viewer.color(0.7, 2)) and not is_match(viewer.color(0.25, 2))


def test_the_status_of_merged_graphs_has_shares_of_the_whole(viewer: Viewer, page: Path) -> None:
    show(viewer, page, "reversed")
    viewer.click(0.7, 1)
    viewer.click(0.7, 2)  # b, of c's 120 samples in all of them
    assert viewer.text("frame-name") == "b"
    assert viewer.text("frame-cost") == "Total 40.0 % · 120 samples · 400 ms · 0.0067 cores"
    viewer.click(0.9, 3)
    assert copied_stack(viewer) == "b;b;c 20"
    viewer.open(page, "view=sandwich&method=b")
    viewer.canvas = "callers-canvas"
    viewer.click(0.5, 0)
    assert viewer.text("frame-name") == "a"
    assert viewer.text("frame-cost").startswith("Total 40.0 % · 120 samples")
    assert copied_stack(viewer) == "a;b 120"
    viewer.follow("view=sandwich&method=b")
    viewer.canvas = "callees-canvas"
    viewer.click(0.2, 1)
    assert copied_stack(viewer) == "b;c 100"


def test_zooming_into_narrow_frames_shows_them(viewer: Viewer, wide_page: Path) -> None:
    show(viewer, wide_page, "reversed")
    assert name_at(viewer, 0.3, 1) == "big" and name_at(viewer, 0.3, 2) == "top"
    assert name_at(viewer, 0.9, 1) == "(2572 smaller frames)"
    viewer.click(0.9, 1)
    viewer.until_text("frame-name", "(2572 smaller frames)")
    assert name_at(viewer, 0.001, 2).startswith("rare")
    viewer.click(0.001, 2)
    viewer.until_text("frame-name", "rare")
    assert name_at(viewer, 0.5, 3).startswith("caller")
    viewer.press(Keys.BACKSPACE, Keys.BACKSPACE)
    viewer.until("return !document.getElementById('frame-hint').hidden")
    viewer.still()
    assert name_at(viewer, 0.3, 1) == "big"


def test_a_method_between_its_callers_and_callees(viewer: Viewer, page: Path) -> None:
    viewer.open(page)
    viewer._move(0.2, 2).double_click().perform()
    viewer.until("return location.hash.includes('view=sandwich')")
    viewer.until_text("sandwich-panel", "40.0 % total, 0 % self")
    assert box(viewer, "sandwich-method") == "b"
    viewer.canvas = "callees-canvas"
    viewer.still()
    assert tooltip(viewer, 0.2, 1) == {
        "": "c",
        "Total": "33.3 % · 100 samples · 333 ms · 0.0056 cores",
        "Of b": "83.3 %",
    }
    assert [name_at(viewer, 0.95, depth) for depth in (0, 1, 2)] == ["b", "b", "c"]
    viewer.canvas = "callers-canvas"  # the method stands at the bottom, its callers on it
    assert tooltip(viewer, 0.5, 0)[""] == "a" and tooltip(viewer, 0.5, 1)[""] == "b"
    assert tooltip(viewer, 0.5, 0)["Of b"] == "100 %"


def test_a_double_click_means_the_frame_that_the_first_click_hit(viewer: Viewer, tmp_path: Path) -> None:
    stack = ";".join(f"f{depth}" for depth in range(200))
    path = folded_page(tmp_path, f"{stack} 10\n")
    viewer.open(path)
    viewer.still()
    viewer._move(0.5, 20).double_click().perform()
    viewer.until("return location.hash.includes('view=sandwich')")
    assert box(viewer, "sandwich-method") == "f19"


def test_the_sandwich_takes_another_method_and_another_scope(viewer: Viewer, page: Path) -> None:
    viewer.open(page, "view=sandwich&method=b")
    choose(viewer, "sandwich-method", "d")
    viewer.until_text("sandwich-panel", "50.0 % total, 50.0 % self")
    viewer.driver.back()
    viewer.until_text("sandwich-panel", "40.0 % total, 0 % self")
    choose(viewer, "scope", "hot")
    viewer.until_text("sandwich-panel", "80.0 % total, 0 % self")
    viewer.follow("view=sandwich&method=y&scope=host:1")
    assert "y is on no stack of this selection." in viewer.text("sandwich-panel")
    viewer.follow("view=sandwich")  # of the first finding's method
    viewer.until_text("sandwich-panel", "50.0 % total, 50.0 % self")


def test_methods_show_their_costs_and_hosts(viewer: Viewer, page: Path) -> None:
    show(viewer, page, "methods")
    viewer.until("return document.getElementById('methods-body').innerText.includes('of 3')")
    rows = {row[2]: [row[0], row[1], row[3], row[5]] for row in table(viewer, "methods")}
    assert rows == {
        "d": ["50.0 %", "50.0 %", "2 of 3", "cool1 80.0 %"],
        "c": ["40.0 %", "40.0 %", "3 of 3", "hot 80.0 %"],
        "y": ["10.0 %", "10.0 %", "2 of 3", "hot 20.0 %"],
        "a": ["0 %", "90.0 %", "3 of 3", ""],
        "b": ["0 %", "40.0 %", "3 of 3", ""],
        "x": ["0 %", "10.0 %", "2 of 3", ""],
    }
    strips = viewer.all("#methods-body svg")
    assert [plain(str(strip.get_attribute("aria-label"))) for strip in strips] == [
        "0 % to 80.0 %, median 70.0 %",
        "20.0 % to 80.0 %, median 20.0 %",
        "0 % to 20.0 %, median 10.0 %",
    ]


def test_shares_of_hosts_that_cannot_be_read_are_reported(viewer: Viewer, page: Path) -> None:
    viewer.open(page)
    viewer.driver.execute_script(
        """document.getElementById("view-methods").click();
        const { Float32Array } = window;
        window.memory = () => Object.assign(window, { Float32Array });
        // The table below the graph may still read its shares: of both none is there.
        window.Float32Array = function (length) {
          if (length > 0) throw new RangeError("no memory");
          return new Float32Array(length);
        };"""
    )
    viewer.until_text("failure", "A part of this view cannot be shown: no memory")
    assert names(viewer, "methods", 2)[:3] == ["d", "c", "y"]
    assert "Hosts" not in viewer.text("methods-panel"), "nothing is promised that does not come"
    viewer.driver.execute_script("memory()")
    choose(viewer, "scope", "hot")
    viewer.until_text("methods-body", "of 3")
    assert not viewer.element("failure").is_displayed()


def test_methods_sort_by_columns_both_ways(viewer: Viewer, page: Path) -> None:
    show(viewer, page, "methods")
    viewer.until("return document.getElementById('methods-body').innerText.includes('of 3')")
    assert names(viewer, "methods", 2)[:3] == ["d", "c", "y"]
    for key, way, order in (
        ("total", "descending", ["a", "d"]),
        ("name", "ascending", ["a", "b", "c", "d", "x", "y"]),
        ("spread", "descending", ["d", "c", "y"]),
    ):
        assert sorted_by(viewer, "methods", key) == way
        assert names(viewer, "methods", 2)[: len(order)] == order
        assert viewer.state().endswith(f"sort={key}")
        assert sorted_by(viewer, "methods", key) != way
        assert names(viewer, "methods", 2)[-len(order) :] == order[::-1]
        assert viewer.state().endswith(f"sort=-{key}")


def test_each_view_is_sorted_by_itself(viewer: Viewer, page: Path) -> None:
    show(viewer, page, "methods")
    assert sorted_by(viewer, "methods", "name") == "ascending"
    viewer.element("view-compare").click()
    assert "sort" not in viewer.state()
    assert names(viewer, "changes", 5)[:1] != ["a"]
    viewer.driver.back()
    viewer.until("return !document.getElementById('methods-panel').hidden")
    assert names(viewer, "methods", 2) == ["a", "b", "c", "d", "x", "y"]


def test_methods_are_searched_and_lead_to_the_sandwich(viewer: Viewer, page: Path) -> None:
    show(viewer, page, "methods")
    search(viewer, "b")
    assert names(viewer, "methods", 2) == ["b"]
    search(viewer, "nothing of that name")
    assert names(viewer, "methods", 2) == []
    assert "Nothing here matches the search." in viewer.text("methods-panel")
    viewer.press(Keys.ESCAPE)
    viewer.until("return document.querySelectorAll('#methods-body tr').length === 6")
    viewer.driver.execute_script("document.querySelector('#methods-body button').focus()")
    viewer.press(Keys.ARROW_DOWN, Keys.ENTER)
    viewer.until_text("sandwich-panel", "40.0 % total, 40.0 % self")
    assert box(viewer, "sandwich-method") == "c"


def test_the_hottest_methods_lead_to_the_sandwich(viewer: Viewer, tmp_path: Path) -> None:
    host = MadeHost("one", {1: "a;b 90\n"}, events={"alloc": {1: "a;make 1048576\nkeep 1048576\n"}})
    viewer.open(run_page(tmp_path, [host], "cpu", "alloc"))
    viewer.element("events").find_elements(By.TAG_NAME, "button")[1].click()
    viewer.until("return location.hash.includes('event=alloc')")
    viewer.until_text("hottest", "make")
    row = next(row for row in viewer.all("#hottest tbody tr") if "make" in row.text)
    row.find_element(By.CSS_SELECTOR, ".self .bar").click()
    viewer.until("return !document.getElementById('sandwich-panel').hidden")
    assert box(viewer, "sandwich-method") == "make" and "event=alloc" in viewer.state()


def test_the_hottest_methods_are_those_of_the_view_of_methods(viewer: Viewer, page: Path) -> None:
    """In any scope."""
    for scope in ("", "scope=host:0", "scope=mean"):
        viewer.open(page, f"{scope}&view=methods")
        listed = [row[:3] for row in table(viewer, "methods")]
        assert not viewer.element("hottest").is_displayed()
        viewer.element("view-graph").click()
        viewer.until("return document.getElementById('hottest').hidden === false")
        assert [row[:3] for row in table(viewer, "hottest-methods")] == listed, scope


def test_methods_leave_out_what_sentences_do(viewer: Viewer, tmp_path: Path) -> None:
    """Broken stacks do not count; the profiler's work counts for who was interrupted, and has no row."""
    show(viewer, folded_page(tmp_path, "(broken stacks);lost 10\nrun;a 30\nrun;b 60\n"), "methods")
    assert [row[:3] for row in table(viewer, "methods")] == [
        ["66.7 %", "66.7 %", "b"],
        ["33.3 %", "33.3 %", "a"],
        ["0 %", "100 %", "run"],
    ]
    assert "without broken stacks" in viewer.text("methods-panel")
    stacks = "run;a 30\nrun;b 60\nrun;b;Profiler::runInternal;walk 10\n"
    show(viewer, run_page(tmp_path, [MadeHost("n1", {7: stacks})]), "methods")
    assert [row[:3] for row in table(viewer, "methods")] == [
        ["60.0 %", "70.0 %", "b"],
        ["30.0 %", "30.0 %", "a"],
        ["0 %", "100 %", "run"],
    ]
    assert "The profiler’s own work, 10.0 %" in viewer.text("methods-panel")


def test_methods_have_instructions_per_cycle_where_both_are_recorded(viewer: Viewer, tmp_path: Path) -> None:
    cycles, instructions = "a;slow 8000\na;fast 2000\n", "a;slow 2000\na;fast 6000\na;other 10\n"
    host = MadeHost("n1", events={"cycles": {7: cycles}, "instructions": {7: instructions}})
    show(viewer, run_page(tmp_path, [host], "cycles", "instructions"), "methods")
    rows = {row[3]: row[:3] for row in table(viewer, "methods")}
    assert rows["slow"] == ["80.0 %", "80.0 %", "0.25"] and rows["fast"][2] == "3.00" and rows["a"][2] == ""
    sorted_by(viewer, "methods", "ipc")
    assert names(viewer, "methods", 3)[:2] == ["fast", "slow"]
    viewer.press("g")
    viewer.element("by-ipc").click()
    viewer.until_text("legend", "IPC below 0.5")
    shares = ["IPC below 0.5 80.0 %", "2 and more 20.0 %", "not both counted 0 %"]
    assert viewer.text("legend").split("\n") == ["Self:", *shares]
    viewer.open(run_page(tmp_path, [MadeHost("n1", {1: "a 1\n"})]), "color=ipc")
    assert not viewer.element("by-ipc").is_displayed()


def test_a_file_of_perf_has_instructions_per_cycle_by_its_periods(viewer: Viewer, tmp_path: Path) -> None:
    """It counts samples, too, of which each stands for another number of cycles."""
    events = ("cycles", "cycles_period", "instructions", "instructions_period")
    rows = [
        Row(("main", "slow"), 0, 8, (8, 8000, 1, 2000)),
        Row(("main", "fast"), 0, 4, (4, 2000, 2, 6000)),
    ]
    recorded = timed_profile(rows, values=[(event, "count") for event in events])
    write_page(Profile.from_bytes(recorded, "compact"), tmp_path / "page.html", "file")
    show(viewer, tmp_path / "page.html", "methods", "event=cycles_period")
    ratios = {row[3]: row[2] for row in table(viewer, "methods")}
    assert ratios == {"slow": "0.25", "fast": "3.00", "main": ""}


def test_many_methods_come_a_page_at_a_time(viewer: Viewer, wide_page: Path) -> None:
    show(viewer, wide_page, "methods")
    assert names(viewer, "methods", 2)[0] == "big" and len(table(viewer, "methods")) == 100
    viewer.element("methods-more").click()
    row = "document.querySelectorAll('#methods-body button')[150]"
    viewer.driver.execute_script(f"{row}.focus()")
    viewer.press("p")  # what changes nothing here leaves the reader where he is
    assert "color=package" in viewer.state() and len(table(viewer, "methods")) == 200
    assert viewer.driver.execute_script(f"return document.activeElement === {row}")
    sorted_by(viewer, "methods", "name")
    rows = names(viewer, "methods", 2)
    assert rows[:4] == ["big", "caller0", "caller1", "caller2"] and len(rows) == 100


def test_hosts_sort_and_lead_to_their_scope(viewer: Viewer, page: Path) -> None:
    show(viewer, page, "hosts")
    assert host_names(viewer)[0] == "hot"  # unlike the others
    head(viewer, "Host").click()
    assert host_names(viewer) == ["cool1", "cool2", "hot"]
    head(viewer, "Host").click()
    assert host_names(viewer) == ["hot", "cool2", "cool1"]
    viewer.driver.find_element(By.LINK_TEXT, "cool2").click()
    viewer.until("return !document.getElementById('graph-panel').hidden")
    assert box(viewer, "scope") == "cool2" and "scope=host%3Acool2" in viewer.state()


def test_a_differing_method_leads_to_a_comparison(viewer: Viewer, spark_page: Path) -> None:
    show(viewer, spark_page, "hosts")
    row = viewer.first("#hosts-panel tbody tr")
    assert row.text.startswith("worker08.prod.example")
    assert "Pattern.sequence 43.1 % here, 15.5 % usually" in plain(row.text)
    row.find_element(By.XPATH, ".//li/button[.='Pattern.sequence']").click()
    viewer.until("return !document.getElementById('compare-panel').hidden")
    assert box(viewer, "scope") == "worker08.prod.example"
    assert box(viewer, "compare-with") == "All but worker08.prod.example"
    assert names(viewer, "changes", 5) == ["java.util.regex.Pattern.sequence"]
    viewer.canvas = "compare-canvas"
    assert is_match(viewer.color(0.3, 11))


def test_the_run_is_a_view_of_its_own(viewer: Viewer, page: Path) -> None:
    show(viewer, page, "run")
    run = viewer.text("run-panel")
    assert "hprofiler -f 300 -t 60 -j spark-executor -H hosts.txt" in run
    assert "3 of 3 processes on 3 of 3 hosts" in run
    assert "sampled with ctimer" in run and "sysctl kernel.perf_event_paranoid=1" in run


def test_hosts_named_by_address_sort_by_it(viewer: Viewer, tmp_path: Path) -> None:
    hosts = {"10.0.0.10": 1_000_002, "10.0.0.9": 1_000_003, "10.0.0.2": 1_000_001}
    made = [MadeHost(name, {7: f"a {count}\n"}) for name, count in hosts.items()]
    show(viewer, run_page(tmp_path, made), "hosts")
    head(viewer, "Host").click()
    assert host_names(viewer) == ["10.0.0.2", "10.0.0.9", "10.0.0.10"]
    head(viewer, "Samples").click()
    assert host_names(viewer) == ["10.0.0.9", "10.0.0.10", "10.0.0.2"]


def test_the_processes_of_one_host_are_listed(viewer: Viewer, tmp_path: Path) -> None:
    texts = {11: "a;b 60\na;c 30\n", 12: "a;c 9\nd 1\n", 13: "e 100\n"}
    made = MadeHost("one", dict(texts), events={"alloc": {12: "a;make 1048576\n"}})
    show(viewer, run_page(tmp_path, [made], "cpu", "alloc"), "hosts")
    assert [(row[0], row[2], row[3], row[4]) for row in table(viewer, "processes")] == [
        ("50.0 %", "executor 13", "13", "e 100 % Compare"),
        ("45.0 %", "executor 11", "11", "b 66.7 % Compare"),
        ("5.0 %", "executor 12", "12", "c 90.0 % Compare"),
    ]
    assert sorted_by(viewer, "processes", "process") == "ascending"
    assert names(viewer, "processes", 2) == ["executor 11", "executor 12", "executor 13"]
    viewer.first("[aria-label='Compare executor 12 with the rest']").click()
    viewer.until("return !document.getElementById('compare-panel').hidden")
    assert box(viewer, "compare-with").startswith("All but executor 12")
    viewer.follow("view=hosts&event=alloc")
    assert names(viewer, "processes", 2) == ["executor 12"]
    viewer.first("#processes-body button").click()
    viewer.until("return !document.getElementById('graph-panel').hidden")
    assert box(viewer, "scope").startswith("executor 12")


def host_names(viewer: Viewer) -> list[str]:
    return viewer.texts("#hosts-panel tbody td:first-child")


def head(viewer: Viewer, label: str) -> WebElement:
    return viewer.driver.find_element(By.XPATH, f"//*[@id='hosts-panel']//th/button[.='{label}']")


def test_methods_have_what_they_allocate_and_classes_a_table_of_their_own(
    viewer: Viewer, tmp_path: Path
) -> None:
    """Names are written with dots."""
    stacks = "app/Main.run;app/Main.make;byte[]_[i] 300\napp/Main.run;java/lang/Object_[i] 100\n"
    viewer.open(run_page(tmp_path, [MadeHost("n1", events={"alloc": {7: stacks}})], "alloc"))
    viewer.element("view-methods").click()
    assert [row[:3] for row in table(viewer, "methods")] == [
        ["75.0 %", "75.0 %", "app.Main.make"],
        ["25.0 %", "100 %", "app.Main.run"],
    ]
    assert table(viewer, "classes") == [
        ["75.0 %", "byte[]", "app.Main.make"],
        ["25.0 %", "java.lang.Object", "app.Main.run"],
    ]


def test_waits_are_those_of_who_waits(viewer: Viewer, tmp_path: Path) -> None:
    stacks = (
        "app/Main.run;app/Main.rest;java/lang/Thread.sleep;__GI___clock_nanosleep 30\n"
        "app/Main.run;app/Main.work 10\n"
    )
    viewer.open(run_page(tmp_path, [MadeHost("n1", events={"wall": {7: stacks}})], "wall"))
    viewer.element("view-methods").click()
    listed = [row[:3] for row in table(viewer, "methods")]
    assert listed[0][0] == "75.0 %" and "app.Main.rest" in listed[0][2].replace("sleeps in ", "")
