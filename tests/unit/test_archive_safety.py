"""Nothing is lost, and nothing wrong is answered: kills at each change of a file, full disks, two writers."""

from __future__ import annotations

import hashlib
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from hprofiler import Profile
from hprofiler.analysis.diff import compare
from hprofiler.analysis.diff_sides import Side
from hprofiler.analysis.work import RULES
from hprofiler.archive.check import Checked, check
from hprofiler.archive.compact import compact
from hprofiler.archive.questions import cost
from hprofiler.archive.reading import opened
from hprofiler.archive.selection import Asked
from hprofiler.report.archive_text import cost_lines
from hprofiler.report.diff_text import lines as diff_lines
from tests.unit.command import ROOT
from tests.unit.test_archive import added, everything, files_of, random_run, rows
from tests.viewer.made_run import MadeHost, make_run

COMMAND = [sys.executable, "-m", "hprofiler", "archive"]


def killed(archive: Path, copies: Path, verb: str, *runs: Path, days: int = 0) -> list[Path]:
    """Copies of an archive, in each of which a kill stopped the verb one change later; the last is done."""
    shutil.copytree(archive, copies.with_name("changing"))
    command = [sys.executable, "-m", "tests.unit.archive_states", copies.with_name("changing"), copies, verb]
    environment = {**os.environ, "DAYS": str(days)}
    subprocess.run([str(word) for word in (*command, *runs)], cwd=ROOT, env=environment, check=True)
    return sorted(copies.iterdir(), key=lambda path: int(path.name))


@pytest.fixture
def runs(tmp_path: Path) -> list[Path]:
    return [random_run(tmp_path / f"run{seed}", seed) for seed in range(3)]


def test_a_kill_of_add_leaves_all_of_a_run_or_nothing(runs: list[Path], tmp_path: Path):
    added(runs[:1], tmp_path / "archive")
    copies = killed(tmp_path / "archive", tmp_path / "copies", "add", runs[1])
    before, after = everything(tmp_path / "archive"), everything(copies[-1])
    assert len(copies) > 7 and before != after
    assert everything(copies[-2]) == before
    for copy in copies[:-1]:
        assert everything(copy) == before
    for copy in copies[::4]:
        assert check(str(copy)).problems == ()
        added([runs[1]], copy)
        assert everything(copy) == after


@pytest.mark.parametrize("is_compacted", [False, True])
def test_a_kill_of_compact_changes_no_answer(runs: list[Path], tmp_path: Path, is_compacted: bool):
    archive = tmp_path / "archive"
    added(runs[:2], archive)
    if is_compacted:
        list(compact(str(archive)))
        added(runs[2:], archive)
    before = everything(archive)
    copies = killed(archive, tmp_path / "copies", "compact")
    assert len(copies) > 16
    for copy in copies:
        assert everything(copy) == before
    for copy in copies[::6]:
        assert check(str(copy)).problems == ()
        list(compact(str(copy)))
        assert everything(copy) == before
        assert len(files_of(copy, "runs")) == 1


def test_a_kill_of_prune_leaves_the_old_runs_or_removes_them(runs: list[Path], tmp_path: Path):
    archive = tmp_path / "archive"
    added(runs, archive)
    list(compact(str(archive)))
    query = "SELECT date_diff('day', started, now()::TIMESTAMP) FROM runs ORDER BY started DESC"
    days = rows(archive, query)[0][0]
    copies = killed(archive, tmp_path / "copies", "prune", days=days + 1)
    before, after = everything(archive), everything(copies[-1])
    assert before != after
    for copy in copies:
        assert everything(copy) in (before, after)
    for copy in copies[::6]:
        assert check(str(copy)).problems == ()


