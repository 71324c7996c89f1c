"""Page objects: making pages, and their views and controls."""

from __future__ import annotations

import time
from pathlib import Path

from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

from hprofiler._flamegraph import Profile
from hprofiler.analysis.diff import Changes, compare_paths
from hprofiler.analysis.diff_findings import findings_of_changes
from hprofiler.report import make_report, write_page
from hprofiler.report.diff_page import two_runs
from tests.viewer.browser import Viewer, plain
from tests.viewer.made_run import MadeHost, make_run

HOT = "scope=host:0"


def run_page(folder: Path, hosts: list[MadeHost], *events: str) -> Path:
    """The page of a run with these hosts, of CPU time if no event is named."""
    return make_report(make_run(folder / "run", hosts, events=events or ("cpu",)).path).page


def folded_page(folder: Path, folded: str) -> Path:
    """The page of folded text."""
    page = folder / "folded.html"
    write_page(Profile.from_bytes(folded.encode(), "folded"), page, "folded")
    return page


def diff_page(before: Path, after: Path, page: Path) -> Changes:
    """Write the page that compares two runs or files; what Python says of them."""
    made = two_runs(before, after)
    changes = compare_paths(before, after, None, False, lambda side, done, of: None, made.take)
    made.write(changes, findings_of_changes(changes), page)
    return changes


def show(viewer: Viewer, page: Path, view: str, state: str = "") -> None:
    """Opens a view by its tab, and points at its graph."""
    viewer.open(page, state)
    viewer.element(f"view-{view}").click()
    if view in ("reversed", "compare"):
        viewer.canvas = f"{view}-canvas"
        viewer.still()


def copied_stack(viewer: Viewer) -> str:
    """What the button copies, pasted into the search."""
    # The button may still say so of an earlier copy: it is written anew once this one is made.
    viewer.driver.execute_script(
        """const button = document.getElementById("copy-stack");
        window.copied = new Promise((resolve) => new MutationObserver((_, observer) => {
          if (button.textContent === "Copied") { observer.disconnect(); resolve(); }
        }).observe(button, { childList: true }));"""
    )
    viewer.element("copy-stack").click()
    viewer.driver.execute_async_script("window.copied.then(() => arguments[0]())")
    viewer.press("/")
    viewer.driver.execute_script(
        """const search = document.getElementById("search");
        search.select();
        window.pasted = new Promise((resolve) =>
          search.addEventListener("input", () => resolve(search.value), { once: true }));"""
    )
    ActionChains(viewer.driver).key_down(Keys.CONTROL).send_keys("v").key_up(Keys.CONTROL).perform()
    return str(viewer.driver.execute_async_script("window.pasted.then(arguments[0])"))


def table(viewer: Viewer, id: str) -> list[list[str]]:
    """The texts of a table's rows."""
    rows = viewer.driver.execute_script(
        "return [...document.querySelectorAll(`#${arguments[0]}-body tr`)].map("
        "row => [...row.cells].map(cell => cell.innerText.trim()))",
        id,
    )
    return [[plain(cell) for cell in row] for row in rows]


def names(viewer: Viewer, id: str, column: int) -> list[str]:
    return [row[column] for row in table(viewer, id)]


def sorted_by(viewer: Viewer, id: str, key: str) -> str:
    """Clicks a head; how its column is sorted then."""
    viewer.click_anew(f"{id}-sort-{key}")
    return str(
        viewer.driver.execute_script(
            "return document.getElementById(arguments[0]).closest('th').getAttribute('aria-sort')",
            f"{id}-sort-{key}",
        )
    )


def name_at(viewer: Viewer, share: float, depth: int) -> str:
    """The name that a frame's tooltip has."""
    return viewer.hover(share, depth).splitlines()[0]


def tooltip(viewer: Viewer, share: float, depth: int) -> dict[str, str]:
    """A frame's tooltip: its name as "", and each of its lines."""
    viewer.hover(share, depth)
    cells = viewer.texts("#tooltip dt, #tooltip dd")
    return {"": viewer.text("tooltip").splitlines()[0], **dict(zip(cells[::2], cells[1::2], strict=False))}


def rows_by_name(viewer: Viewer) -> dict[str, list[str]]:
    """Of each method its change, its own change, and both sides' totals."""
    return {row[5]: [row[0], *row[2:5]] for row in table(viewer, "changes")}


def noise_note(viewer: Viewer) -> str:
    """What the comparison says about noise, once it is estimated."""
    viewer.until("return document.querySelector('.noise-note').textContent !== ''")
    return viewer.first(".noise-note").text


def box(viewer: Viewer, id: str) -> str:
    return str(viewer.element(f"{id}-input").get_attribute("value"))


def search(viewer: Viewer, query: str, regexp: bool = False) -> str:
    """Paste a query; how much it matches."""
    viewer.driver.execute_script(
        """const [query, regexp] = arguments, button = document.getElementById("search-regexp");
        if ((button.getAttribute("aria-pressed") === "true") !== regexp) button.click();
        const field = document.getElementById("search");
        field.value = query;
        field.dispatchEvent(new Event("input"));""",
        query,
        regexp,
    )
    return viewer.text("search-result")


def chips(viewer: Viewer) -> list[str]:
    """The parts of the recording that are shown alone."""
    return [text.removesuffix("×") for text in viewer.texts("#part .chip")]


def choose(viewer: Viewer, id: str, typed: str) -> None:
    """Type into a box what finds an option, and take the first that is listed."""
    viewer.driver.execute_script("document.getElementById(arguments[0]).focus()", f"{id}-input")
    viewer.press(typed, Keys.ENTER)
    viewer.until("return document.getElementById(arguments[0]).hidden", f"{id}-list")


def listed_options(viewer: Viewer, id: str) -> list[str]:
    """The names that the open list of a box shows; it is closed again."""
    viewer.element(f"{id}-input").click()
    names = [option.get_attribute("textContent") or "" for option in viewer.all(f"#{id}-list .option bdi")]
    viewer.press(Keys.ESCAPE)
    return names


def save(viewer: Viewer, downloads: Path, kind: str) -> Path:
    """Choose it from the menu; the file, once all of it is there."""
    viewer.element("save-button").click()
    viewer.element(f"save-{kind}").click()
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        files = [file for file in downloads.iterdir() if file.suffix != ".crdownload"]
        if files and files[0].stat().st_size > 0:
            return files[0]
        time.sleep(0.02)
    raise AssertionError(f"nothing was saved: {list(downloads.iterdir())}")


def is_match(color: list[int]) -> bool:
    """Violet: what a search found."""
    red, green, blue = color
    return red > green + 20 and blue > green + 20


def is_red(color: list[int]) -> bool:
    """Faint ones, too, for changes within noise."""
    return color[0] > color[2] + 15


def is_blue(color: list[int]) -> bool:
    return color[2] > color[0] + 15
