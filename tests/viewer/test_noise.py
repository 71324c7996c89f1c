"""Noise in the page's comparison: the same as in `hprofiler diff`, or unknown."""

from __future__ import annotations

from pathlib import Path

from hprofiler._flamegraph import Profile
from hprofiler.analysis.diff import Changes
from hprofiler.analysis.words import shown_name
from hprofiler.report import make_report
from tests.viewer.browser import Viewer
from tests.viewer.made_run import TASK, MadeHost, make_run
from tests.viewer.page_objects import diff_page, noise_note, run_page, table

NOISE = 1


def run_of(folder: Path, counts: list[int], event: str = "cpu") -> Path:
    """Processes that spend so many samples in hot, besides others; the last one is alone on its host."""
    job = f"{';'.join(TASK)};work"
    texts = [f"{job};hot {count}\n{job};hot;hot 7\n{job};cold 400\n{job};few 3\nz 9\n" for count in counts]
    processes = {101 + number: text for number, text in enumerate(texts)}
    hosts = [
        MadeHost("n1", **_recorded(event, dict(list(processes.items())[:-1]))),
        MadeHost("n2", **_recorded(event, dict(list(processes.items())[-1:]))),
    ]
    return make_run(folder, hosts, events=(event,)).path


def _recorded(event: str, processes: dict[int, str]) -> dict[str, dict]:
    return {"processes": processes} if event == "cpu" else {"events": {event: processes}}


def compared(viewer: Viewer, before: Path, after: Path, out: Path, state: str = "") -> Changes:
    """The page of two runs, opened, and what Python says of them."""
    changes = diff_page(before, after, out)
    viewer.open(out, state)
    return changes


def points(noise: float | None) -> str:
    assert noise is not None
    size = noise * 100
    return f"±{size:.1f} points" if size >= 1 else f"±{size:.2f} points"


def test_the_page_has_the_noise_of_the_command_line(viewer: Viewer, tmp_path: Path) -> None:
    sides = [run_of(tmp_path / "old", [300, 310, 290]), run_of(tmp_path / "new", [900, 930, 890, 910])]
    changes = compared(viewer, *sides, tmp_path / "x.html")
    assert "the spread over 4 and 3 processes" in noise_note(viewer)
    by_name = {row[5]: row for row in table(viewer, "changes")}
    assert len(by_name) == len(changes.methods) > 4
    for method in changes.methods:
        assert by_name[shown_name(method.name)][NOISE] == points(method.total.noise), method.name
    grey = viewer.driver.execute_script(
        "return Object.fromEntries([...document.querySelectorAll('#changes-body tr')].map((row) =>"
        "[row.cells[5].innerText, row.cells[0].firstChild.className === 'soft']))"
    )
    assert grey == {shown_name(method.name): not method.total.beyond for method in changes.methods}
    assert len(set(grey.values())) == 2


def sides_of(tmp_path: Path, **texts: str) -> list[Path]:
    sides = []
    for name, text in texts.items():
        (tmp_path / f"{name}.folded").write_text(text)
        sides.append(tmp_path / f"{name}.folded")
    return sides


def ramp(viewer: Viewer) -> str:
    return viewer.first(".ramp").text


def judged(viewer: Viewer) -> None:
    """Wait until noise is estimated, and the comparison's graph drawn with it."""
    noise_note(viewer)
    viewer.canvas = "compare-canvas"
    viewer.still()


def strength(viewer: Viewer, x: float, depth: int) -> int:
    color = viewer.color(x, depth)
    return max(color) - min(color)


def test_changes_within_noise_are_faint_and_not_listed(viewer: Viewer, tmp_path: Path) -> None:
    new = "".join(f"main;hot;new{number} 1\n" for number in range(27))
    sides = sides_of(tmp_path, old="main;hot 213\nmain;cold 200\n", new=f"main;hot 200\n{new}main;cold 186\n")
    changes = compared(viewer, *sides, tmp_path / "x.html")
    judged(viewer)
    assert not any(method.total.beyond for method in changes.methods) and not changes.appeared.sure
    assert "every change is within noise" in ramp(viewer)
    assert viewer.text("only-here").splitlines()[1:] == ["27 within noise"]
    assert strength(viewer, 0.1, 2) < 60 and strength(viewer, 0.8, 2) < 60


def test_a_small_change_is_pale_where_it_is_the_largest(viewer: Viewer, tmp_path: Path) -> None:
    """1.8 points between two hosts are beyond chance here, and must not paint the whole graph."""
    hosts = [
        MadeHost("one", {1: "main;hot 509000\nmain;cold 491000\n"}),
        MadeHost("two", {2: "main;hot 491000\nmain;cold 509000\n"}),
    ]
    viewer.open(run_page(tmp_path, hosts), "view=compare&scope=host:0")
    judged(viewer)
    assert "the strongest colours are 10.0 points apart" in ramp(viewer)
    assert 10 < strength(viewer, 0.1, 2) < 70, "cold"


def test_changes_beyond_noise_are_strong_and_listed(viewer: Viewer, tmp_path: Path) -> None:
    sides = sides_of(
        tmp_path,
        old="main;hot 2000\nmain;cold 2000\n",
        new="main;hot 2010\nmain;mask 900\nmain;few 2\nmain;cold 1100\n",
    )
    changes = compared(viewer, *sides, tmp_path / "x.html")
    judged(viewer)
    assert [one.name for one in changes.appeared.sure] == ["mask"]
    assert "the strongest colours are 22.6 points apart; changes within noise are faint" in ramp(viewer)
    assert viewer.text("only-here").splitlines()[1:] == ["22.4 % mask called by main", "and 1 within noise"]
    assert strength(viewer, 0.1, 2) > 90 > strength(viewer, 0.6, 2), "cold, and hot"


def test_scopes_with_samples_in_common_have_no_noise(viewer: Viewer, page: Path) -> None:
    viewer.open(page, "view=compare&scope=host:0&with=sum")
    assert "share samples" in noise_note(viewer)
    assert {row[NOISE] for row in table(viewer, "changes")} == {"?"}


def test_noise_of_bytes_comes_from_samples(viewer: Viewer, tmp_path: Path) -> None:
    runs = [run_of(tmp_path / name, [300, 340, 320], "alloc") for name in ("old", "new")]
    viewer.open(make_report(runs[0]).page, "view=compare&scope=host:1")
    assert "the spread over 1 and 2 processes" in noise_note(viewer)
    compared(viewer, *runs, tmp_path / "x.html")
    assert "is not known" in noise_note(viewer)
    trimmed = make_report(runs[1], trim=True)
    assert Profile.open(trimmed.page.parent / "cluster/alloc.pb.gz").total() > 0
    viewer.open(trimmed.page, "view=compare&scope=host:1")
    assert "is not known" in noise_note(viewer)
