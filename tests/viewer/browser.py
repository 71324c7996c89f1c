"""A headless Chromium, and the viewer's page in it, used as a user does."""

from __future__ import annotations

import base64
import contextlib
import json
import shutil
from collections.abc import Iterator
from pathlib import Path

from selenium import webdriver
from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import WebDriverWait

ROW = 20
SCREENSHOTS = Path(__file__).resolve().parents[2] / "build/screenshots"
MOST_PIXELS = 6000
SWITCHES = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
]


def browser_programs() -> list[str]:
    """The programs these tests need that are missing."""
    return [name for name in ("chromium", "chromedriver") if shutil.which(name) is None]


@contextlib.contextmanager
def chromium(profile: Path, width: int = 1400, height: int = 1000) -> Iterator[webdriver.Chrome]:
    options = webdriver.ChromeOptions()
    options.binary_location = str(shutil.which("chromium"))
    for switch in [*SWITCHES, f"--user-data-dir={profile}", f"--window-size={width},{height}"]:
        options.add_argument(switch)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(str(shutil.which("chromedriver"))))
    try:
        yield driver
    finally:
        driver.quit()


def plain(text: str) -> str:
    """The text with plain spaces."""
    return text.replace("\u202f", " ").replace("\xa0", " ")


class Viewer:
    """A page of ours in the browser."""

    def __init__(self, driver: webdriver.Chrome) -> None:
        self.driver = driver
        # The graph that is pointed at and looked at.
        self.canvas = "graph-canvas"

    def open(self, page: Path, state: str = "") -> Viewer:
        """Load the page anew, with a state in its hash, and wait until it is drawn."""
        self.driver.get("about:blank")
        self.driver.get_log("browser")
        self.driver.get_log("performance")
        self.driver.get(f"{page.resolve().as_uri()}{'#' + state if state else ''}")
        self.until("return document.documentElement.dataset.ready === 'true'")
        return self

    def follow(self, state: str) -> None:
        """Go to another state of the page that is open, as by a link to it."""
        self.driver.execute_async_script(
            """const [state, done] = arguments;
            if (location.hash.slice(1) === state) return done();
            addEventListener("hashchange", () => done(), { once: true });
            location.hash = state;""",
            state,
        )

    def until(self, script: str, *arguments: object) -> None:
        WebDriverWait(self.driver, 60, poll_frequency=0.02).until(
            lambda driver: driver.execute_script(script, *arguments), f"never true: {script}"
        )

    def element(self, id: str) -> WebElement:
        return self.driver.find_element(By.ID, id)

    def first(self, selector: str) -> WebElement:
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def all(self, selector: str) -> list[WebElement]:
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def texts(self, selector: str) -> list[str]:
        """The texts of the elements with plain spaces."""
        return [plain(one.text) for one in self.all(selector)]

    def text(self, id: str) -> str:
        """The element's text with plain spaces."""
        while True:
            with contextlib.suppress(StaleElementReferenceException):  # drawn anew while it is read
                return plain(self.element(id).text)

    def click_anew(self, id: str) -> None:
        """Click an element that may be drawn anew meanwhile."""
        while True:
            with contextlib.suppress(StaleElementReferenceException):
                return self.element(id).click()

    def focused(self) -> str:
        """The id of what has the focus, in one go: a head drawn anew is another element of that id."""
        return str(self.driver.execute_script("return document.activeElement.id"))

    def until_text(self, id: str, expected: str) -> None:
        self.until(
            "const text = document.getElementById(arguments[0]).textContent.replaceAll('\u202f', ' ');"
            "return text.includes(arguments[1])",
            id,
            expected,
        )

    def state(self) -> str:
        return str(self.driver.execute_script("return location.hash"))

    def still(self) -> None:
        """Wait until all is drawn and no zoom is under way: two pictures in a row are equal."""
        self.driver.execute_async_script(
            """const done = arguments[1]; let before = "";
            const canvas = document.getElementById(arguments[0]);
            const drawn = (then) => requestAnimationFrame(() => requestAnimationFrame(then));
            const look = () => { const now = canvas.toDataURL(); if (now === before) done(); else {
              before = now; drawn(look); } };
            drawn(look);""",
            self.canvas,
        )

    def hover(self, share: float, depth: int) -> str:
        """Point at a place of the canvas (root at the top): part of the width, row; the tooltip's text."""
        self._move(share, depth).perform()
        self.until("return !document.getElementById('tooltip').hidden")
        return self.text("tooltip")

    def color(self, share: float, depth: int) -> list[int]:
        """Red, green and blue at a frame's lower edge, where no name is written."""
        width = self.element(self.canvas).size["width"]
        return self.pixel(share * width, (depth + 0.85) * ROW)

    def pixel(self, x: float, y: float) -> list[int]:
        """Red, green and blue of a place on the canvas, in CSS pixels."""
        self.still()
        return list(
            self.driver.execute_script(
                """const [id, x, y] = arguments, canvas = document.getElementById(id);
                const ratio = canvas.width / canvas.getBoundingClientRect().width;
                const { data } = canvas.getContext("2d").getImageData(x * ratio, y * ratio, 1, 1);
                return [...data].slice(0, 3)""",
                self.canvas,
                x,
                y,
            )
        )

    def click(self, share: float, depth: int) -> None:
        self._move(share, depth).click().perform()
        self.still()

    def _move(self, share: float, depth: int) -> ActionChains:
        canvas, width, height = self.driver.execute_script(
            """const canvas = document.getElementById(arguments[0]);
            canvas.scrollIntoView({block: "center"});
            return [canvas, canvas.offsetWidth, canvas.offsetHeight];""",
            self.canvas,
        )
        x, y = share * width - width / 2, (depth + 0.5) * ROW - height / 2
        return ActionChains(self.driver, duration=0).move_to_element_with_offset(canvas, int(x), int(y))

    def press(self, *keys: str) -> None:
        ActionChains(self.driver).send_keys(*keys).perform()

    def picture(self, name: str) -> None:
        """Keep a picture of the whole page as build/screenshots/NAME.png, for people to look at."""
        width, height = self.driver.execute_script(
            "const page = document.documentElement; return [page.scrollWidth, page.scrollHeight]"
        )
        clip = {"x": 0, "y": 0, "width": width, "height": min(height, MOST_PIXELS), "scale": 1}
        shot = {"captureBeyondViewport": True, "clip": clip}
        picture = self.driver.execute_cdp_cmd("Page.captureScreenshot", shot)["data"]
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        (SCREENSHOTS / f"{name}.png").write_bytes(base64.b64decode(picture))

    def complaints(self) -> list[str]:
        """The console's errors and refusals, without its advice on how the tests read the canvas."""
        return [
            entry["message"] for entry in self.driver.get_log("browser") if entry["source"] != "rendering"
        ]

    def requests(self) -> list[str]:
        """Addresses requested, without data in the page."""
        events = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]
        sent = [event["params"] for event in events if event["method"] == "Network.requestWillBeSent"]
        urls = [params["request"]["url"] for params in sent]
        return [url for url in urls if not url.startswith("data:")]
