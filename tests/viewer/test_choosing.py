"""Events, scopes and threads, chosen by mouse, by typing and from a link."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select

from hprofiler._flamegraph import Profile, WorkTable, category_label
from tests.viewer.browser import Viewer, plain
from tests.viewer.made_run import MadeHost
from tests.viewer.page_objects import choose, listed_options, run_page, table

# Of 300 CPU samples 80 are in hot, all on n1; 4 MiB are allocated, 1 of them on n1.
Events = dict[int, str | bytes]
N1: Events = {
    101: "[worker];a;hot_[j] 60\n[GC Thread#N];gc 40\n",
    102: "[worker];a;hot_[j] 20\n[worker];a;cold_[j] 80\n",
}
N2: Events = {201: "[worker];a;cold_[j] 100\n"}
ALLOCATED: list[Events] = [{101: "a;make 1048576\n"}, {201: "a;make 3145728\n"}]


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    hosts = [
        MadeHost(name, processes, events={"alloc": allocated})
        for name, processes, allocated in zip(("n1", "n2"), (N1, N2), ALLOCATED, strict=False)
    ]
    return run_page(tmp_path_factory.mktemp("choosing"), hosts, "cpu", "alloc", "lock")


def test_each_scope_has_its_own_numbers(viewer: Viewer, page: Path) -> None:
    viewer.open(page, "q=hot")
    viewer.until_text("search-result", "26.7 % matched")
    assert {"n1", "n2", "Cluster, sum", "Cluster, average"} <= set(listed_options(viewer, "scope"))
    for typed, share in (
        ("average", "20.0 %"),  # of 40 % and none
        ("n1", "40.0 %"),
        ("(101)", "60.0 %"),
        ("102", "20.0 %"),
        ("n2", "no match"),
        ("cluster sum", "26.7 %"),
        ("executor 2", "20.0 %"),  # a group by label
    ):
        choose(viewer, "scope", typed)
        viewer.until_text("search-result", share)
    assert "scope=label%3Aexecutor%3D2" in viewer.state()
    assert viewer.text("scope-note").startswith("100 of 300 samples, 33.3 %")


def test_threads_narrow_every_scope(viewer: Viewer, page: Path) -> None:
    viewer.open(page, "q=hot")
    threads = Select(viewer.element("thread"))
    assert {option.text for option in threads.options} == {"All threads", "worker", "GC Thread#N"}
    threads.select_by_visible_text("worker")
    viewer.until_text("search-result", "30.8 % matched")  # 80 of 260
    choose(viewer, "scope", "(101)")
    viewer.until_text("search-result", "100 % matched")
    threads.select_by_visible_text("GC Thread#N")
    viewer.until_text("search-result", "no match")
    assert viewer.hover(0.5, 1).splitlines()[0] == "gc"


def test_shares_of_a_group_of_threads(viewer: Viewer, page: Path) -> None:
    viewer.open(page)
    threads = Select(viewer.element("thread"))
    threads.select_by_visible_text("worker")
    viewer.until_text("scope-note", "260 of 300 samples, 86.7 %")
    choose(viewer, "scope", "n1")
    viewer.until_text("scope-note", "160 of 260 samples, 61.5 %")
    viewer.element("scope-input").click()
    assert "61.5 %" in viewer.text("scope-list")
    viewer.press(Keys.ESCAPE)
    choose(viewer, "scope", "average")
    viewer.until_text("scope-note", "equal weight for every host.")
    threads.select_by_visible_text("GC Thread#N")
    viewer.until_text("scope-note", "equal weight for every host, of the 1 with samples.")


def test_scopes_without_samples_are_not_compared(viewer: Viewer, page: Path) -> None:
    viewer.open(page, "view=compare&event=alloc&scope=host:0&with=thread:0")
    assert viewer.element("compare-with-input").get_attribute("value") == "All but n1"
    viewer.follow("view=compare&scope=host:0")
    Select(viewer.element("thread")).select_by_visible_text("GC Thread#N")
    viewer.element("compare-with-input").click()
    assert "n2" not in viewer.texts("#compare-with-list .option bdi")


def test_each_event_has_its_own_units(viewer: Viewer, page: Path) -> None:
    viewer.open(page)
    assert "300 samples · 1.0 s · 0.02 cores" in viewer.hover(0.5, 0)
    first, second, _ = viewer.element("events").find_elements(By.TAG_NAME, "button")
    second.click()
    viewer.until("return location.hash.includes('event=alloc')")
    tip = viewer.hover(0.5, 2)
    assert tip.splitlines()[0] == "make" and "4 MiB · 68.3 KiB/s" in tip
    assert "allocated memory" in viewer.text("frame-hint")
    assert not viewer.element("thread").is_displayed()
    choose(viewer, "scope", "n2")
    viewer.until_text("scope-note", "3 of 4 MiB, 75.0 %")
    first.click()
    viewer.until_text("scope-note", "100 of 300 samples")
    assert viewer.hover(0.5, 2).splitlines()[0] == "cold"


def test_an_event_without_samples_says_so(viewer: Viewer, page: Path) -> None:
    viewer.open(page)
    cpu, _, lock = viewer.element("events").find_elements(By.TAG_NAME, "button")
    for view in ("graph", "time", "reversed", "sandwich", "methods", "hosts", "compare", "run"):
        viewer.follow(f"view={view}&scope=host:0&q=hot")
        lock.click()
        assert "event=lock" in viewer.state()
        assert viewer.text("explorer").splitlines()[-1] == "There are no samples of lock waits."
        for hidden in ("views", "tools", "scope", "status", "legend", f"{view}-panel"):
            assert not viewer.element(hidden).is_displayed(), hidden
        cpu.click()
        assert "event=lock" not in viewer.state()
        assert viewer.element(f"{view}-panel").is_displayed() and viewer.element("views").is_displayed()


def test_unknown_names_in_a_link_are_reported(viewer: Viewer, page: Path) -> None:
    viewer.open(page, "event=nothing&scope=host:7")
    assert viewer.text("scope-note").startswith(
        "The link's event is not on this page. Shown instead: CPU time. "
        "The link's scope is not on this page. Shown instead: Cluster, sum. "
    )
    choose(viewer, "scope", "n1")
    viewer.element("events").find_elements(By.TAG_NAME, "button")[1].click()
    viewer.until("return location.hash.includes('event=alloc')")
    assert "link's" not in viewer.text("scope-note")


def test_the_summary_is_that_of_the_event(viewer: Viewer, page: Path) -> None:
    def found() -> list[str | None]:
        sections = viewer.all("section.of-event")
        return [one.get_attribute("data-event") for one in sections if one.is_displayed()]

    viewer.open(page)
    assert found() == ["0"]
    viewer.follow("event=alloc")
    assert found() == ["1"]


def test_the_list_narrows_as_one_types(viewer: Viewer, page: Path) -> None:
    viewer.open(page)
    box = viewer.element("scope-input")
    box.click()
    assert box.get_attribute("aria-expanded") == "true"
    everything = len(viewer.all("#scope-list .option"))
    box.send_keys("n2")
    options = viewer.all("#scope-list .option")
    assert 0 < len(options) < everything and all("n2" in option.text for option in options)
    active = viewer.element(str(box.get_attribute("aria-activedescendant")))
    assert active == options[0] and "33.3 %" in plain(active.text)
    box.send_keys("zzz")
    assert "No match" in viewer.text("scope-list")
    box.send_keys(Keys.ESCAPE)
    assert box.get_attribute("value") == "Cluster, sum" and viewer.state() == ""


def test_colours_by_package(viewer: Viewer, spark_page: Path) -> None:
    viewer.open(spark_page)
    by_kind = viewer.color(0.3, 3)
    viewer.element("color").click()
    viewer.until_text("legend", "org.apache.spark")
    assert viewer.color(0.3, 3) != by_kind
    assert "java.util.regex" in viewer.text("legend") and "Java, inlined" not in viewer.text("legend")
    viewer.element("color").click()
    viewer.until_text("legend", "Java, inlined")
    assert viewer.color(0.3, 3) == by_kind


def test_colours_by_category_are_those_of_the_core(viewer: Viewer, tmp_path: Path) -> None:
    """The page applies the same rules: the legend has the same shares."""
    stacks = {
        "com/acme/Job.run_[j];com/google/gson/Gson.toJson_[j];java/util/Arrays.copyOf_[j]": 30,
        "com/acme/Job.run_[j];java/lang/String.concat_[j]": 20,
        "com/acme/Job.run_[j];read;ksys_read_[k];copy_to_user_[k]": 15,
        "com/acme/Job.run_[j];do_syscall_64_[k]": 5,
        "start_thread;WorkerThread::run;memcpy": 12,
        "org/apache/spark/rdd/RDD.iterator_[j]": 10,
        "org/apache/spark/rdd/RDD.iterator_[j];com/acme/Part.next_[i]": 8,
    }
    text = "".join(f"{stack} {count}\n" for stack, count in stacks.items())
    viewer.open(run_page(tmp_path, [MadeHost("n1", {7: text})]))
    viewer.press("k")
    viewer.until_text("legend", "JSON")
    path = tmp_path / "same.folded"
    path.write_text(text)
    sums = WorkTable().sums(Profile.open(path))
    shares = {category_label(code): value for code, _, _, value in sums}
    assert len(shares) == 7 and shares["JSON"] == 30
    legend = viewer.text("legend")
    for name, share in shares.items():
        assert re.search(rf"{re.escape(name)}\s+{share}\.0 %", legend), (name, share, legend)


def test_the_legend_has_all_colours_and_classes(viewer: Viewer, tmp_path: Path) -> None:
    allocated = "a/B.run_[0];a/B.copy_[i];byte[]_[i] 30\na/B.run_[0];java.lang.String_[k] 10\n"
    host = MadeHost(
        "n1", {1: "a/B.run_[0];[libc.so.6] 10\na/B.run_[j];nop 30\n"}, events={"alloc": {1: allocated}}
    )
    viewer.open(run_page(tmp_path, [host], "cpu", "alloc"))
    by_itself = {
        "Native": "75.0 %",
        "Unknown": "25.0 %",
        "Java, JIT-compiled": "0 %",
        "Java, interpreted": "0 %",
    }
    assert list(legend(viewer).items()) == list(by_itself.items()), "they add up to all there is"
    items = viewer.all("#legend li")
    assert items[0].text == "Self:"
    assert plain(str(items[3].get_attribute("title"))) == "0 % self; on 75.0 % of all stacks"
    viewer.follow("event=alloc")
    assert legend(viewer) == {"Class": "100 %", "Java, interpreted": "0 %", "Java, inlined": "0 %"}
    for place in ((0.5, 3), (0.9, 2)):
        assert viewer.hover(*place).splitlines()[-1].split(" · ")[0] == "Class"
    viewer.element("view-methods").click()
    kinds = {row[2]: row[3] for row in table(viewer, "methods")}
    assert kinds == {"a.B.run": "Java, interpreted", "a.B.copy": "Java, inlined"}
    assert [row[1] for row in table(viewer, "classes")] == ["byte[]", "java.lang.String"]


def test_frames_of_python_have_a_colour_of_their_own(viewer: Viewer, tmp_path: Path) -> None:
    stacks = "run (etl.py);Frame.apply (pandas/core/frame.py) 30\nrun (etl.py) 10\na/B.run 10\n"
    viewer.open(run_page(tmp_path, [MadeHost("n1", {7: stacks})]))
    assert legend(viewer) == {"Python": "80.0 %", "Java": "20.0 %"}
    viewer.follow("color=package")
    assert legend(viewer) == {"pandas.core.frame": "60.0 %", "etl": "20.0 %", "a": "20.0 %"}


def test_the_legend_sums_up_small_parts(viewer: Viewer, tmp_path: Path) -> None:
    packages = "".join(f"org/p{number:02}/a/Job.run {100 if number < 14 else 5}\n" for number in range(20))
    viewer.open(run_page(tmp_path, [MadeHost("n1", {7: packages})]), "color=package")
    shares = legend(viewer)
    assert list(shares.items())[-1] == ("6 others", "2.1 %") and len(shares) == 15


def legend(viewer: Viewer) -> dict[str, str]:
    texts = viewer.texts("#legend li:not(:first-child)")
    return {label: f"{share} %" for label, share in (text[:-2].rsplit(" ", 1) for text in texts)}
