"""Reports of profiles that a page has no room for."""

from __future__ import annotations

import pytest

from hprofiler.base.errors import PicturesError
from hprofiler.report import make_report
from hprofiler.report.page import PageData
from tests.unit.test_report import two_hosts


def test_a_process_that_the_page_has_no_room_for_is_in_no_sum(tmp_path, monkeypatch):
    add = PageData.add

    def picky(self, event, process, profile):
        if process.pid == 3:
            raise RuntimeError("too many nodes")
        return add(self, event, process, profile)

    monkeypatch.setattr(PageData, "add", picky)
    folder = two_hosts(tmp_path / "run")
    report = make_report(folder.path)
    (problem,) = report.analysis.problems
    assert (problem.pid, "too many nodes" in problem.reason) == (3, True)
    assert report.events[0].total == 380
    assert (folder.path / "hosts/small/cpu.folded").read_text() == "a;cold 60\na;hot 20\n"


def test_a_page_that_cannot_be_made_is_no_crash(tmp_path, monkeypatch):
    def full(*_):
        raise RuntimeError("too many frames")

    monkeypatch.setattr("hprofiler.report.page.PageData.write", full)
    with pytest.raises(PicturesError, match=r"cannot make the report of .*: too many frames") as caught:
        make_report(two_hosts(tmp_path / "run").path)
    assert "hosts" in caught.value.remedy
