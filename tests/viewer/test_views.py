"""The viewer's views in a real browser: each used as a reader does, and its shares are known."""

from __future__ import annotations

from pathlib import Path
from typing import Dict, List, Set

import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement

from hprofiler._flamegraph import Profile
from hprofiler.report import make_report, write_page
from tests.viewer.browser import Viewer
from tests.viewer.conftest import prefer
from tests.viewer.made_run import MadeHost, make_run

# Of 300 samples 120 are under b (its recursion counted once), all in c; 150 are in d, 30 in y.
HOSTS = {
    "hot": "a;b_[0];c_[j] 60\na;b_[j];b_[j];c_[j] 20\nx;y 20\n",
    "cool1": "a;b_[j];c_[j] 20\na;d 80\n",
    "cool2": "a;b_[j];c_[j] 20\na;d 70\nx;y 10\n",
}
HOT = "scope=host:0"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three hosts, on one of which b is four times as hot as on the others."""
    hosts = [MadeHost(name, {pid: folded}) for pid, (name, folded) in enumerate(HOSTS.items(), 11)]
    hosts[2].fails("degraded", "sampled with ctimer", "sysctl kernel.perf_event_paranoid=1", pid=13)
    return make_report(make_run(tmp_path_factory.mktemp("views") / "run", hosts).path).page


def show(viewer: Viewer, page: Path, view: str, state: str = "") -> None:
    """Opens a view by its tab, and points at its graph."""
    viewer.open(page, state)
    viewer.element(f"view-{view}").click()
    if view in ("reversed", "compare"):
        viewer.canvas = f"{view}-canvas"
        viewer.still()


def copied_stack(viewer: Viewer) -> str:
    """What the button copies, pasted into the search."""
    viewer.element("copy-stack").click()
    viewer.until_text("copy-stack", "Copied")
    viewer.press("/")
    ActionChains(viewer.driver).key_down(Keys.CONTROL).send_keys("v").key_up(Keys.CONTROL).perform()
    viewer.until("return document.getElementById('search').value !== ''")
    return str(viewer.element("search").get_attribute("value"))


def table(viewer: Viewer, id: str) -> List[List[str]]:
    """The texts of a table's rows."""
    rows = viewer.driver.execute_script(
        "return [...document.querySelectorAll(`#${arguments[0]}-body tr`)].map("
        "row => [...row.cells].map(cell => cell.innerText.trim()))",
        id,
    )
    return [[cell.replace("\u202f", " ") for cell in row] for row in rows]


def names(viewer: Viewer, id: str, column: int) -> List[str]:
    return [row[column] for row in table(viewer, id)]


def sorted_by(viewer: Viewer, id: str, key: str) -> str:
    """Clicks a head; how its column is sorted then."""
    viewer.element(f"{id}-sort-{key}").click()
    head = viewer.element(f"{id}-sort-{key}").find_element(By.XPATH, "..")
    return str(head.get_attribute("aria-sort"))


def lines(viewer: Viewer, share: float, depth: int) -> List[str]:
    """A frame's tooltip."""
    return viewer.hover(share, depth).splitlines()


def told(viewer: Viewer, share: float, depth: int) -> Dict[str, str]:
    """A frame's tooltip: its name as "", and each of its lines."""
    viewer.hover(share, depth)
    cells = [cell.text for cell in viewer.driver.find_elements(By.CSS_SELECTOR, "#tooltip dt, #tooltip dd")]
    cells = [cell.replace("\u202f", " ") for cell in cells]
    return {"": viewer.text("tooltip").splitlines()[0], **dict(zip(cells[::2], cells[1::2]))}


