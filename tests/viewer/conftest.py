"""One Chromium for all tests of the viewer; pages made by the report from made-up runs."""

from __future__ import annotations

from pathlib import Path
from typing import Iterator

import pytest
from selenium import webdriver

from hprofiler.report import make_report
from tests.viewer.browser import Viewer, browser_programs, chromium
from tests.viewer.made_run import spark_run


@pytest.fixture(scope="session")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[webdriver.Chrome]:
    missing = browser_programs()
    if missing:
        pytest.skip(f"the viewer is tested in a real Chromium, and there is no {' and no '.join(missing)}")
    with chromium(tmp_path_factory.mktemp("chromium")) as driver:
        yield driver


@pytest.fixture
def viewer(driver: webdriver.Chrome) -> Iterator[Viewer]:
    """A viewer in light mode that must have nothing to complain about at the end."""
    prefer(driver, "light")
    driver.set_window_size(1400, 1000)
    viewer = Viewer(driver)
    yield viewer
    assert viewer.complaints() == []


@pytest.fixture(scope="session")
def spark_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of the made-up Spark run."""
    return make_report(spark_run(tmp_path_factory.mktemp("spark") / "run").path).page


def prefer(driver: webdriver.Chrome, scheme: str) -> None:
    """What the system says it likes: "dark" or "light"."""
    features = [
        {"name": "prefers-color-scheme", "value": scheme},
        {"name": "prefers-reduced-motion", "value": "reduce"},
    ]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
