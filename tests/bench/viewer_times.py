"""How long a page takes in Chromium: from navigation to its first picture, and from an input to the picture
that answers it. Times are the browser's own: from an input's time stamp to the frame after the one drawn.
"""

from __future__ import annotations

import contextlib
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from selenium import webdriver
from selenium.common.exceptions import WebDriverException
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement

from tests.bench.commands import BenchError
from tests.viewer.browser import ROW, chromium

OPENS_WITHIN = 60.0
# What a browser loads once for all pages: fonts, what draws a canvas.
WARM_UP = """data:text/html,<canvas></canvas><p>text<script>
const context = document.querySelector("canvas").getContext("2d"); context.fillText("text", 9, 9);
</script>"""
# Our page says that it is ready; others are when they are loaded.
WATCH = """
const measured = (window.measured = {});
const painted = (shown, begin, key) => {
  const look = () => requestAnimationFrame(() => {
    if (shown()) requestAnimationFrame(() => (measured[key] = performance.now() - begin)); else look();
  });
  look();
};
const isReady = () => document.documentElement?.dataset.ready === "true";
const ours = () => document.getElementById("hprofiler-page") !== null;
addEventListener("load", () => painted(() => isReady() || !ours(), 0, "opened"));
window.measure = (input, shown) => {
  delete measured.answered;
  const once = { capture: true, once: true };
  addEventListener(input, (event) => painted(shown, event.timeStamp, "answered"), once);
};
"""
HOVERED = "return !document.getElementById('tooltip').hidden"
SCOPED = ("compare", "methods", "reversed", "sandwich", "graph")
THREADS = 5
# A comparison's lists come after its picture.
LISTED = "!document.querySelector('[aria-busy=true]')"
WORDS = ["Shuffle", "Writer", "insert", "netty"]


@dataclass
class Times:
    """Milliseconds by what was done; bytes of the process that shows the page, at most and before it."""

    taken: dict[str, list[float]] = field(default_factory=dict)
    bytes: int = 0
    blank: int = 0

    def add(self, what: str, milliseconds: float) -> None:
        self.taken.setdefault(what, []).append(milliseconds)

    def median(self, what: str) -> float:
        return statistics.median(self.taken[what])


def time_page(page: Path, rounds: int, use: Callable[[Page, Times], None]) -> Times:
    """Opens a page in a fresh browser each round and uses it."""
    times = Times()
    for _ in range(rounds):
        with _browser() as browser:
            Page(browser.driver, WARM_UP)
            times.blank = browser.resident()
            opened = Page(browser.driver, page.resolve().as_uri(), browser.resident)
            times.add("open", opened.milliseconds)
            use(opened, times)
            times.bytes = max(times.bytes, browser.resident())
    return times


@dataclass(frozen=True)
class Browser:
    """A browser of our own, and the folder by which its processes are known."""

    driver: webdriver.Chrome
    folder: str

    def resident(self) -> int:
        """Memory of the largest process that shows pages: its heap, its pictures, the program itself."""
        sizes = [0]
        for process in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                command = (process / "cmdline").read_bytes()
                if b"--type=renderer" in command and self.folder.encode() in _descent(process):
                    status = (process / "status").read_text()
                    sizes.append(int(status.split("VmRSS:")[1].split()[0]) * 1024)
        return max(sizes)


def _descent(process: Path) -> bytes:
    """The command lines of what a process descends from: renderers do not tell the profile's folder."""
    commands = b""
    while process.name != "0":
        commands += (process / "cmdline").read_bytes()
        process = process.with_name((process / "stat").read_text().rpartition(")")[2].split()[1])
    return commands


@contextlib.contextmanager
def _browser() -> Iterator[Browser]:
    with tempfile.TemporaryDirectory() as folder, chromium(Path(folder)) as driver:
        driver.set_page_load_timeout(OPENS_WITHIN)
        still = [{"name": "prefers-reduced-motion", "value": "reduce"}]
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": still})
        driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": WATCH})
        yield Browser(driver, folder)