def test_the_reversed_graph_begins_with_what_costs_by_itself(viewer: Viewer, page: Path) -> None:
    show(viewer, page, "reversed")
    first = [told(viewer, place, 1) for place in (0.25, 0.7, 0.95)]
    assert [(one[""], one["Total"].split(" · ")[0]) for one in first] == [
        ("d", "50.0 %"),
        ("c", "40.0 %"),
        ("y", "10.0 %"),
    ]
    # c: 100 of its 120 samples come from a through one b, 20 through two
    assert [lines(viewer, 0.7, depth)[0] for depth in (2, 3)] == ["b", "a"]
    assert [lines(viewer, 0.88, depth)[0] for depth in (2, 3, 4)] == ["b", "b", "a"]
    assert lines(viewer, 0.25, 2)[0] == "a" and lines(viewer, 0.95, 2)[0] == "x"


def test_the_reversed_graph_zooms_searches_and_goes_back(viewer: Viewer, page: Path) -> None:
    show(viewer, page, "reversed")
    viewer.click(0.7, 1)
    assert viewer.text("frame-name") == "c"
    assert told(viewer, 0.5, 3) == {
        "": "a",
        "Total": "33.3 % · 100 samples · 333 ms · 0.0056 cores",
        "Of view": "83.3 %",
    }
    viewer.press(Keys.BACKSPACE)
    viewer.still()
    assert lines(viewer, 0.25, 1)[0] == "d"
    viewer.element("search").send_keys("b")
    viewer.until_text("search-result", "40.0 % matched")
    assert is_match(viewer.color(0.7, 2)) and not is_match(viewer.color(0.25, 2))


def test_the_line_below_merged_graphs_has_parts_of_the_whole(viewer: Viewer, page: Path) -> None:
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
    viewer.open(page, "view=sandwich&method=b")
    viewer.canvas = "callees-canvas"
    viewer.click(0.2, 1)
    assert copied_stack(viewer) == "b;c 100"


def test_only_what_the_zoomed_frame_calls_is_part_of_the_view(viewer: Viewer, page: Path) -> None:
    viewer.open(page)
    viewer.click(0.2, 2)
    viewer.until_text("frame-name", "b")
    assert "Of view" in told(viewer, 0.2, 3)
    assert told(viewer, 0.2, 1)[""] == "a" and "Of view" not in told(viewer, 0.2, 1)


def test_the_reversed_graph_by_keyboard(viewer: Viewer, page: Path) -> None:
    viewer.open(page)
    viewer.press("r")
    viewer.until("return !document.getElementById('reversed-panel').hidden")
    viewer.canvas = "reversed-canvas"
    viewer.driver.execute_script("document.getElementById('reversed-scroller').focus()")
    viewer.press(Keys.ARROW_DOWN, Keys.ARROW_RIGHT, Keys.ENTER)
    viewer.until_text("frame-name", "c")
    viewer.press("s")
    viewer.until_text("sandwich-panel", "40.0 % total")
    assert "method=c" in viewer.state()


def test_what_is_too_narrow_to_see_opens_when_it_is_zoomed_into(viewer: Viewer, tmp_path: Path) -> None:
    path = tmp_path / "narrow.html"
    flat = "".join(f"caller{number};rare{number} {3 + number % 7}\n" for number in range(3000))
    write_page(Profile.from_bytes(f"top;big 18000\n{flat}".encode(), "folded"), path, "narrow")
    show(viewer, path, "reversed")
    assert lines(viewer, 0.3, 1)[0] == "big" and lines(viewer, 0.3, 2)[0] == "top"
    assert lines(viewer, 0.9, 1)[0] == "(2572 smaller frames)"
    viewer.click(0.9, 1)
    viewer.until_text("frame-name", "(2572 smaller frames)")
    assert lines(viewer, 0.001, 2)[0].startswith("rare")
    viewer.click(0.001, 2)
    viewer.until_text("frame-name", "rare")
    assert lines(viewer, 0.5, 3)[0].startswith("caller")
    viewer.press(Keys.BACKSPACE, Keys.BACKSPACE)
    viewer.until("return !document.getElementById('frame-hint').hidden")
    viewer.still()
    assert lines(viewer, 0.3, 1)[0] == "big"


