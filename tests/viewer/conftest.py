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
from tests.viewer.made_run import MadeHost, spark_run
from tests.viewer.made_time import timed_run
from tests.viewer.page_objects import folded_page, run_page

# b is recursive and runs in two tiers; of 100 samples 80 are under b and 50 end in c.
SMALL = "a;b_[0];c_[j] 30\na;b_[j];b_[j];c_[j] 20\na;b_[j];d 30\nx;y 15\nx 5\n"

# Of 300 samples 120 are under b (its recursion counted once), all in c; 150 are in d, 30 in y.
HOSTS = {
    "hot": "a;b_[0];c_[j] 60\na;b_[j];b_[j];c_[j] 20\nx;y 20\n",
    "cool1": "a;b_[j];c_[j] 20\na;d 80\n",
    "cool2": "a;b_[j];c_[j] 20\na;d 70\nx;y 10\n",
}


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


@pytest.fixture
def downloads(driver: webdriver.Chrome, tmp_path: Path) -> Iterator[Path]:
    """The folder that the browser saves into."""
    folder = tmp_path / "downloads"
    folder.mkdir()
    driver.execute_cdp_cmd("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(folder)})
    yield folder
    driver.execute_cdp_cmd("Browser.setDownloadBehavior", {"behavior": "default"})


@pytest.fixture(scope="session")
def spark_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of the made-up Spark run."""
    return make_report(spark_run(tmp_path_factory.mktemp("spark") / "run").path).page


@pytest.fixture(scope="session")
def timed_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of the made-up run with times."""
    return make_report(timed_run(tmp_path_factory.mktemp("time") / "run").path).page


@pytest.fixture(scope="session")
def small_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    page = tmp_path_factory.mktemp("small") / "small.html"
    write_page(Profile.from_bytes(SMALL.encode(), "folded"), page, "small")
    return page


@pytest.fixture(scope="session")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three hosts, on one of which b is four times as hot as on the others. Modules override it."""
    hosts = [MadeHost(name, {pid: folded}) for pid, (name, folded) in enumerate(HOSTS.items(), 11)]
    hosts[2].fails("degraded", "sampled with ctimer", "sysctl kernel.perf_event_paranoid=1", pid=13)
    return run_page(tmp_path_factory.mktemp("three"), hosts)


@pytest.fixture(scope="session")
def wide_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A method with most samples, and 3,000 that are too narrow to be seen."""
    flat = "".join(f"caller{number};rare{number} {3 + number % 7}\n" for number in range(3000))
    return folded_page(tmp_path_factory.mktemp("wide"), f"top;big 18000\n{flat}")


@pytest.fixture(scope="session")
def two_hosts_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A host of 300 samples, all but 30 in hot, and one of 100 samples with 30 in hot."""
    hosts = [
        MadeHost("big", {1: "a;hot 270\na;cold 30\n"}),
        MadeHost("small", {2: "a;hot 30\na;cold 60\nz 10\n"}),
    ]
    return run_page(tmp_path_factory.mktemp("two"), hosts)


def prefer(driver: webdriver.Chrome, scheme: str, motion: bool = False) -> None:
    """Set the system's preferences: "dark" or "light", and motion."""
    features = [
        {"name": "prefers-color-scheme", "value": scheme},
        {"name": "prefers-reduced-motion", "value": "no-preference" if motion else "reduce"},
    ]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
