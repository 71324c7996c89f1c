"""Page objects: the views and controls of the page; and a run of three hosts whose shares are known."""

from __future__ import annotations

from pathlib import Path

from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from hprofiler.report import make_report
from tests.viewer.browser import Viewer
from tests.viewer.made_run import MadeHost, make_run

# Of 300 samples 120 are under b (its recursion counted once), all in c; 150 are in d, 30 in y.
HOSTS = {
    "hot": "a;b_[0];c_[j] 60\na;b_[j];b_[j];c_[j] 20\nx;y 20\n",
    "cool1": "a;b_[j];c_[j] 20\na;d 80\n",
    "cool2": "a;b_[j];c_[j] 20\na;d 70\nx;y 10\n",
}
HOT = "scope=host:0"


def three_hosts(folder: Path) -> Path:
    """The page of three hosts, on one of which b is four times as hot as on the others."""
    hosts = [MadeHost(name, {pid: folded}) for pid, (name, folded) in enumerate(HOSTS.items(), 11)]
    hosts[2].fails("degraded", "sampled with ctimer", "sysctl kernel.perf_event_paranoid=1", pid=13)
    return make_report(make_run(folder, hosts).path).page


def show(viewer: Viewer, page: Path, view: str, state: str = "") -> None:
    """Opens a view by its tab, and points at its graph."""
    viewer.open(page, state)
    viewer.element(f"view-{view}").click()
    if view in ("reversed", "compare"):
        viewer.canvas = f"{view}-canvas"
        viewer.still()


def copied_stack(viewer: Viewer) -> str:
    """What the button copies, pasted into the search."""
    viewer.element("copy-stack").click()
    viewer.until_text("copy-stack", "Copied")
    viewer.press("/")
    ActionChains(viewer.driver).key_down(Keys.CONTROL).send_keys("v").key_up(Keys.CONTROL).perform()
    viewer.until("return document.getElementById('search').value !== ''")
    return str(viewer.element("search").get_attribute("value"))


def table(viewer: Viewer, id: str) -> list[list[str]]:
    """The texts of a table's rows."""
    rows = viewer.driver.execute_script(
        "return [...document.querySelectorAll(`#${arguments[0]}-body tr`)].map("
        "row => [...row.cells].map(cell => cell.innerText.trim()))",
        id,
    )
    return [[cell.replace("\u202f", " ") for cell in row] for row in rows]


def names(viewer: Viewer, id: str, column: int) -> list[str]:
    return [row[column] for row in table(viewer, id)]


def sorted_by(viewer: Viewer, id: str, key: str) -> str:
    """Clicks a head; how its column is sorted then."""
    viewer.element(f"{id}-sort-{key}").click()
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
    cells = [cell.text for cell in viewer.driver.find_elements(By.CSS_SELECTOR, "#tooltip dt, #tooltip dd")]
    cells = [cell.replace("\u202f", " ") for cell in cells]
    return {"": viewer.text("tooltip").splitlines()[0], **dict(zip(cells[::2], cells[1::2], strict=False))}


def rows_by_name(viewer: Viewer) -> dict[str, list[str]]:
    """Of each method its change, its own change, and both sides' totals."""
    return {row[5]: [row[0], *row[2:5]] for row in table(viewer, "changes")}


def box(viewer: Viewer, id: str) -> str:
    return str(viewer.element(f"{id}-input").get_attribute("value"))


def choose(viewer: Viewer, id: str, typed: str) -> None:
    """Type into a box what finds an option, and take the first that is listed."""
    viewer.element(f"{id}-input").click()
    viewer.element(f"{id}-input").send_keys(Keys.CONTROL, "a")
    viewer.element(f"{id}-input").send_keys(typed, Keys.ENTER)
    viewer.until("return document.getElementById(arguments[0]).hidden", f"{id}-list")


def listed_options(viewer: Viewer, id: str) -> list[str]:
    """The names that the open list of a box shows; it is closed again."""
    viewer.element(f"{id}-input").click()
    options = viewer.driver.find_elements(By.CSS_SELECTOR, f"#{id}-list .option bdi")
    names = [option.get_attribute("textContent") or "" for option in options]
    viewer.press(Keys.ESCAPE)
    return names


def is_match(color: list[int]) -> bool:
    """Violet: what a search found."""
    red, green, blue = color
    return red > green + 20 and blue > green + 20


def is_red(color: list[int]) -> bool:
    """Faint ones, too, for changes within noise."""
    return color[0] > color[2] + 15


def is_blue(color: list[int]) -> bool:
    return color[2] > color[0] + 15