def test_a_method_between_its_callers_and_callees(viewer: Viewer, page: Path) -> None:
    viewer.open(page)
    viewer._move(0.2, 2).double_click().perform()
    viewer.until("return location.hash.includes('view=sandwich')")
    viewer.until_text("sandwich-panel", "40.0 % total, 0 % self")
    assert box(viewer, "sandwich-method") == "b"
    viewer.canvas = "callees-canvas"
    viewer.still()
    assert told(viewer, 0.2, 1) == {
        "": "c",
        "Total": "33.3 % · 100 samples · 333 ms · 0.0056 cores",
        "Of b": "83.3 %",
    }
    assert [lines(viewer, 0.95, depth)[0] for depth in (0, 1, 2)] == ["b", "b", "c"]
    viewer.canvas = "callers-canvas"  # the method stands at the bottom, its callers on it
    assert told(viewer, 0.5, 0)[""] == "a" and told(viewer, 0.5, 1)[""] == "b"
    assert told(viewer, 0.5, 0)["Of b"] == "100 %"


def test_a_double_click_means_the_frame_that_the_first_click_hit(viewer: Viewer, tmp_path: Path) -> None:
    path = tmp_path / "deep.html"
    stack = ";".join(f"f{depth}" for depth in range(200))
    write_page(Profile.from_bytes(f"{stack} 10\n".encode(), "folded"), path, "deep")
    viewer.open(path)
    viewer.still()
    viewer._move(0.5, 20).double_click().perform()
    viewer.until("return location.hash.includes('view=sandwich')")
    assert box(viewer, "sandwich-method") == "f19"


def test_the_sandwich_takes_another_method_and_another_scope(viewer: Viewer, page: Path) -> None:
    viewer.open(page, "view=sandwich&method=b")
    choose(viewer, "sandwich-method", "d", 0)
    viewer.until_text("sandwich-panel", "50.0 % total, 50.0 % self")
    viewer.driver.back()
    viewer.until_text("sandwich-panel", "40.0 % total, 0 % self")
    choose(viewer, "scope", "hot", 0)
    viewer.until_text("sandwich-panel", "80.0 % total, 0 % self")
    choose(viewer, "scope", "cool1", 0)
    viewer.open(page, "view=sandwich&method=y&scope=host:1")
    assert "y is not on one stack of what is shown." in viewer.text("sandwich-panel")
    viewer.open(page, "view=sandwich")
    assert "Choose a method" in viewer.text("sandwich-panel")


def test_methods_tell_their_cost_and_their_hosts(viewer: Viewer, page: Path) -> None:
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
    strips = viewer.driver.find_elements(By.CSS_SELECTOR, "#methods-body svg")
    assert [str(strip.get_attribute("aria-label")).replace("\u202f", " ") for strip in strips] == [
        "0 % to 80.0 %, median 70.0 %",
        "20.0 % to 80.0 %, median 20.0 %",
        "0 % to 20.0 %, median 10.0 %",
    ]


@pytest.mark.parametrize(
    ("key", "way", "order"),
    [
        ("total", "descending", ["a", "d"]),
        ("name", "ascending", ["a", "b", "c", "d", "x", "y"]),
        ("spread", "descending", ["d", "c", "y"]),
    ],
)
def test_methods_sort_by_columns_both_ways(
    viewer: Viewer, page: Path, key: str, way: str, order: List[str]
) -> None:
    show(viewer, page, "methods")
    viewer.until("return document.getElementById('methods-body').innerText.includes('of 3')")
    assert names(viewer, "methods", 2)[:3] == ["d", "c", "y"]
    assert sorted_by(viewer, "methods", key) == way
    assert names(viewer, "methods", 2)[: len(order)] == order
    assert viewer.state().endswith(f"sort={key}")
    assert sorted_by(viewer, "methods", key) != way
    assert names(viewer, "methods", 2)[-len(order) :] == order[::-1]
    assert viewer.state().endswith(f"sort=-{key}")


