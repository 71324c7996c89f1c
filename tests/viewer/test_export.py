"""Saved files, read back: the profile that was chosen, the picture that was shown."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from selenium.webdriver.common.keys import Keys

from hprofiler._flamegraph import Profile
from hprofiler.report import write_page
from tests.viewer.browser import Viewer
from tests.viewer.made_run import MadeHost
from tests.viewer.page_objects import run_page, save

SVG = "{http://www.w3.org/2000/svg}"
PROCESSES = {
    "n1": {11: "a;b_[0];c_[j] 30\na;b_[j];b_[i];c_[j] 20\nk;sys_read_[k] 7\n"},
    "n2": {12: "a;b_[1];d 30\nx;y 15\nx 5\n", 13: "std::sort(int*, int*) 3\n名前.メソッド_[j] 1\n"},
}
STATES = {"": ["n1", "n2"], "scope=host:1": ["n2"]}
FORMATS = {"folded": ".folded", "pprof": ".pb.gz", "speedscope": ".speedscope.json"}


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    hosts = [MadeHost(name, dict(processes)) for name, processes in PROCESSES.items()]
    return run_page(tmp_path_factory.mktemp("export"), hosts)


def expected(hosts: list[str]) -> bytes:
    texts = [text for host in hosts for text in PROCESSES[host].values()]
    return Profile.merged([Profile.from_bytes(text.encode(), "folded") for text in texts]).to_folded()


def frames_of(folded: bytes) -> set[str]:
    return {frame for line in folded.decode().splitlines() for frame in line.rpartition(" ")[0].split(";")}


@pytest.mark.parametrize("state", STATES)
def test_what_is_saved_reads_back_equal(viewer: Viewer, page: Path, downloads: Path, state: str) -> None:
    stacks = expected(STATES[state])
    viewer.open(page, state)
    for kind, ending in FORMATS.items():
        file = save(viewer, downloads, kind)
        assert file.name.endswith(ending) and "cpu" in file.name
        profile = Profile.open(file)
        assert profile.to_folded() == stacks
        if kind == "speedscope":
            frames = json.loads(file.read_text())["shared"]["frames"]
            assert {frame["name"] for frame in frames} == frames_of(stacks)
            assert profile.values[0] == ("samples", "count")
        if kind == "pprof":
            assert (b"sys_read" in gzip.decompress(file.read_bytes())) == (b"sys_read" in stacks)
            assert profile.values == [("samples", "count"), ("cpu", "nanoseconds")]
            assert abs(profile.total("cpu") - profile.total() * 10**9 / 300) <= profile.total()
        file.unlink()


def test_a_saved_pprof_keeps_the_kernels_functions_apart(
    viewer: Viewer, tmp_path: Path, downloads: Path
) -> None:
    frames = ["run (/tmp/perf-7.map)", "copy ([zstd])", "copy (/lib/libzstd.so)", "run (/lib/libx.so)"]
    script = "app 7/7 1.0: 1 cpu-clock:\n" + "".join(f"\t7f01 {frame}\n" for frame in frames)
    profile = Profile.from_bytes(script.encode(), "perf-script", kernel=True, jit=True)
    write_page(profile, tmp_path / "x.html", "x")
    viewer.open(tmp_path / "x.html")
    saved = Profile.open(save(viewer, downloads, "pprof"))
    assert saved.to_json() == profile.to_json()


def test_classes_are_saved_as_engines_write_them(viewer: Viewer, tmp_path: Path, downloads: Path) -> None:
    allocated = "a/B.copy_[i];byte[]_[i] 3\na/B.run_[0];java.lang.String_[k] 1\n"
    host = MadeHost("n1", {}, events={"alloc": {1: allocated}})
    viewer.open(run_page(tmp_path, [host], "alloc"))
    saved = save(viewer, downloads, "folded").read_text()
    assert sorted(saved.splitlines()) == sorted(allocated.splitlines())


def test_a_mean_is_saved_in_whole_numbers(viewer: Viewer, page: Path, downloads: Path) -> None:
    viewer.open(page, "scope=mean")
    profile = Profile.open(save(viewer, downloads, "folded"))
    # Of 57 and 54 samples a host has 55.5 on average, of which half is n1's.
    assert profile.total() in (55, 56)
    kernel = Profile.from_bytes(profile.to_folded(), "folded").focus("sys_read").total()
    assert kernel == pytest.approx(55.5 / 2 * 7 / 57, abs=1)


def titles(file: Path) -> dict[str, float]:
    """The frames of a picture: width by title."""
    root = ElementTree.parse(file).getroot()
    groups = root.findall(f"{SVG}g")
    return {
        str(group.findtext(f"{SVG}title")): float(group.find(f"{SVG}rect").attrib["width"])  # type: ignore[union-attr]
        for group in groups
    }


def test_the_picture_is_what_is_seen(viewer: Viewer, page: Path, downloads: Path) -> None:
    viewer.open(page, "q=y")
    viewer.click(0.95, 1)  # x, of 20 samples
    assert viewer.text("frame-name") == "x"
    frames = titles(save(viewer, downloads, "svg"))
    names = {title.rsplit(" (", 1)[0]: width for title, width in frames.items()}
    assert set(names) >= {"x", "y"} and "a" not in names
    assert names["y"] == pytest.approx(0.75 * names["x"], abs=1.5)
    assert any("y (13.5\u202f%, 15 samples" in title for title in frames)


def test_the_picture_of_a_comparison_shows_both_sides(viewer: Viewer, page: Path, downloads: Path) -> None:
    viewer.open(page, "view=compare&scope=host:0&with=host:1")
    found = [title.replace("\u202f", " ") for title in titles(save(viewer, downloads, "svg"))]
    assert any(title.startswith("k (n1 12.3 %, n2 0 %, Difference only in n1") for title in found)
    assert not any("sample" in title for title in found)


def test_names_of_files(viewer: Viewer, page: Path, downloads: Path) -> None:
    viewer.open(page)
    for state, kind, name in (
        ("view=reversed", "svg", "-cpu-Cluster-sum-reversed.svg"),
        ("view=compare&scope=host:0&with=host:1", "svg", "-cpu-n1-compared-with-n2-compare.svg"),
        ("view=compare&scope=host:0&with=host:1", "folded", "-cpu-n1.folded"),
    ):
        viewer.follow(state)
        file = save(viewer, downloads, kind)
        assert file.name.endswith(name)
        file.unlink()


def test_a_picture_is_offered_with_a_graph(viewer: Viewer, page: Path) -> None:
    viewer.open(page)
    for state, first in (
        ("view=methods", "save-folded"),
        ("view=sandwich&method=nothing", "save-folded"),
        ("view=sandwich&method=y", "save-svg"),
    ):
        viewer.follow(state)
        viewer.element("save-button").click()
        viewer.until("return document.activeElement.closest('#save-list') !== null")
        assert viewer.focused() == first
        assert viewer.element("save-svg").is_displayed() == (first == "save-svg")
        assert viewer.element("save-speedscope").is_displayed()
        viewer.press(Keys.ESCAPE)


def test_hostile_names_in_a_picture_are_text(viewer: Viewer, tmp_path: Path, downloads: Path) -> None:
    hostile = ["</title><script>1</script>", "a&b\x01\x0b<c>", "\"'{{x}}", "名前\u202e", "]]>"]
    folded = "".join(f"{name} 10\n" for name in hostile)
    page = tmp_path / "hostile.html"
    write_page(Profile.from_bytes(folded.encode(), "folded"), page, "<hostile> & title")
    viewer.open(page)
    names = {title.rsplit(" (", 1)[0] for title in titles(save(viewer, downloads, "svg"))}
    assert {name.replace("\x01", "\ufffd").replace("\x0b", "\ufffd") for name in hostile} <= names


def test_the_menu_by_keyboard(viewer: Viewer, page: Path) -> None:
    viewer.open(page)
    viewer.driver.execute_script("document.getElementById('save-button').focus()")
    viewer.press(Keys.ENTER)
    viewer.until("return document.activeElement.id === 'save-svg'")
    viewer.press(Keys.TAB)
    assert viewer.focused() == "save-folded"
    viewer.press(Keys.ESCAPE)
    assert viewer.focused() == "save-button"
    assert not viewer.element("save-list").is_displayed()