def limited() -> None:
    """As on a full disk, files cannot grow beyond some bytes."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000))


def on_a_full_disk(*words: object) -> subprocess.CompletedProcess[str]:
    command = [*COMMAND, *map(str, words)]
    return subprocess.run(command, cwd=ROOT, preexec_fn=limited, capture_output=True, text=True)


def test_a_full_disk_is_said_and_nothing_is_lost(runs: list[Path], tmp_path: Path):
    archive = tmp_path / "archive"
    added(runs[:2], archive)
    before = everything(archive)
    files = sorted(archive.rglob("*.p*"))
    done = on_a_full_disk("add", runs[2], "--to", archive)
    assert done.returncode == 4 and "cannot write" in done.stderr and "Traceback" not in done.stderr
    done = on_a_full_disk("compact", archive)
    assert done.returncode == 4 and "Traceback" not in done.stderr
    assert sorted(archive.rglob("*.p*")) == files
    assert everything(archive) == before
    assert check(str(archive)) == Checked(2, (), ())


def test_two_writers_and_a_compactor_at_once(runs: list[Path], tmp_path: Path):
    added(runs, tmp_path / "expected")
    archive = tmp_path / "archive"
    added(runs[:1], archive)
    commands = [
        ["add", *runs[:2], "--to", archive],
        ["add", *runs[1:], "--to", archive],
        ["compact", archive],
    ]
    processes = [
        subprocess.Popen([*COMMAND, *map(str, words)], cwd=ROOT, stdout=subprocess.DEVNULL)
        for words in commands
    ]
    assert [process.wait() for process in processes] == [0, 0, 0]
    assert everything(archive) == everything(tmp_path / "expected")
    list(compact(str(archive)))
    assert check(str(archive)) == Checked(3, (), ())


def test_an_archive_of_version_1_is_read():
    """Written by the first version, and kept as it is."""
    kept = Path(__file__).parent / "archive_1"
    expected = json.loads((kept / "answers.json").read_text())
    assert answers(kept / "place") == expected
    assert check(str(kept / "place")).problems == ()


def test_categories_of_different_rules_are_not_mixed_unsaid(tmp_path: Path):
    place = tmp_path / "place"
    shutil.copytree(Path(__file__).parent / "archive_1" / "place", place)
    added([make_run(tmp_path / "run", [MadeHost("n1", {1: "main;x 70\n"})]).path], place)
    for _ in range(2):
        found = cost(Asked(str(place)), "category")
        assert (found.rules, cost(Asked(str(place)), "user").rules) == (["1", "2"], [])
        assert any("different rules for categories (1 and 2)" in line for line in cost_lines(found))
        list(compact(str(place)))
        assert check(str(place)).problems == ()
    sides = [Side("then", rules=("1",)), Side("now")]
    for side in sides:
        profile = Profile.from_bytes(b"com/acme/Job.run_[j] 9\n", "folded")
        side.add(profile, 9)
        side.add_work("cpu", profile, 9)
    assert compare("cpu", sides[1], sides[1]).categories
    mixed = compare("cpu", sides[0], sides[1])
    assert not mixed.categories and any(
        "rules made them (1 and 2)" in line for line in diff_lines(mixed, [], 9)
    )


def test_other_rules_have_another_version():
    """Raise RULES where stacks get other categories or phases, and write both here."""
    rules = yaml.safe_load((ROOT / "flamegraph/rules/frames.yaml").read_text())
    of_work = ("categories", "weak", "transparent", "whole", "kernel", "frameworks", "phases")
    digest = hashlib.sha256(json.dumps([rules[name] for name in of_work]).encode()).hexdigest()[:16]
    assert (RULES, digest) == (2, "e6919513a2bc446a")


def answers(place: Path) -> dict[str, object]:
    queries = {
        "runs": "SELECT run, started, application, hosts, processes, tables FROM runs ORDER BY run",
        "events": "SELECT run, event, unit, samples, total FROM events ORDER BY ALL",
        "work": "SELECT event, category, phase, sum(value) FROM work GROUP BY ALL ORDER BY ALL",
        "methods": "SELECT event, method, sum(own_cost), sum(all_cost) FROM methods "
        "GROUP BY ALL ORDER BY ALL",
        "stacks": "SELECT array_to_string(frames, ';'), event, thread_group, stage, second, sum(value) "
        "FROM samples JOIN stacks USING (stack_high, stack_low) GROUP BY ALL ORDER BY ALL",
    }
    with opened(str(place)) as duckdb:
        found = {name: duckdb.execute(query).fetchall() for name, query in queries.items()}
    return json.loads(json.dumps(found, default=str))
