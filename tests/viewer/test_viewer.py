"""The viewer's graph, search, themes and messages."""

from __future__ import annotations

from pathlib import Path

import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

from hprofiler._flamegraph import Profile
from hprofiler.report import write_page
from tests.viewer.browser import Viewer
from tests.viewer.conftest import prefer
from tests.viewer.made_profile import made_profile
from tests.viewer.made_run import MadeHost
from tests.viewer.page_objects import choose, folded_page, name_at, run_page, search


def test_opens_from_disk_without_a_request_or_complaint(viewer: Viewer, spark_page: Path) -> None:
    viewer.open(spark_page)
    assert viewer.requests() == [spark_page.as_uri()]
    assert "AvroUtil.toAvroIdentifier" in viewer.first("h1").text
    assert viewer.first("h1 .hot").text.endswith("%")


def test_the_policy_refuses_other_scripts_and_the_network(viewer: Viewer, small_page: Path) -> None:
    viewer.open(small_page)
    viewer.driver.execute_script(
        """const s = document.createElement("script"); s.textContent = "window.intruder = true";
        document.body.append(s); const i = new Image(); i.src = "http://127.0.0.1:9/x.png";
        document.body.append(i);"""
    )
    assert viewer.driver.execute_script("return window.intruder") is None
    viewer.until("return document.images.length > 0")
    refusals = viewer.complaints()
    assert any("script-src" in line or "inline script" in line for line in refusals)
    assert any("img-src" in line for line in refusals)


def test_tooltip_shows_name_self_total_unit_and_kind(viewer: Viewer, small_page: Path) -> None:
    viewer.open(small_page)
    tip = viewer.hover(0.9, 1)
    assert tip.splitlines()[0] == "x"
    assert "Total\n20.0 %20 samples" in tip.replace(" samples", " samples").replace("% ", "%")
    assert "Self\n5.0 %5 samples" in tip.replace("% ", "%")
    assert "Native" in tip
    assert "Java, JIT-compiled" in viewer.hover(0.5, 2)
    assert "Java, interpreted" in viewer.hover(0.1, 2)


def test_zooming_glides_without_reduced_motion(viewer: Viewer, small_page: Path) -> None:
    prefer(viewer.driver, "light", motion=True)
    viewer.open(small_page)
    before = viewer.color(0.3, 1)
    viewer.click(0.9, 1)
    assert viewer.text("frame-name") == "x"
    assert name_at(viewer, 0.3, 1) == "x" and viewer.color(0.3, 1) != before
    assert name_at(viewer, 0.3, 2) == "y"
    viewer.press(Keys.ESCAPE)
    viewer.still()
    assert name_at(viewer, 0.3, 1) == "a" and viewer.color(0.3, 1) == before


def test_zoom_back_and_reset(viewer: Viewer, small_page: Path) -> None:
    viewer.open(small_page)
    assert not viewer.element("back").is_enabled()
    viewer.click(0.9, 1)
    assert "zoom=" in viewer.state()
    assert viewer.text("frame-name") == "x"
    assert "20.0 % total, 5.0 % self" in viewer.text("frame-cost")
    assert name_at(viewer, 0.3, 2) == "y"
    assert "Of view\n75.0 %" in viewer.text("tooltip")
    viewer.click(0.3, 2)
    assert viewer.text("frame-name") == "y"
    assert name_at(viewer, 0.3, 1) == "x" and "Of view" not in viewer.text("tooltip")
    viewer.element("back").click()
    viewer.until_text("frame-name", "x")
    viewer.driver.back()
    viewer.until("return location.hash === '' || location.hash === '#'")
    viewer.driver.forward()
    viewer.until_text("frame-name", "x")
    viewer.element("reset").click()
    viewer.until("return document.getElementById('frame-chosen').hidden")
    assert name_at(viewer, 0.1, 1) == "a"


def test_search_shows_the_matched_share_once(viewer: Viewer, small_page: Path) -> None:
    viewer.open(small_page)
    for query, regexp, result in (
        ("b", False, "80.0 % matched"),
        ("nothing", False, "no match"),
        ("B", False, "80.0 % matched"),
        ("c|y", True, "65.0 % matched"),
        ("^[bc]$", True, "80.0 % matched"),
        ("(", True, "not a regular expression"),
        ("(", False, "no match"),
        ('"x"', False, "20.0 % matched"),
        ('"nothing"', False, "no match"),
    ):
        assert search(viewer, query, regexp) == result, query


