"""One Chromium for all tests of the viewer; pages made by the report from made-up runs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from selenium import webdriver

from hprofiler._flamegraph import Profile
from hprofiler.report import make_report, write_page
from tests.needed import lacking
from tests.viewer.browser import Viewer, browser_programs, chromium
from tests.viewer.made_run import MadeHost, make_run, spark_run

# b is recursive and runs in two tiers; of 100 samples 80 are under b and 50 end in c.
SMALL = "a;b_[0];c_[j] 30\na;b_[j];b_[j];c_[j] 20\na;b_[j];d 30\nx;y 15\nx 5\n"


@pytest.fixture(scope="session")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[webdriver.Chrome]:
    missing = browser_programs()
    if missing:
        lacking(f"the viewer is tested in a real Chromium, and there is no {' and no '.join(missing)}")
    with chromium(tmp_path_factory.mktemp("chromium")) as driver:
        yield driver


@pytest.fixture
def viewer(driver: webdriver.Chrome) -> Iterator[Viewer]:
    """A viewer in light mode; at the end the console must have no messages."""
    prefer(driver, "light")
    driver.set_window_size(1400, 1000)
    viewer = Viewer(driver)
    yield viewer
    assert viewer.complaints() == []


@pytest.fixture(scope="session")
def spark_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of the made-up Spark run."""
    return make_report(spark_run(tmp_path_factory.mktemp("spark") / "run").path).page


@pytest.fixture(scope="session")
def small_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    page = tmp_path_factory.mktemp("small") / "small.html"
    write_page(Profile.from_bytes(SMALL.encode(), "folded"), page, "small")
    return page


@pytest.fixture(scope="session")
def two_hosts_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A host of 300 samples, all but 30 in hot, and one of 100 samples with 30 in hot."""
    hosts = [
        MadeHost("big", {1: "a;hot 270\na;cold 30\n"}),
        MadeHost("small", {2: "a;hot 30\na;cold 60\nz 10\n"}),
    ]
    return make_report(make_run(tmp_path_factory.mktemp("two") / "run", hosts).path).page


def prefer(driver: webdriver.Chrome, scheme: str, motion: bool = False) -> None:
    """Set the system's preferences: "dark" or "light", and motion."""
    features = [
        {"name": "prefers-color-scheme", "value": scheme},
        {"name": "prefers-reduced-motion", "value": "no-preference" if motion else "reduce"},
    ]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
