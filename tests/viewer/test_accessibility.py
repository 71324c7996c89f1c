"""axe-core checks every view, in light and dark, with menus and dialogs. Pictures of all are kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.viewer import axe
from tests.viewer.browser import Viewer
from tests.viewer.conftest import prefer
from tests.viewer.made_run import MadeHost
from tests.viewer.page_objects import run_page, search

pytestmark = pytest.mark.nightly

METHOD = quote("com/example/etl/AvroUtil.toAvroIdentifier")
VIEWS = {
    "graph": "",
    "searched": "q=AvroUtil",
    "reversed": "view=reversed",
    "sandwich": f"view=sandwich&method={METHOD}",
    "methods": "view=methods",
    "hosts": "view=hosts",
    "compare": "view=compare&scope=host:7&with=rest:host:7",
    "run": "view=run",
}


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("view", VIEWS)
def test_every_view(viewer: Viewer, spark_page: Path, view: str, scheme: str) -> None:
    prefer(viewer.driver, scheme)
    viewer.open(spark_page, VIEWS[view])
    viewer.picture(f"{view}-{scheme}")
    assert axe.faults(viewer.driver) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("state", ["", "&time=3.5-5.2&q=odd", "&event=lock&time=2-3&band=21"])
def test_the_heat_map(viewer: Viewer, timed_page: Path, state: str, scheme: str) -> None:
    prefer(viewer.driver, scheme)
    viewer.open(timed_page, f"view=time{state}")
    viewer.picture(f"time-{scheme}{state.replace('&', '-')}")
    assert axe.faults(viewer.driver) == []


OVER: dict[str, Callable[[Viewer], object]] = {
    "scopes": lambda viewer: viewer.element("scope-input").click(),
    "save": lambda viewer: viewer.element("save-button").click(),
    "keys": lambda viewer: viewer.press("?"),
    "tooltip": lambda viewer: viewer.hover(0.5, 2),
    "wrong": lambda viewer: search(viewer, "(", regexp=True),
}


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("over", OVER)
def test_what_opens_over_it(viewer: Viewer, spark_page: Path, over: str, scheme: str) -> None:
    prefer(viewer.driver, scheme)
    viewer.open(spark_page)
    OVER[over](viewer)
    viewer.picture(f"{over}-{scheme}")
    assert axe.faults(viewer.driver) == []


def test_on_a_phone(viewer: Viewer, spark_page: Path) -> None:
    viewer.driver.set_window_size(500, 900)
    viewer.open(spark_page)
    viewer.picture("narrow")
    assert axe.faults(viewer.driver) == []
    wide = "return document.documentElement.scrollWidth > document.documentElement.clientWidth"
    assert not viewer.driver.execute_script(wide)


@pytest.fixture
def phone(viewer: Viewer) -> Iterator[Viewer]:
    """Narrower than a window can be."""
    metrics = {"width": 390, "height": 844, "deviceScaleFactor": 2, "mobile": True}
    viewer.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    yield viewer
    viewer.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_all_tabs_are_seen_on_a_phone(phone: Viewer, spark_page: Path) -> None:
    phone.open(spark_page, "view=run")
    assert phone.driver.execute_script(
        "return [...document.querySelectorAll('#views button')].every((tab) => {"
        " const box = tab.getBoundingClientRect(); return box.left >= 0 && box.right <= innerWidth; })"
    )


@pytest.mark.parametrize("view", ["graph", "methods", "compare"])
def test_names_of_methods_are_seen_on_a_phone(phone: Viewer, spark_page: Path, view: str) -> None:
    phone.open(spark_page, VIEWS[view])
    phone.until("return document.querySelectorAll('td.name').length > 0")
    hidden = phone.driver.execute_script(
        "return [...document.querySelectorAll('td.name')].filter((name) => name.offsetParent"
        " && name.getBoundingClientRect().right > innerWidth).map((name) => name.innerText)"
    )
    phone.picture(f"phone-{view}")
    assert hidden == []
    assert axe.faults(phone.driver) == []


@pytest.mark.parametrize("view", ["graph", "sandwich", "methods", "compare"])
def test_what_can_be_saved_is_seen_on_a_phone(phone: Viewer, spark_page: Path, view: str) -> None:
    phone.open(spark_page, VIEWS[view])
    phone.element("save-button").click()
    left, right = phone.driver.execute_script(
        "const box = document.getElementById('save-list').getBoundingClientRect();"
        "return [box.left, box.right]"
    )
    assert 0 <= left < right <= 390


def test_the_list_of_keys_begins_at_its_beginning(phone: Viewer, spark_page: Path) -> None:
    """Also where it is longer than the window."""
    low = {"width": 700, "height": 300, "deviceScaleFactor": 2, "mobile": False}
    phone.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", low)
    phone.open(spark_page)
    phone.press("?")
    title = phone.element("keys-title").rect
    assert phone.element("keys").rect["y"] < title["y"] < 300


def test_a_page_without_samples(viewer: Viewer, tmp_path: Path) -> None:
    hosts = [MadeHost("n1").fails("failed", "no route to host", "check name and network")]
    viewer.driver.get(run_page(tmp_path, hosts).as_uri())
    viewer.picture("without-samples")
    assert axe.faults(viewer.driver) == []


def test_faults_are_found(viewer: Viewer, spark_page: Path) -> None:
    viewer.open(spark_page)
    viewer.driver.execute_script("document.body.append(new Image())")
    assert "image-alt" in axe.faults(viewer.driver)[0]