@pytest.mark.parametrize(("key", "first"), [("hosts", {"a", "b", "c"}), ("most", {"c", "d"})])
def test_methods_sort_by_what_hosts_have(viewer: Viewer, page: Path, key: str, first: Set[str]) -> None:
    viewer.open(page, f"view=methods&sort={key}")
    viewer.until("return document.getElementById('methods-body').innerText.includes('of 3')")
    assert set(names(viewer, "methods", 2)[: len(first)]) == first


def test_each_view_is_sorted_by_itself(viewer: Viewer, page: Path) -> None:
    show(viewer, page, "methods")
    assert sorted_by(viewer, "methods", "name") == "ascending"
    viewer.element("view-compare").click()
    assert "sort" not in viewer.state()
    assert names(viewer, "changes", 4)[:1] != ["a"]
    viewer.driver.back()
    viewer.until("return !document.getElementById('methods-panel').hidden")
    assert names(viewer, "methods", 2) == ["a", "b", "c", "d", "x", "y"]


def test_methods_are_searched_and_lead_to_the_sandwich(viewer: Viewer, page: Path) -> None:
    show(viewer, page, "methods")
    viewer.element("search").send_keys("b")
    viewer.until("return document.querySelectorAll('#methods-body tr').length === 1")
    viewer.element("search").clear()
    viewer.element("search").send_keys("nothing of that name")
    viewer.until("return document.querySelectorAll('#methods-body tr').length === 0")
    assert "Nothing here matches the search." in viewer.text("methods-panel")
    viewer.press(Keys.ESCAPE)
    viewer.until("return document.querySelectorAll('#methods-body tr').length === 6")
    viewer.driver.execute_script("document.querySelector('#methods-body button').focus()")
    viewer.press(Keys.ARROW_DOWN, Keys.ENTER)
    viewer.until_text("sandwich-panel", "40.0 % total, 40.0 % self")
    assert box(viewer, "sandwich-method") == "c"


def test_fifty_thousand_methods_come_a_page_at_a_time(viewer: Viewer, tmp_path: Path) -> None:
    path = tmp_path / "many.html"
    stacks = "".join(f"a;m{number} {1 + number}\n" for number in range(50_000))
    write_page(Profile.from_bytes(stacks.encode(), "folded"), path, "many")
    show(viewer, path, "methods")
    assert names(viewer, "methods", 2)[:2] == ["m49999", "m49998"] and len(table(viewer, "methods")) == 100
    viewer.element("methods-more").click()
    assert len(table(viewer, "methods")) == 200
    row = "document.querySelectorAll('#methods-body button')[150]"
    viewer.driver.execute_script(f"{row}.focus()")
    viewer.press("p")  # what changes nothing here leaves the reader where he is
    viewer.until("return location.hash.includes('color=package')")
    assert len(table(viewer, "methods")) == 200
    assert viewer.driver.execute_script(f"return document.activeElement === {row}")
    sorted_by(viewer, "methods", "name")
    assert names(viewer, "methods", 2)[:3] == ["a", "m0", "m1"] and len(table(viewer, "methods")) == 100


def test_a_host_is_compared_with_the_rest(viewer: Viewer, page: Path) -> None:
    show(viewer, page, "compare", HOT)
    assert box(viewer, "compare-with") == "All but hot"
    # b has 80 % of hot and 20 % of the rest, and is as wide as 50 %; d is on the others only
    assert told(viewer, 0.25, 2) == {
        "": "b",
        "hot": "80.0 %",
        "All but hot": "20.0 %",
        "Difference": "60.0 points more in hot, 4.0 times as much",
    }
    assert told(viewer, 0.7, 2)["Difference"] == "only in All but hot"
    assert is_red(viewer.color(0.25, 2)) and is_blue(viewer.color(0.7, 2))
    assert rows_by_name(viewer) == {
        "b": ["+60.0 points", "0", "20.0 %", "80.0 %"],
        "c": ["+60.0 points", "+60.0 points", "20.0 %", "80.0 %"],
        "d": ["−75.0 points", "−75.0 points", "75.0 %", "0 %"],
        "a": ["−15.0 points", "0", "95.0 %", "80.0 %"],
        "x": ["+15.0 points", "0", "5.0 %", "20.0 %"],
        "y": ["+15.0 points", "+15.0 points", "5.0 %", "20.0 %"],
    }
    assert names(viewer, "changes", 4)[0] == "d"
    assert viewer.text("only-there").splitlines()[1:] == ["75.0 % d called by a"]
    assert viewer.text("only-here").splitlines()[1:] == ["20.0 % b called by b ← a"]


