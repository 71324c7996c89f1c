"""Categories of work: by host, process and stage, in text, JSON, differences and conversions."""

from __future__ import annotations

from pathlib import Path

import pytest

from hprofiler._flamegraph import Profile
from hprofiler.analysis.diff import compare_paths
from hprofiler.analysis.work import RULES_FILE, EventWork, WorkSums, user_rules
from hprofiler.base.errors import UsageError
from hprofiler.cli import main
from hprofiler.report.diff_text import lines, record
from hprofiler.report.work import work_record, work_text

JSON = "com.google.gson.Gson.toJson_[j]"
JOB = "com.acme.Job.run_[j]"
GC = "[GC Thread#N];memcpy"


def profile(tmp_path: Path, **counts: int) -> Profile:
    stacks = {"json": f"[task-N];{JOB};{JSON}", "job": f"[task-N];{JOB}", "gc": GC}
    path = tmp_path / "some.folded"
    path.write_text("".join(f"{stacks[name]} {count}\n" for name, count in counts.items()))
    return Profile.open(path)


@pytest.fixture
def work(tmp_path: Path) -> EventWork:
    sums = WorkSums("cpu")
    sums.add("n1", 7, profile(tmp_path, json=60, job=30, gc=10))
    sums.add("n2", 7, profile(tmp_path, json=20, job=80))
    return sums.finish()


def test_sums_are_by_host_and_process(work: EventWork) -> None:
    assert work.categories == {"json": 80, "application": 110, "gc": 10}
    assert work.hosts["n1"] == {"json": 60, "application": 30, "gc": 10}
    assert work.hosts["n2"] == work.processes["n2", 7] == {"json": 20, "application": 80}
    found = work_record(work)
    assert list(found["categories"]) == ["application", "json", "gc"]
    assert found["phases"] == {"none": 200}


def test_text_names_the_host_with_most(work: EventWork) -> None:
    heading, application, json_, gc = work_text(work).splitlines()
    assert "at least" in heading
    assert application.split() == ["55.0%", "application", "code", "30.0%", "to", "80.0%", "(n2)"]
    assert json_.split() == ["40.0%", "JSON", "20.0%", "to", "60.0%", "(n1)"]
    assert gc.split() == ["5.0%", "garbage", "collection", "0%", "to", "10.0%", "(n1)"]


def test_text_has_phases_and_says_at_least_where_code_may_be_inlined(tmp_path: Path) -> None:
    path = tmp_path / "some.folded"
    sort = "org/apache/spark/util/collection/unsafe/sort/RadixSort.sort_[j]"
    read = "org/apache/spark/shuffle/BlockStoreShuffleReader.read_[j]"
    path.write_text(f"{sort} 60\n{read} 10\n{read};{JSON} 20\n{JOB} 10\n")
    sums = WorkSums("cpu")
    sums.add("n1", 7, Profile.open(path))
    work = sums.finish()
    text = work_text(work, inlined=False)
    assert "at least" not in text
    assert text.splitlines()[-1] == "  by phase: sort 60.0%, shuffle read 30.0%, no phase 10.0%"
    assert work.by_phase["shuffle-read"] == {"other": 10, "json": 20}
    assert work_record(work)["phases"] == {"sort": 60, "shuffle-read": 30, "none": 10}


def test_waits_are_no_work(tmp_path: Path) -> None:
    sums = WorkSums("wall")
    sums.add("n1", 7, profile(tmp_path, json=60))
    assert work_text(sums.finish()) == ""


def test_a_difference_has_categories_first(tmp_path: Path) -> None:
    sides = []
    for name, counts in (("before", {"json": 1000, "job": 9000}), ("after", {"json": 5000, "job": 5000})):
        sides.append(tmp_path / f"{name}.folded")
        made = profile(tmp_path, **counts)
        made.write(sides[-1])
    changes = compare_paths(*sides, None, False, lambda *_: None)
    text = "\n".join(lines(changes, [], 5))
    assert text.index("categories of work") < text.index(JOB.removesuffix("_[j]"))
    moved = record(changes, [], 5, [])["categories"]["json"]
    assert (moved["before"], moved["after"], moved["beyond"]) == (0.1, 0.5, True)


def test_conversion_by_category(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    profile(tmp_path, json=2, gc=1)
    assert (
        main(["convert", str(tmp_path / "some.folded"), "--by", "category", "--to", "folded", "-o", "-"]) == 0
    )
    assert capsys.readouterr().out.splitlines() == [
        "[gc];[GC Thread#N];memcpy 1",
        f"[json];[task-N];{JOB};{JSON} 2",
    ]


def test_rules_of_the_user_come_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rules = tmp_path / "rules"
    rules.write_text("# ours\npricing: com.acme.*  org.acme.*\n")
    monkeypatch.setenv(RULES_FILE, str(rules))
    user_rules.cache_clear()
    try:
        sums = WorkSums("cpu")
        sums.add("n1", 7, profile(tmp_path, json=2, job=1))
        assert sums.finish().categories == {"json": 2, "pricing": 1}
        rules.write_text("pricing = com.acme.*\n")
        user_rules.cache_clear()
        with pytest.raises(UsageError, match=r"line 1 of .* is not a rule"):
            user_rules()
    finally:
        user_rules.cache_clear()
