"""What the page's comparison says of chance: the same as `hprofiler diff`, or that it cannot be said."""

from __future__ import annotations

from pathlib import Path
from typing import Dict, List, Optional

import pytest
from selenium.webdriver.common.by import By

from hprofiler._flamegraph import Profile
from hprofiler.report import make_report
from hprofiler.report.diff import Changes, compare_paths, two_runs
from tests.viewer.browser import Viewer
from tests.viewer.made_run import TASK, MadeHost, make_run
from tests.viewer.seeing import table, three_hosts

NOISE = 1


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return three_hosts(tmp_path_factory.mktemp("noise") / "run")


def run_of(folder: Path, counts: List[int], event: str = "cpu") -> Path:
    """Processes that spend so many samples in hot, besides others; the last one is alone on its host."""
    job = f"{';'.join(TASK)};work"
    texts = [f"{job};hot {count}\n{job};hot;hot 7\n{job};cold 400\n{job};few 3\nz 9\n" for count in counts]
    processes = {101 + number: text for number, text in enumerate(texts)}
    hosts = [
        MadeHost("n1", **_recorded(event, dict(list(processes.items())[:-1]))),
        MadeHost("n2", **_recorded(event, dict(list(processes.items())[-1:]))),
    ]
    return make_run(folder, hosts, events=(event,)).path


def _recorded(event: str, processes: Dict[int, str]) -> Dict[str, Dict]:
    return {"processes": processes} if event == "cpu" else {"events": {event: processes}}


def compared(viewer: Viewer, before: Path, after: Path, out: Path, state: str = "") -> Changes:
    """The page of two runs, opened, and what Python says of them."""
    made = two_runs(before, after)
    changes = compare_paths(before, after, None, False, lambda side, done, of: None, made)
    made.write(changes, out)
    viewer.open(out, state)
    return changes


def until_told(viewer: Viewer) -> str:
    viewer.until("return document.querySelector('.noise-note').textContent !== ''")
    return viewer.driver.find_element(By.CSS_SELECTOR, ".noise-note").text


def points(noise: Optional[float]) -> str:
    assert noise is not None
    size = noise * 100
    return f"±{size:.1f} points" if size >= 1 else f"±{size:.2f} points"


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ([300, 310, 290], [900, 930, 890, 910], "the spread over 4 and 3 processes"),
        ([300, 310], [20, 30], "the spread over 2 and 2 processes"),
    ],
)
def test_the_page_has_the_noise_of_the_command_line(
    viewer: Viewer, tmp_path: Path, before: List[int], after: List[int], told: str
) -> None:
    sides = [run_of(tmp_path / name, counts) for name, counts in (("old", before), ("new", after))]
    changes = compared(viewer, *sides, tmp_path / "x.html")
    assert told in until_told(viewer)
    by_name = {row[5]: row for row in table(viewer, "changes")}
    assert len(by_name) == len(changes.methods) > 4
    for method in changes.methods:
        assert by_name[method.name][NOISE] == points(method.total.noise), method.name
    grey = viewer.driver.execute_script(
        "return Object.fromEntries([...document.querySelectorAll('#changes-body tr')].map((row) =>"
        "[row.cells[5].innerText, row.cells[0].firstChild.className === 'soft']))"
    )
    assert grey == {method.name: not method.total.beyond for method in changes.methods}
    assert len(set(grey.values())) == 2


def test_one_process_on_each_side_is_counted_alone(viewer: Viewer, tmp_path: Path) -> None:
    sides = []
    for name, hot in (("old", 60), ("new", 90)):
        path = tmp_path / f"{name}.folded"
        path.write_text(f"main;hot {hot}\nmain;cold 400\n")
        sides.append(path)
    changes = compared(viewer, *sides, tmp_path / "x.html")
    assert "what counting samples makes" in until_told(viewer)
    noise = {method.name: points(method.total.noise) for method in changes.methods}
    assert {row[5]: row[NOISE] for row in table(viewer, "changes")} == noise


def test_a_host_and_the_rest_have_noise_of_shares_and_of_amounts(viewer: Viewer, page: Path) -> None:
    viewer.open(page, "view=compare&scope=host:0")
    assert "the spread over 1 and 2 processes" in until_told(viewer)
    shares = {row[5]: row[NOISE] for row in table(viewer, "changes")}
    assert all(one.startswith("±") and one.endswith("points") for one in shares.values())
    viewer.open(page, "view=compare&scope=host:0&normalize=0")
    until_told(viewer)
    assert all(row[NOISE].endswith("samples") for row in table(viewer, "changes"))


def test_scopes_with_samples_in_common_have_no_noise(viewer: Viewer, page: Path) -> None:
    viewer.open(page, "view=compare&scope=host:0&with=sum")
    assert "samples in common" in until_told(viewer)
    assert {row[NOISE] for row in table(viewer, "changes")} == {"?"}


def test_bytes_are_as_certain_as_the_samples_behind_them(viewer: Viewer, tmp_path: Path) -> None:
    runs = [run_of(tmp_path / name, [300, 340, 320], "alloc") for name in ("old", "new")]
    viewer.open(make_report(runs[0]).page, "view=compare&scope=host:1")
    assert "the spread over 1 and 2 processes" in until_told(viewer)
    compared(viewer, *runs, tmp_path / "x.html")
    assert "is not known here" in until_told(viewer)
    trimmed = make_report(runs[1], trim=True)
    assert Profile.open(trimmed.page.parent / "cluster/alloc.pb.gz").total() > 0
    viewer.open(trimmed.page, "view=compare&scope=host:1")
    assert "is not known here" in until_told(viewer)
