"""Lanes of processes: what part of a job was recorded."""

from __future__ import annotations

from pathlib import Path

import pytest
from selenium.webdriver.common.keys import Keys

from hprofiler.report import make_report
from tests.viewer import axe
from tests.viewer.browser import Viewer
from tests.viewer.conftest import prefer
from tests.viewer.made_run import MadeHost, changed, make_run

ZERO = 1_780_000_000
SLOTS = 3
BARS = "#run .bar:not(.chart-names .bar)"


def mappers_run(path: Path, hosts: int, of_each: int) -> Path:
    """The page of map tasks of about ten seconds in three slots a host; one more was missed. The last one of
    each host runs longer than the recording."""
    made = [
        MadeHost(f"node{host}", {100 * host + number: "a;b 70\n" for number in range(1, of_each + 1)})
        for host in range(hosts)
    ]
    folder = make_run(path, made)
    parts = []
    with changed(folder) as content:
        for number, host in enumerate(content["hosts"]):
            for place, one in enumerate(host["recordings"]):
                line, slot = divmod(place, SLOTS)
                start, seconds, name = 10.0 * line + slot, 9.5, f"m_{number:03}{place:03}_0"
                labels = {"attempt": name}
                one["process"].update(label=f"task {name}", labels=labels)
                one.update(joined=start + 1, seconds=seconds - 1, age=1.0, cpu_before=0.5)
                one.update(totals={"samples": 70, "cpu": 8 * 10**9}, cpu_seconds=8.0)
                one["times"] = {"start": round((ZERO + start + 1) * 1e6), "width": 20_000}
                if place + 1 < of_each:
                    host["outcomes"].append(
                        {"host": host["name"], "pid": one["process"]["pid"], "gone": True}
                    )
                times = {"started": ZERO + start, "ended": ZERO + start + seconds}
                node = host["name"]
                parts.append(
                    {"name": f"task {name}", "host": node, "labels": labels, "cpu_seconds": 9.0, **times}
                )
        missed = {"name": "task m_999999_0", "host": "node0", "labels": {"attempt": "m_999999_0"}}
        parts.append({**missed, "cpu_seconds": 9.0, "started": ZERO + 4, "ended": ZERO + 9})
        content["job"] = {"manager": "mapreduce", "cpu_seconds": 9.0 * len(parts), "parts": parts}
    return make_report(path).page


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return mappers_run(tmp_path_factory.mktemp("seen") / "run", 3, 6)


def test_lanes_say_when_processes_were_recorded(viewer: Viewer, page: Path) -> None:
    viewer.open(page, "view=run")
    chips = viewer.first(".chips").get_attribute("textContent") or ""
    assert "84.2\u202f% of the CPU time of the job's tasks seen" in chips
    assert viewer.first("#run h2").text == "What was recorded"
    assert "saw 84.2 % of the CPU time of the job's tasks" in viewer.first("#run .lead").text
    assert viewer.texts("#run text.lane") == ["node0", "node1", "node2"]
    states = [one.get_attribute("class").split()[1:] for one in viewer.all(BARS)]
    assert [states.count(one) for one in (["ended"], [], ["missed"])] == [15, 3, 1]
    assert len(viewer.all(f"{BARS} .before")) == 18
    assert viewer.texts("#run .chart-names li") == [
        "recorded",
        "all that lived",
        "recorded until the end of the recording",
        "until it ended",
        "lived, not recorded yet",
        "not recorded",
    ]
    assert viewer.texts("#table-missed td.name") == ["task m_999999_0"]


def test_they_are_read_by_keys(viewer: Viewer, page: Path) -> None:
    viewer.open(page, "view=run")
    chart, readout = viewer.first("#run .picture"), "#run .readout"
    chart.send_keys(Keys.ARROW_RIGHT)
    assert viewer.texts(readout)[0].endswith("recorded 0, all that lived 3")
    chart.send_keys(Keys.ARROW_DOWN)
    said = viewer.texts(readout)[0]
    assert said.startswith(
        "task m_000000_0 (pid 1), started after 0 s, recorded from 1 s to 9.5 s, until it ended"
    )
    assert said.endswith("CPU 8 s of 8.5 s")


def test_of_many_the_first_lines_are_shown_and_all_on_demand(viewer: Viewer, tmp_path: Path) -> None:
    viewer.open(mappers_run(tmp_path / "run", 30, 6), "view=run")
    assert len(viewer.all("#run text.lane")) == 20
    button = viewer.first("#run .chart-frame .controls button")
    assert button.text == "Show all 181"
    button.click()
    assert len(viewer.all("#run text.lane")) == 30 and len(viewer.all(BARS)) == 181
    assert button.text == "Show fewer"


def test_they_are_printed_below_another_view(viewer: Viewer, page: Path) -> None:
    viewer.open(page, "view=graph")
    viewer.driver.execute_script("window.dispatchEvent(new Event('beforeprint'))")
    assert len(viewer.driver.find_elements("css selector", BARS)) == 19


@pytest.mark.parametrize("width", [400, 1300])
def test_it_is_never_wider_than_the_window(viewer: Viewer, page: Path, width: int) -> None:
    metrics = {"width": width, "height": 844, "deviceScaleFactor": 1, "mobile": width < 500}
    viewer.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    try:
        for scheme in ("light", "dark"):
            prefer(viewer.driver, scheme)
            viewer.open(page, "view=run")
            viewer.until("return document.querySelector('#run .picture svg')")
            wide = "return document.documentElement.scrollWidth > document.documentElement.clientWidth"
            assert not viewer.driver.execute_script(wide)
            assert axe.faults(viewer.driver) == []
            viewer.picture(f"seen-{scheme}-{width}")
    finally:
        viewer.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