class Page:
    """A page that was opened; BenchError where it does not open in time."""

    def __init__(
        self, driver: webdriver.Chrome, address: str, resident: Callable[[], int] = lambda: 0
    ) -> None:
        self.driver = driver
        self.resident = resident
        try:
            driver.get(address)
            self.milliseconds = self._measured("opened")
        except WebDriverException as error:
            raise BenchError(f"does not open: {error.msg}") from error

    def answer(self, event: str, shown: str, act: Callable[[], object]) -> float:
        """Milliseconds from the input `event` that `act` causes to the picture in which `shown` holds."""
        self.driver.execute_script(f"measure({event!r}, () => {shown})")
        act()
        return self._measured("answered")

    def _measured(self, key: str) -> float:
        until = time.monotonic() + OPENS_WITHIN
        while time.monotonic() < until:
            took = self.driver.execute_script("return window.measured?.[arguments[0]]", key)
            if took is not None:
                return float(took)
            time.sleep(0.02)
        raise BenchError(f"shows nothing within {OPENS_WITHIN:.0f} s")

    def element(self, id: str) -> WebElement:
        return self.driver.find_element(By.ID, id)

    def press(self, *keys: str) -> None:
        ActionChains(self.driver, duration=0).send_keys(*keys).perform()

    def point(self, element: WebElement, share: float, below: float) -> None:
        """Put the pointer on a part of the element's width, so many pixels below its upper edge."""
        size = element.size
        x, y = int((share - 0.5) * size["width"]), int(below - size["height"] / 2)
        ActionChains(self.driver, duration=0).move_to_element_with_offset(element, x, y).perform()

    def click(self) -> None:
        ActionChains(self.driver, duration=0).click().perform()


def use_ours(page: Page, times: Times) -> None:
    """Zoom, search and change the scope as a reader does."""
    page.driver.execute_script("document.getElementById('explorer').scrollIntoView()")
    _zoom(page, times)
    _search(page, "search", times, WORDS)
    for what, names in _scopes(page).items():
        for name in names:
            times.add(what, _choose(page, name))


def _search(page: Page, what: str, times: Times, words: Sequence[str]) -> None:
    """Type words letter by letter."""
    for word in words:
        page.element("search").click()
        for letters in range(1, len(word) + 1):
            typed = f"location.hash.includes('q={word[:letters]}')"
            times.add(what, page.answer("input", typed, lambda key=word[letters - 1]: page.press(key)))
        page.press(Keys.ESCAPE)


def _zoom(page: Page, times: Times) -> None:
    canvas = page.element("graph-canvas")
    for row in range(1, 12):
        page.point(canvas, 0.2 + 0.05 * row, (row + 0.5) * ROW)
        if not page.driver.execute_script(HOVERED):
            continue
        times.add("zoom", page.answer("click", "location.hash.includes('zoom=')", page.click))
        out = page.answer("keydown", "!location.hash.includes('zoom=')", lambda: page.press("0"))
        times.add("zoom", out)


