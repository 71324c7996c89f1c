"""The view Work: bars of categories."""

from __future__ import annotations

from pathlib import Path

from selenium.webdriver.common.by import By

from tests.viewer import axe
from tests.viewer.browser import Viewer
from tests.viewer.made_run import MadeHost
from tests.viewer.page_objects import run_page

JOB, JSON = "com/acme/Job.run_[j]", "com/acme/Job.run_[j];com/google/gson/Gson.toJson_[j]"


def test_bars_of_hosts_and_processes_lead_to_their_flame_graphs(viewer: Viewer, tmp_path: Path) -> None:
    hosts = [
        MadeHost("n1", {7: f"{JOB} 30\n{JSON} 10\n"}),
        MadeHost("n2", {8: f"{JOB} 20\n", 9: f"{JSON} 40\n"}),
    ]
    viewer.open(run_page(tmp_path, hosts))
    viewer.press("o")
    text = viewer.text("work-panel").replace("\u202f", " ")
    for said in ("application code 50.0 %", "JSON 50.0 %", "Hosts", "Processes", "pid 9"):
        assert said in text, (said, text)
    assert axe.faults(viewer.driver) == []
    bars = viewer.driver.find_elements(By.CSS_SELECTOR, "#work-panel .bar")
    # The whole, two hosts, three processes; of n2 two thirds are JSON.
    assert len(bars) == 6
    widest = bars[1].find_elements(By.TAG_NAME, "span")[0 if text.index("JSON") < text.index("app") else 1]
    assert "JSON 66.7" in str(widest.get_attribute("title"))
    assert abs(widest.size["width"] / bars[1].size["width"] - 2 / 3) < 0.02
    viewer.driver.find_elements(By.CSS_SELECTOR, "#work-panel .name button")[1].click()
    assert "scope=host%3A1" in viewer.state() and "color=category" in viewer.state()
    viewer.until_text("legend", "JSON")
