"""The SVG's own script, in a real browser: zoom, search with overlap, state in the address."""

import shutil

import pytest

from hprofiler._flamegraph import Profile
from tests.needed import lacking

MISSING = [name for name in ("chromium", "chromedriver") if shutil.which(name) is None]

# `hot` is in 70 of 100 samples: 60 under itself (recursion), 10 elsewhere.
TEXT = b"run;hot;step;hot 60\nrun;Hot.cold 20\nrun;other;hot 10\nidle 10\n"


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    if MISSING:
        lacking(f"not installed: {', '.join(MISSING)}")
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = str(shutil.which("chromium"))
    profile = tmp_path_factory.mktemp("browser")
    for switch in ("--headless=new", "--no-sandbox", "--disable-gpu", f"--user-data-dir={profile}"):
        options.add_argument(switch)
    driver = webdriver.Chrome(options=options, service=Service(str(shutil.which("chromedriver"))))
    yield driver
    driver.quit()


@pytest.fixture
def picture(browser, tmp_path):
    path = tmp_path / "cpu.svg"
    path.write_bytes(Profile.from_bytes(TEXT).to_svg(title="T"))

    def open_with(query=""):
        browser.get(path.as_uri() + query)
        return browser

    return open_with


def shown(browser):
    """Titles of the frames that can be seen, root first."""
    script = (
        "return Array.from(document.querySelectorAll('#frames g:not(.hide) title')).map(t => t.textContent)"
    )
    return [title.split(" (")[0] for title in browser.execute_script(script)]


def text_of(browser, part):
    return browser.execute_script(f"return document.querySelector('#{part}').textContent").strip()


def click(browser, name, nth=0):
    browser.execute_script(
        "Array.from(document.querySelectorAll('#frames g'))"
        ".filter(g => g.firstChild.textContent.startsWith(arguments[0] + ' ('))[arguments[1]]"
        ".querySelector('rect').dispatchEvent(new MouseEvent('click', {bubbles: true}))",
        name,
        nth,
    )


def press(browser, key, answer=None):
    browser.execute_script(
        "window.prompt = () => arguments[1];"
        "window.dispatchEvent(new KeyboardEvent('keydown', {key: arguments[0], ctrlKey: true}))",
        key,
        answer,
    )


def test_all_is_shown_at_first(picture):
    browser = picture()
    assert sorted(shown(browser)) == sorted(
        ["all", "idle", "run", "Hot.cold", "hot", "step", "hot", "other", "hot"]
    )
    assert text_of(browser, "title") == "T"


def test_zoom_hides_the_rest_and_can_be_reset(picture):
    browser = picture()
    click(browser, "other")
    assert shown(browser) == ["all", "run", "other", "hot"]
    widths = browser.execute_script(
        "return Array.from(document.querySelectorAll('#frames g:not(.hide) rect'))"
        ".map(rect => rect.getAttribute('width'))"
    )
    assert set(widths) == {"1180.00"}
    assert "x=" in browser.current_url and "y=2" in browser.current_url
    browser.execute_script("document.querySelector('#reset').dispatchEvent(new MouseEvent('click'))")
    assert len(shown(browser)) == 9
    assert "?" not in browser.current_url


def test_search_counts_overlap_once(picture):
    browser = picture()
    press(browser, "f", "^hot$")
    assert text_of(browser, "matched") == "Matched: 70.00%"
    press(browser, "i")
    press(browser, "f")
    press(browser, "f", "^hot")
    assert text_of(browser, "matched") == "Matched: 90.00%"
    press(browser, "f")
    assert text_of(browser, "matched") == ""


def test_a_bad_expression_is_said_to_be_one(picture):
    browser = picture()
    press(browser, "f", "(")
    assert text_of(browser, "matched") == "Not a regular expression: ("


def test_the_address_brings_zoom_and_search_back(picture):
    browser = picture()
    click(browser, "other")
    press(browser, "f", "o[th]")
    query = "?" + browser.current_url.split("?")[1]
    again = picture(query)
    assert shown(again) == ["all", "run", "other", "hot"]
    assert text_of(again, "matched") == "Matched: 90.00%"


def test_details_follow_the_pointer(picture):
    browser = picture()
    browser.execute_script(
        "document.querySelectorAll('#frames g rect')[1]"
        ".dispatchEvent(new MouseEvent('mouseover', {bubbles: true}))"
    )
    assert text_of(browser, "details") == "idle (10 samples, 10.00%)"