def test_names_are_found_as_java_writes_them(viewer: Viewer, tmp_path: Path) -> None:
    folded = "java/util/regex/Pattern.compile_[j] 50\njava.util.regex.Matcher::find 25\nread 25\n"
    viewer.open(folded_page(tmp_path, folded))
    for query, share in (
        ("java.util.regex", "75.0 % matched"),
        ('"java.util.regex.Pattern.compile"', "50.0 % matched"),
        ("java/util/regex", "75.0 % matched"),
        ('"java/util/regex/Pattern.compile"', "50.0 % matched"),
        ('"java.util.regex.Pattern"', "no match"),
    ):
        assert search(viewer, query) == share, query


def test_search_within_a_zoom_shows_both_shares(viewer: Viewer, small_page: Path) -> None:
    viewer.open(small_page)
    viewer.click(0.9, 1)
    assert search(viewer, "y") == "15.0 % matched, 75.0 % of view"
    assert search(viewer, "x") == "20.0 % matched, 100 % of view"


def test_another_scope_keeps_the_path_in_view(viewer: Viewer, two_hosts_page: Path) -> None:
    viewer.open(two_hosts_page)
    viewer.click(0.9, 2)
    assert viewer.text("frame-name") == "hot"
    choose(viewer, "scope", "small")
    viewer.until_text("frame-cost", "30.0 % total")
    assert viewer.text("frame-name") == "hot"


def test_flames_grow_from_the_bottom(viewer: Viewer, small_page: Path) -> None:
    viewer.open(small_page, "flame=1")
    rows = viewer.element("graph-canvas").size["height"] // 20
    assert name_at(viewer, 0.9, rows - 2) == "x"
    assert viewer.hover(0.9, rows - 1).splitlines()[0].startswith("small")


def test_dark_follows_the_system_until_the_reader_chooses(viewer: Viewer, small_page: Path) -> None:
    def darkness() -> tuple[str, list[int]]:
        viewer.still()
        return (
            viewer.driver.execute_script("return getComputedStyle(document.body).backgroundColor"),
            viewer.driver.execute_script(
                "const context = document.getElementById('graph-canvas').getContext('2d');"
                "return [...context.getImageData(3, 25, 1, 1).data]"
            ),
        )

    viewer.open(small_page)
    light_page, light_frame = darkness()
    prefer(viewer.driver, "dark")
    dark_page, dark_frame = darkness()
    assert light_page == "rgb(246, 247, 248)" and dark_page == "rgb(16, 18, 21)"
    assert sum(dark_frame[:3]) < sum(light_frame[:3]) - 150
    viewer.element("theme").click()
    assert darkness() == (light_page, light_frame)
    viewer.driver.refresh()
    viewer.until("return document.documentElement.dataset.ready === 'true'")
    assert darkness() == (light_page, light_frame)
    viewer.driver.execute_script("localStorage.clear()")


def test_a_run_without_samples_says_why(viewer: Viewer, tmp_path: Path) -> None:
    hosts = [
        MadeHost("a").fails("failed", "wrong host key", "ssh-keygen -R a"),
        MadeHost("b").fails("idle", "no process matches spark"),
    ]
    page = run_page(tmp_path, hosts)
    viewer.driver.get(page.as_uri())
    found = viewer.first("main").text
    assert "Nothing was recorded" in found
    assert "a: wrong host key ssh-keygen -R a" in found
    assert "b: no process matches spark" in found
    assert viewer.all("#graph-canvas") == []


def test_events_without_samples_all_say_why(viewer: Viewer, tmp_path: Path) -> None:
    page = run_page(tmp_path, [MadeHost("a").fails("failed", "no route")], "cpu", "alloc")
    viewer.driver.get(page.as_uri())
    assert viewer.texts("section.of-event h1") == ["No samples of CPU time", "No samples of allocations"]
    ids = viewer.driver.execute_script("return [...document.querySelectorAll('[id]')].map((one) => one.id)")
    assert "hosts-0" in ids and "hosts-1" in ids and len(set(ids)) == len(ids)


def test_a_stack_of_100_000_frames(viewer: Viewer, tmp_path: Path) -> None:
    stack = ";".join(f"f{depth % 7}" for depth in range(100_000))
    page = folded_page(tmp_path, f"{stack} 10\nx 10\n")
    assert page.stat().st_size < 1_000_000
    viewer.open(page)
    assert name_at(viewer, 0.9, 1) == "x"
    assert search(viewer, "f3") == "50.0 % matched"


def test_without_javascript_the_page_says_what_it_needs(viewer: Viewer, spark_page: Path) -> None:
    viewer.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        viewer.driver.get(spark_page.as_uri())
        assert "This page needs JavaScript" in viewer.first("main").text
        assert not viewer.element("search").is_displayed()
    finally:
        viewer.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


