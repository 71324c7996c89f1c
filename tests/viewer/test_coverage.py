"""The coverage in a saved picture."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from hprofiler.report import make_report
from tests.viewer.browser import Viewer
from tests.viewer.made_run import MadeHost, content_of, make_run, rewrite
from tests.viewer.page_objects import folded_page, save

SVG = "{http://www.w3.org/2000/svg}"

RUN = "3 of 4 processes on 2 of 3 hosts, interrupted · 300 Hz for 20 of 60 s"
N2 = "2 of 3 processes, interrupted · 300 Hz for 20 of 60 s"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of three hosts that was interrupted after 20 s; a process of n2 had been cut short before."""
    hosts = [
        MadeHost("n1", {11: "main;work 40\n"}),
        MadeHost("n2", {12: "main;work 20\n", 13: "main;rest 30\n"}),
        MadeHost("n3"),
    ]
    hosts[1].fails("failed", "no room", pid=14)
    hosts[2].fails("failed", "no route to host")
    folder = make_run(tmp_path_factory.mktemp("covered") / "run", hosts)
    run = content_of(folder)
    for host in run["hosts"]:
        for one in host["recordings"]:
            one["seconds"] = 5.0 if one["process"]["pid"] == 12 else 20.0
    rewrite(folder, {**run, "interrupted": True})
    return make_report(folder.path).page


def second_line(picture: Path) -> str:
    texts = ElementTree.parse(picture).getroot().findall(f"{SVG}text")
    return "".join("".join(text.itertext()) for text in texts[1:])


def test_a_saved_picture_has_its_coverage(viewer: Viewer, page: Path, downloads: Path) -> None:
    viewer.open(page)
    for state, covered in (
        ("", RUN),
        ("scope=mean", RUN),
        ("view=reversed", RUN),
        ("scope=host:1", N2),
        ("scope=process:1", f"1 process for 5 of 60 s, of a run of {RUN}"),
        ("scope=rest:process:1", f"2 processes, of a run of {RUN}"),
        (
            "view=compare&scope=host:0&with=host:1",
            f"n1: 1 of 1 process, interrupted · 300 Hz for 20 of 60 s | n2: {N2}",
        ),
    ):
        viewer.follow(state)
        picture = save(viewer, downloads, "svg")
        assert second_line(picture) == covered, state
        picture.unlink()


def test_a_long_line_fits_the_picture(viewer: Viewer, page: Path, downloads: Path) -> None:
    viewer.open(page, "view=compare&scope=process:0&with=process:1")
    file = save(viewer, downloads, "svg")
    viewer.driver.get(file.as_uri())
    line, picture = viewer.driver.execute_script(
        "const [svg, line] = [document.documentElement, document.querySelectorAll('svg > text')[1]];"
        "return [line, svg].map((one) => one.getBoundingClientRect().right)"
    )
    assert len(second_line(file)) > 200 and line <= picture


def test_a_picture_of_a_file_has_no_coverage(viewer: Viewer, tmp_path: Path, downloads: Path) -> None:
    viewer.open(folded_page(tmp_path, "a;b 5\n"))
    assert second_line(save(viewer, downloads, "svg")) == ""
