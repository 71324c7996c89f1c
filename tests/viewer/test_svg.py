"""The interactive SVG: zoom, search, reset, and the view in the address."""

from __future__ import annotations

from pathlib import Path

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support import expected_conditions
from selenium.webdriver.support.ui import WebDriverWait

from hprofiler._flamegraph import FlameChart, Profile
from tests.viewer.browser import Viewer

HOSTILE = "</text></g><script>window.hacked=1</script><image href=x onerror=window.hacked=1>"
FOLDED = f"a;b_[0];c_[j] 30\na;b_[j];b_[j];c_[j] 20\na;b_[j];d 30\nx;y 10\nx;{HOSTILE} 5\nx 5\n"


@pytest.fixture(params=[False, True], ids=["flame", "icicle"])
def picture(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / "cpu.svg"
    profile = Profile.from_bytes(FOLDED.encode(), "folded")
    path.write_bytes(profile.to_svg(title=HOSTILE, subtitle=HOSTILE, inverted=request.param))
    return path


def opened(viewer: Viewer, picture: Path) -> webdriver.Chrome:
    viewer.driver.get(picture.as_uri())
    viewer.complaints()
    return viewer.driver


@pytest.fixture
def svg(viewer: Viewer, picture: Path) -> webdriver.Chrome:
    return opened(viewer, picture)


def frame(svg: webdriver.Chrome, name: str) -> WebElement:
    """The frame of that name, first come."""
    script = """return [...document.querySelectorAll("#frames g")]
        .find((g) => g.textContent.startsWith(arguments[0] + " ("))"""
    element = svg.execute_script(script, name)
    assert element is not None, name
    return element


def width(svg: webdriver.Chrome, name: str) -> float:
    return float(
        svg.execute_script("return arguments[0].querySelector('rect').getBBox().width", frame(svg, name))
    )


def is_hidden(svg: webdriver.Chrome, name: str) -> bool:
    return "hide" in (frame(svg, name).get_attribute("class") or "")


def search(svg: webdriver.Chrome, text: str) -> str:
    svg.find_element(By.ID, "search").click()
    prompt = WebDriverWait(svg, 60).until(expected_conditions.alert_is_present())
    prompt.send_keys(text)
    prompt.accept()
    return svg.find_element(By.ID, "matched").text


def test_zoom_and_reset(svg: webdriver.Chrome) -> None:
    whole = width(svg, "all")
    assert width(svg, "x") == pytest.approx(0.2 * whole, abs=1)
    frame(svg, "x").click()
    assert width(svg, "x") == pytest.approx(whole, abs=1)
    assert width(svg, "y") == pytest.approx(whole / 2, abs=1)
    assert is_hidden(svg, "a") and not is_hidden(svg, "y")
    svg.find_element(By.ID, "reset").click()
    assert width(svg, "x") == pytest.approx(0.2 * whole, abs=1)
    assert not is_hidden(svg, "a")


def test_search_shows_the_matched_share_once(svg: webdriver.Chrome) -> None:
    for text, share in (("^b$", "80"), ("^(b|c)$", "80"), ("^y|^c", "60"), ("nothing", "0")):
        assert search(svg, text) == f"Matched: {share}.00%"
        svg.find_element(By.ID, "search").click()  # ends the search


def test_the_address_restores_the_view(svg: webdriver.Chrome) -> None:
    frame(svg, "x").click()
    search(svg, "y")
    address = svg.current_url
    assert "s=y" in address
    svg.get("about:blank")
    svg.get(address)
    assert is_hidden(svg, "a")
    assert "10.00%" in svg.find_element(By.ID, "matched").text


def test_ctrl_f_searches_and_a_broken_pattern_is_reported(svg: webdriver.Chrome) -> None:
    svg.find_element(By.ID, "title").click()
    webdriver.ActionChains(svg).key_down(Keys.CONTROL).send_keys("f").perform()
    prompt = WebDriverWait(svg, 60).until(expected_conditions.alert_is_present())
    prompt.send_keys("(")
    prompt.accept()
    webdriver.ActionChains(svg).key_up(Keys.CONTROL).perform()
    assert "regular expression" in svg.find_element(By.ID, "matched").text


def test_hostile_names_are_text(svg: webdriver.Chrome) -> None:
    assert svg.execute_script("return window.hacked") is None
    assert svg.execute_script("return document.querySelectorAll('image, [onerror]').length") == 0
    assert svg.execute_script("return document.querySelectorAll('script').length") == 1
    assert frame(svg, HOSTILE)


@pytest.fixture
def changed(viewer: Viewer, tmp_path: Path) -> webdriver.Chrome:
    """A difference with large letters and a name before the details."""
    path = tmp_path / "changed.svg"
    profile = Profile.from_bytes(b"a;b 10 40\na;c 40 10\na;gone;x 30 0\nnew;y 0 30\n", "folded")
    path.write_bytes(profile.to_svg(font_size=18, height=30, name_type="Method:", colors="java"))
    return opened(viewer, path)


def test_a_difference_can_be_zoomed_and_searched(changed: webdriver.Chrome) -> None:
    whole = width(changed, "all")
    frame(changed, "c").click()
    assert width(changed, "c") == pytest.approx(whole, abs=1)
    assert is_hidden(changed, "new")
    changed.find_element(By.ID, "reset").click()
    assert search(changed, "^(new|b)$") == "Matched: 87.50%"
    unseen = changed.find_element(By.ID, "unseen")
    assert unseen.text == "Vanished: 37.50% of before in 1 path (gone 37.50%)"


def test_details_begin_with_what_names_are(changed: webdriver.Chrome) -> None:
    webdriver.ActionChains(changed).move_to_element(frame(changed, "new")).perform()
    details = changed.find_element(By.ID, "details").text
    assert details == "Method: new (30 samples, 37.50%; +37.50%, new)"


def test_a_flame_chart_zooms_into_one_of_equal_stacks(viewer: Viewer, tmp_path: Path) -> None:
    (tmp_path / "in.folded").write_bytes(b"a;b 30\nc 10\na;b 10\n")
    FlameChart.open(tmp_path / "in.folded").write(tmp_path / "chart.svg", inverted=True)
    driver = opened(viewer, tmp_path / "chart.svg")
    assert driver.find_element(By.ID, "title").text == "Flame Chart"
    first = frame(driver, "a")
    first.click()
    script = "return document.querySelectorAll('#frames g:not(.hide)').length"
    assert driver.execute_script(script) == 3
    address = driver.current_url
    driver.get("about:blank")
    driver.get(address)
    assert driver.execute_script(script) == 3