def test_a_comparison_has_no_amounts_of_its_own(viewer: Viewer, page: Path) -> None:
    show(viewer, page, "compare", HOT)
    viewer.click(0.25, 2)
    assert viewer.text("frame-name") == "b"
    assert viewer.text("frame-cost") == (
        "hot 80.0 %, All but hot 20.0 %, Difference 60.0 points more in hot, 4.0 times as much"
    )
    assert copied_stack(viewer) == "a;b"


@pytest.mark.parametrize("way", ["Escape", "0", "reset", "back"])
def test_out_of_a_zoomed_comparison(viewer: Viewer, page: Path, way: str) -> None:
    show(viewer, page, "compare", HOT)
    viewer.click(0.25, 2)
    viewer.until("return location.hash.includes('zoom=')")
    if len(way) == 1 or way == "Escape":
        viewer.press(Keys.ESCAPE if way == "Escape" else way)
    else:
        viewer.element(way).click()
    viewer.until("return !location.hash.includes('zoom=')")
    viewer.until("return document.getElementById('frame-chosen').hidden")
    viewer.element("view-graph").click()
    viewer.canvas = "graph-canvas"
    assert viewer.hover(0.95, 1).splitlines()[0] == "x"


def test_a_chosen_frame_stays_chosen_in_the_line(viewer: Viewer, page: Path) -> None:
    viewer.open(page)
    viewer.driver.execute_script("document.getElementById('graph-scroller').focus()")
    viewer.press(Keys.ARROW_DOWN, Keys.ARROW_DOWN)
    viewer.until_text("frame-name", "d")
    viewer.press("p")
    viewer.until("return location.hash.includes('color=package')")
    assert viewer.text("frame-name") == "d"


def test_a_comparison_is_light_on_paper(viewer: Viewer, page: Path) -> None:
    show(viewer, page, "compare", HOT)
    light = viewer.color(0.25, 2)
    prefer(viewer.driver, "dark")
    viewer.until("return matchMedia('(prefers-color-scheme: dark)').matches")
    assert viewer.color(0.25, 2) != light
    viewer.driver.execute_script("window.dispatchEvent(new Event('beforeprint'))")
    assert viewer.color(0.25, 2) == light


def rows_by_name(viewer: Viewer) -> Dict[str, List[str]]:
    return {row[4]: row[:4] for row in table(viewer, "changes")}


def test_bars_are_as_long_as_their_change(viewer: Viewer, tmp_path: Path) -> None:
    # In two places m changes by 20 and 40 points: no frame does by as much as the method.
    hosts = {"one": "a;m 40\nb;m 20\nc 40\n", "other": "a;x 20\na;y 20\nb;z 20\nc 40\n"}
    made = [MadeHost(name, {7: folded}) for name, folded in hosts.items()]
    show(viewer, make_report(make_run(tmp_path / "run", made).path).page, "compare", HOT)
    shares = viewer.driver.execute_script(
        "return [...document.querySelectorAll('#changes-body .delta')].map("
        "(bar) => Number(bar.style.getPropertyValue('--share')))"
    )
    by_name = dict(zip(names(viewer, "changes", 4), shares))
    assert by_name == {
        "m": 1.0,
        **dict.fromkeys("xyz", pytest.approx(1 / 3)),
        **dict.fromkeys("abc", pytest.approx(0.0)),
    }


