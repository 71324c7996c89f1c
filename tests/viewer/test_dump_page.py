"""The page of a dump: what matters most, threads without the idle ones, tables, texts."""

from __future__ import annotations

from pathlib import Path

import pytest

from hprofiler.model import Outcome, Status
from hprofiler.report.dump import make_dump_report
from tests.unit.dumps import Thread, folder, pool, task
from tests.viewer import axe
from tests.viewer.browser import Viewer
from tests.viewer.conftest import prefer


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    lock = ("com.acme.Cache.get(Cache.java:2)", "com.acme.Job.map(Job.java:9)")
    keeper = Thread("keeper <b>", ("com.acme.Cache.load(Cache.java:1)",), held=1, number=77)
    stuck = [task(number, lock, state="BLOCKED", wanted=1, number=number + 1) for number in range(20)]
    looks = [[keeper, *stuck, *pool(30)]] * 2
    others = [[task(50, ("com.acme.Job.read(Job.java:3)",)), *pool(30)]] * 2
    made = folder(
        tmp_path_factory.mktemp("dump") / "d",
        {"executor 1": looks, "executor 2": others, "executor <3>": others},
        {"executor 1": [{77: 1.0, 1: 0.0}, {77: 2.9, 1: 0.0}]},
    )
    return make_dump_report(made.path).page


def test_the_graph_shows_threads_that_are_not_idle(viewer: Viewer, page: Path) -> None:
    viewer.open(page)
    assert viewer.first("h1").text.startswith("20 tasks of executor 1 on n1 (pid 100) wait for a lock")
    assert "116 threads, 93 of them idle" in viewer.texts(".chips li")[1]
    assert "23 threads" in viewer.hover(0.5, 0)
    viewer.still()
    viewer.picture("dump-graph")
    viewer.element("view-methods").click()
    assert "com.acme.Cache.get" in " ".join(viewer.texts("#methods-panel td"))


def test_the_tables_lead_to_the_graph_and_to_texts(viewer: Viewer, page: Path) -> None:
    viewer.open(page)
    tab = viewer.element("view-spark")
    assert tab.text == "Threads"
    tab.click()
    assert viewer.texts("#table-groups td.name bdi")[0] == "waits for a monitor in com.acme.Cache.get"
    assert viewer.texts("#table-locks td.name") == ["com.acme.Lock 0x0000000000000001"]
    links = [link.get_attribute("href") for link in viewer.all("ul.files a")]
    assert len(links) == 6
    assert all((page.parent / link.partition("/d/")[2]).is_file() for link in map(str, links))
    viewer.first("#table-groups .beside-name").click()
    assert "q=%22com%2Facme%2FCache.get%22" in viewer.state()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [400, 1300])
def test_it_fits_and_is_accessible(viewer: Viewer, page: Path, width: int, scheme: str) -> None:
    metrics = {"width": width, "height": 844, "deviceScaleFactor": 1, "mobile": width < 500}
    viewer.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    try:
        prefer(viewer.driver, scheme)
        viewer.open(page, "view=spark")
        assert axe.faults(viewer.driver) == []
        wide = "return document.documentElement.scrollWidth > document.documentElement.clientWidth"
        assert not viewer.driver.execute_script(wide)
        viewer.picture(f"dump-{scheme}-{width}")
    finally:
        viewer.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_where_no_process_answered_the_page_says_so(viewer: Viewer, tmp_path: Path) -> None:
    silent = Outcome("n1", Status.FAILED, "fetch", "it does not answer", pid=9, code="no-answer")
    made = folder(tmp_path / "d", {}, outcomes=[silent])
    viewer.open(make_dump_report(made.path).page)
    assert viewer.first("h1").text == "No process answered: there is nothing to see"
    assert "it does not answer" in viewer.first("body").text