def _scopes(page: Page) -> dict[str, Sequence[str]]:
    """Names to type into the choice of scopes, by what their kind is called."""
    names = (
        "return JSON.parse(document.getElementById('hprofiler-page').textContent).hosts.map((h) => h.name)"
    )
    labels = page.driver.execute_script(names)
    hosts = [labels[len(labels) * part // 5] for part in range(5)]
    return {"host": hosts, "average": ["average"], "sum": ["sum"]}


def _choose(page: Page, name: str, shown: str = "true") -> float:
    """Choose a scope by its name, until the address has it and `shown` holds."""
    page.driver.execute_script("document.activeElement.blur()")
    page.press("w")
    page.press(name)
    before = page.driver.execute_script("return location.hash")
    return page.answer("keydown", f"location.hash !== {before!r} && {shown}", lambda: page.press(Keys.ENTER))


def use_scopes(page: Page, times: Times) -> None:
    """In every view that is of a scope: change it, choose groups of threads, search, as a reader does."""
    page.driver.execute_script("document.getElementById('explorer').scrollIntoView()")
    names = [name for some in _scopes(page).values() for name in some]
    for view in SCOPED:
        _open(page, view)
        for name in names:
            times.add(f"scope in {view}", _choose(page, name))
            times.bytes = max(times.bytes, page.resident())
        for name in names if view == "compare" else ():
            times.add("its lists, too", _choose(page, name, LISTED))
        _choose_threads(page, view, times)
        _search(page, f"search in {view}, a letter more", times, WORDS[:2])


def _open(page: Page, view: str) -> None:
    """A view; that of one method with the method that costs most."""
    shown = f"location.hash.includes('view={view}') || {view!r} === 'graph'"
    if view == "sandwich":
        costly = "#methods-body .name button"
        page.answer("click", "true", page.element("view-methods").click)
        page.answer("click", shown, page.driver.find_element(By.CSS_SELECTOR, costly).click)
    else:
        page.answer("click", shown, page.element(f"view-{view}").click)


def _choose_threads(page: Page, view: str, times: Times) -> None:
    """Group by group with the arrow key, then all threads again."""
    for _ in range(THREADS):
        page.driver.execute_script("document.getElementById('thread').focus()")
        before = page.driver.execute_script("return location.hash")
        changed = f"location.hash !== {before!r}"
        times.add(f"threads in {view}", page.answer("keydown", changed, lambda: page.press(Keys.ARROW_DOWN)))
        times.bytes = max(times.bytes, page.resident())
    page.answer("keydown", "!location.hash.includes('thread=')", lambda: page.press(Keys.HOME))


def use_ranges(page: Page, times: Times) -> None:
    """Open the heat map, select cells and longer ranges there, and open the other views with a range."""
    page.driver.execute_script("document.getElementById('explorer').scrollIntoView()")
    times.add("heat map, first shown", page.answer("click", "true", page.element("view-time").click))
    times.bytes = max(times.bytes, page.resident())
    canvas = page.element("heat-canvas")
    for share in (0.2, 0.4, 0.6, 0.8):
        times.add("a cell of 20 ms", _select(page, canvas, share, share))
        times.add("a range of 12 s", _select(page, canvas, share, share - 0.18))
        times.add("nearly all", _select(page, canvas, 0.07, 0.9 + share / 10))
        times.bytes = max(times.bytes, page.resident())
    for view in ("graph", "methods", "reversed", "hosts", "compare"):
        page.answer("click", "true", page.element(f"view-{view}").click)
        for begin in (5, 20, 35):
            for length in (0.02, 12):
                address = f"view={view}&time={begin}-{begin + length}"
                change = partial(page.driver.execute_script, f"location.hash = {address!r}")
                took = page.answer("popstate", "true", change)
                times.add(f"a range in {view}", took)
        times.bytes = max(times.bytes, page.resident())


def _select(page: Page, canvas: WebElement, begin: float, end: float) -> float:
    """Drag from one part of the map's width to another."""
    before = page.driver.execute_script("return location.hash")
    page.point(canvas, begin, 100)
    ActionChains(page.driver, duration=0).click_and_hold().perform()
    page.point(canvas, end, 130)
    release = ActionChains(page.driver, duration=0).release()
    return page.answer("pointerup", f"location.hash !== {before!r}", release.perform)


def use_peer(page: Page, times: Times) -> None:
    """Zoom in and search in async-profiler's HTML or flamegraph.pl's SVG, which ask for words in a dialog."""
    page.driver.execute_script("window.prompt = () => arguments[0]", WORDS[0])
    times.add("search", page.answer("click", "true", page.element("search").click))
    # Their roots lie at the bottom, and there the frames are wide.
    page.driver.execute_script("scrollTo(0, 1e6)")
    width, height = page.driver.execute_script("return [innerWidth, innerHeight]")
    actions = ActionChains(page.driver, duration=0)
    actions.w3c_actions.pointer_action.move_to_location(width // 3, height - 150)
    actions.perform()
    before = page.driver.get_screenshot_as_base64()
    took = page.answer("click", "true", page.click)
    if page.driver.get_screenshot_as_base64() != before:
        times.add("zoom", took)