def test_amounts_are_compared_when_asked_for(viewer: Viewer, page: Path) -> None:
    show(viewer, page, "compare", f"{HOT}&with=host:1")
    viewer.driver.find_element(By.XPATH, "//*[@id='compare-measure']/button[.='Amounts']").click()
    viewer.until("return location.hash.includes('normalize=0')")
    assert rows_by_name(viewer)["b"] == ["+60 samples", "0", "20 samples", "80 samples"]
    assert told(viewer, 0.25, 2)["Difference"] == "60 samples more in hot, 4.0 times as much"


def test_sides_are_chosen_and_swapped_and_kept_in_the_address(viewer: Viewer, page: Path) -> None:
    show(viewer, page, "compare", HOT)
    choose(viewer, "compare-with", "cool2", 0)
    viewer.until("return location.hash.includes('with=host')")
    assert rows_by_name(viewer)["b"] == ["+60.0 points", "0", "20.0 %", "80.0 %"]
    viewer.element("compare-swap").click()
    assert rows_by_name(viewer)["b"] == ["−60.0 points", "0", "80.0 %", "20.0 %"]
    state = viewer.state().lstrip("#")
    viewer.open(page, state)
    assert rows_by_name(viewer)["b"] == ["−60.0 points", "0", "80.0 %", "20.0 %"]
    assert is_blue(viewer.color(0.25, 2))


def test_a_lone_path_is_zoomed_into(viewer: Viewer, page: Path) -> None:
    show(viewer, page, "compare", HOT)
    viewer.driver.find_element(By.CSS_SELECTOR, "#only-there button").click()
    viewer.until_text("frame-name", "d")
    assert lines(viewer, 0.5, 2)[0] == "d" and "zoom=" in viewer.state()


def test_the_host_that_is_least_alike_is_compared_with_the_cluster(viewer: Viewer, page: Path) -> None:
    show(viewer, page, "compare")
    assert viewer.text("compare-panel").splitlines()[:2] == ["hot", "compared with"]
    assert box(viewer, "compare-with") == "Cluster, sum"
    assert rows_by_name(viewer)["b"] == ["+40.0 points", "0", "40.0 %", "80.0 %"]
    viewer.element("compare-swap").click()
    assert rows_by_name(viewer)["b"] == ["−40.0 points", "0", "80.0 %", "40.0 %"]


def test_a_process_is_compared_with_all_others(viewer: Viewer, page: Path) -> None:
    show(viewer, page, "compare", "scope=process:1")
    assert box(viewer, "compare-with").startswith("All but ") and "cool1" in box(viewer, "compare-with")
    assert rows_by_name(viewer)["d"] == ["+45.0 points", "+45.0 points", "35.0 %", "80.0 %"]
    viewer.element("compare-swap").click()
    assert rows_by_name(viewer)["d"] == ["−45.0 points", "−45.0 points", "80.0 %", "35.0 %"]


def test_hosts_sort_and_lead_to_their_scope(viewer: Viewer, page: Path) -> None:
    show(viewer, page, "hosts")
    assert host_names(viewer)[0] == "hot"  # unlike the others
    head(viewer, "Host").click()
    assert host_names(viewer) == ["cool1", "cool2", "hot"]
    head(viewer, "Host").click()
    assert host_names(viewer) == ["hot", "cool2", "cool1"]
    viewer.driver.find_element(By.LINK_TEXT, "cool2").click()
    viewer.until("return !document.getElementById('graph-panel').hidden")
    assert box(viewer, "scope") == "cool2" and "scope=host%3A2" in viewer.state()