def damaged(page: Path, part: str, out: Path) -> Path:
    """The page with this part of its data cut short."""
    text = page.read_text()
    start = text.index(f'id="{part}">') + len(f'id="{part}">')
    out.write_text(f"{text[:start]}{text[start : start + 20]}{text[text.index('</script>', start) :]}")
    return out


@pytest.mark.parametrize("part", ["data", "hprofiler-page"])
def test_damage_is_reported_and_undamaged_tables_remain(
    viewer: Viewer, spark_page: Path, tmp_path: Path, part: str
) -> None:
    viewer.open(damaged(spark_page, part, tmp_path / "damaged.html"))
    assert viewer.text("failure").startswith("This page cannot be shown")
    assert not viewer.element("search").is_displayed()
    if part == "data":
        for section in ("section.of-event h1", "section.hosts", "#ledger"):
            assert viewer.first(section).is_displayed(), section


def test_pruned_frames_are_grey_and_named(viewer: Viewer, tmp_path: Path) -> None:
    page = tmp_path / "pruned.html"
    few = "a;big_[j] 70\n" + "".join(f"a;small{number}_[j] 3\n" for number in range(10))
    write_page(Profile.from_bytes(few.encode(), "folded").pruned(frames=2), page, "pruned")
    viewer.open(page)
    tip = viewer.hover(0.1, 2)
    assert tip.splitlines()[0] == "(10 smaller frames)" and "Smaller frames" in tip
    assert is_grey(viewer.color(0.1, 2)) and not is_grey(viewer.color(0.9, 2))
    assert "Smaller frames 30" in viewer.text("legend")


@pytest.mark.parametrize(
    ("event", "stacks", "kinds"),
    [
        (
            "offcpu",
            "[pool-N-thread-N];[park];a/B.run_[j] 60\n[main];c/D.read_[j];[libc.so.6] 40\n",
            {(0.2, 1): "Thread", (0.2, 3): "Unknown", (0.8, 1): "Thread", (0.8, 2): "Waiting"},
        ),
        (
            "offcpu",
            "[idle pool thread];a/B.take_[j] 60\n[sleep];c/D.nap_[j] 40\n",
            {(0.2, 1): "Idle threads", (0.8, 1): "Waiting"},
        ),
        (
            "cpu",  # threads that are called like waits
            "[idle pool thread];a/B.take_[j] 60\n[network];[disk];c/D.send_[j] 60\n",
            {(0.2, 1): "Thread", (0.8, 1): "Thread", (0.8, 2): "Unknown"},
        ),
    ],
)
def test_threads_and_waits_are_distinct(
    viewer: Viewer, tmp_path: Path, event: str, stacks: str, kinds: dict[tuple[float, int], str]
) -> None:
    page = tmp_path / "waits.html"
    write_page(made_profile(event, stacks), page, "waits")
    viewer.open(page)
    assert {place: viewer.hover(*place).splitlines()[-1] for place in kinds} == kinds


def test_amounts_have_their_units(viewer: Viewer, tmp_path: Path) -> None:
    method = "java.lang.Class.getMethods"
    host = MadeHost("h", {}, events={"alloc": {1: "a;b 524288\n"}, method: {1: "a;b 1\n"}})
    viewer.open(run_page(tmp_path, [host], "alloc", method))
    assert "512 KiB" in viewer.hover(0.5, 1)
    viewer.follow(f"event={method}")
    assert "1 call" in viewer.hover(0.4, 1) and "1 calls" not in viewer.text("tooltip")
    assert viewer.text("wider") == f"calls of {method}"


def is_grey(color: list[int]) -> bool:
    return max(color) - min(color) < 12


def test_a_tall_graph_has_a_small_picture_of_itself_that_scrolls(viewer: Viewer, tmp_path: Path) -> None:
    deep = ";".join(f"f{depth}" for depth in range(200))
    viewer.open(folded_page(tmp_path, f"{deep} 60\nf0;g 40\n"))
    assert viewer.first("#graph .minimap").is_displayed()
    map_ = viewer.first("#graph .minimap")
    ActionChains(viewer.driver).move_to_element_with_offset(
        map_, 0, map_.size["height"] // 4
    ).click().perform()
    viewer.until("return document.getElementById('graph-scroller').scrollTop > 2000")
    viewer.driver.execute_script("document.getElementById('graph-scroller').scrollTop = 0")
    viewer.still()
    viewer.click(0.9, 2)
    viewer.until("return document.querySelector('#graph .minimap').hidden")