def test_what_differs_on_a_host_is_compared_with_the_rest(viewer: Viewer, spark_page: Path) -> None:
    show(viewer, spark_page, "hosts")
    row = viewer.driver.find_element(By.CSS_SELECTOR, "#hosts-panel tbody tr")
    assert row.text.startswith("worker08.prod.example")
    assert "Pattern.sequence 43.1 % here, 15.5 % elsewhere" in row.text.replace("\u202f", " ")
    row.find_element(By.XPATH, ".//li/button[.='Pattern.sequence']").click()
    viewer.until("return !document.getElementById('compare-panel').hidden")
    assert box(viewer, "scope") == "worker08.prod.example"
    assert box(viewer, "compare-with") == "All but worker08.prod.example"
    assert [name.rsplit("/", 1)[-1] for name in names(viewer, "changes", 4)] == ["Pattern.sequence"]
    viewer.canvas = "compare-canvas"
    assert is_match(viewer.color(0.3, 11))


def test_any_host_is_compared_with_the_rest(viewer: Viewer, page: Path) -> None:
    show(viewer, page, "hosts")
    viewer.driver.find_element(By.CSS_SELECTOR, "[aria-label='Compare cool1 with the rest']").click()
    viewer.until("return !document.getElementById('compare-panel').hidden")
    assert box(viewer, "compare-with") == "All but cool1"
    assert rows_by_name(viewer)["d"] == ["+45.0 points", "+45.0 points", "35.0 %", "80.0 %"]


def test_the_run_is_a_view_of_its_own(viewer: Viewer, page: Path) -> None:
    show(viewer, page, "run")
    run = viewer.text("run-panel")
    assert "hprofiler -f 300 -t 60 -j spark-executor -H hosts.txt" in run
    assert "3 of 3 processes on 3 of 3 hosts" in run
    assert "sampled with ctimer" in run and "sysctl kernel.perf_event_paranoid=1" in run


def test_hosts_named_by_address_sort_by_it(viewer: Viewer, tmp_path: Path) -> None:
    hosts = {"10.0.0.10": 1_000_002, "10.0.0.9": 1_000_003, "10.0.0.2": 1_000_001}
    made = [MadeHost(name, {7: f"a {count}\n"}) for name, count in hosts.items()]
    show(viewer, make_report(make_run(tmp_path / "run", made).path).page, "hosts")
    head(viewer, "Host").click()
    assert host_names(viewer) == ["10.0.0.2", "10.0.0.9", "10.0.0.10"]
    head(viewer, "Samples").click()
    assert host_names(viewer) == ["10.0.0.9", "10.0.0.10", "10.0.0.2"]


def host_names(viewer: Viewer) -> List[str]:
    cells = viewer.driver.find_elements(By.CSS_SELECTOR, "#hosts-panel tbody td:first-child")
    return [cell.text for cell in cells]


def head(viewer: Viewer, label: str) -> WebElement:
    return viewer.driver.find_element(By.XPATH, f"//*[@id='hosts-panel']//th/button[.='{label}']")


def test_one_process_has_nothing_to_be_compared_with(viewer: Viewer, tmp_path: Path) -> None:
    path = tmp_path / "one.html"
    write_page(Profile.from_bytes(b"a;b 1\n", "folded"), path, "one")
    viewer.open(path, "view=compare")
    assert "There is nothing to compare with" in viewer.text("compare-panel")


def box(viewer: Viewer, id: str) -> str:
    return str(viewer.element(f"{id}-input").get_attribute("value"))


def choose(viewer: Viewer, id: str, typed: str, down: int) -> None:
    """Types into a box and takes what is found, that many below the first."""
    viewer.element(f"{id}-input").click()
    viewer.element(f"{id}-input").send_keys(Keys.CONTROL, "a")
    viewer.element(f"{id}-input").send_keys(typed)
    viewer.press(*[Keys.ARROW_DOWN] * down, Keys.ENTER)


def is_match(color: List[int]) -> bool:
    """Violet: what a search found."""
    red, green, blue = color
    return red > green + 20 and blue > green + 20


def is_red(color: List[int]) -> bool:
    return color[0] > color[2] + 40


def is_blue(color: List[int]) -> bool:
    return color[2] > color[0] + 40
