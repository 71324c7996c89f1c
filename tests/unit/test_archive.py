"""The archive: tables, places, adding and compacting, and what a kill or a damaged file leaves."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import random
import re
import shutil
import socket
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from hprofiler.analysis.diff_sides import LeftOut, RunSource
from hprofiler.archive.add import Added, add
from hprofiler.archive.check import Checked, check
from hprofiler.archive.compact import compact
from hprofiler.archive.place import ArchiveError, open_place, place_of
from hprofiler.archive.prune import prune
from hprofiler.archive.reading import opened
from hprofiler.archive.schema import MARKER, TABLES, TYPES, VERSION
from hprofiler.base.errors import UsageError
from hprofiler.cli import main
from hprofiler.report import make_report
from tests.timed_profile import Row, timed_profile
from tests.unit.command import ROOT
from tests.viewer.made_run import MadeHost, changed, make_run, spark_run

START = 1_700_000_000_000_000
GROUPS = ("[Executor task launch worker]", "[GC Thread#N]", "[main]")
FRAMES = (
    "java/util/regex/Pattern.compile_[j]",
    "com/acme/Job.run_[j]",
    "com/acme/Job.run_[0]",
    "java/util/HashMap.get_[i]",
    "vfs_read_[k]",
    "main",
)


def random_run(path: Path, seed: int) -> Path:
    """A run of some hosts, with and without times, of CPU time and allocations."""
    dice = random.Random(seed)

    def folded() -> str:
        stacks = (
            ";".join([*dice.choices(GROUPS, k=1), *dice.choices(FRAMES, k=dice.randint(1, 5))])
            for _ in range(30)
        )
        return "".join(f"{stack} {dice.randint(1, 40)}\n" for stack in stacks)

    def timed() -> bytes:
        rows = [
            Row(
                [dice.choice(GROUPS), *dice.choices(FRAMES, k=dice.randint(1, 4))],
                dice.randrange(400),
                samples := dice.randint(1, 3),
                (samples, samples * 10_000_000),
                dice.randint(0, 2),
            )
            for _ in range(60)
        ]
        slices = [("stage 1.0", True), ("stage 2.0", True)]
        return timed_profile(rows, start=START + dice.randrange(5) * 1_000_000, slices=slices)

    hosts = [
        MadeHost(
            f"node{host}",
            {pid: timed() if seed % 2 else folded() for pid in range(1, dice.randint(2, 4))},
            events={"alloc": {1: folded()}},
        )
        for host in range(dice.randint(1, 4))
    ]
    started = f"2026-11-{1 + seed:02}T06:00:00+00:00"
    return make_run(path, hosts, events=("cpu", "alloc"), started=started).path


def added(folders: list[Path], place: Path, **options: Any) -> list[Added]:
    found = list(add(folders, str(place), **options))
    assert [one.failure for one in found] == [None] * len(folders)
    return found


def rows(place: Path, query: str) -> list[tuple[Any, ...]]:
    with opened(str(place)) as duckdb:
        return duckdb.execute(query).fetchall()


def test_tables_have_only_types_that_all_readers_know():
    for table in TABLES.values():
        assert set(table.columns.values()) <= set(TYPES), table.name
        assert set(table.order) <= set(table.columns), table.name
        assert next(iter(table.columns)) == ("stack_high" if table.name == "stacks" else "run")


def test_the_reference_has_every_column():
    text = (ROOT / "docs/reference/archive.md").read_text(encoding="utf-8")
    documented: dict[str, dict[str, str]] = {}
    for section in text.split("\n## ")[1:]:
        name, _, body = section.partition("\n")
        for names, type_ in re.findall(r"^\| (`[^|]*`) \| ([^|]*) \|", body, re.M):
            documented.setdefault(name, {}).update(dict.fromkeys(re.findall(r"`(\w+)`", names), type_))
    assert documented == {table.name: dict(table.columns) for table in TABLES.values()}


def test_a_new_archive_has_all_views_without_rows(tmp_path: Path):
    open_place(str(tmp_path / "archive"), create=True)
    with opened(str(tmp_path / "archive")) as duckdb:
        for table in TABLES.values():
            found = duckdb.execute(f"SELECT * FROM {table.name}")
            assert [column[0] for column in found.description] == list(table.columns)
            assert [str(column[1]) for column in found.description] == list(table.columns.values())
            assert found.fetchall() == []


def test_what_is_no_archive_is_refused(tmp_path: Path):
    with pytest.raises(UsageError, match="is not an archive"):
        open_place(str(tmp_path))
    (tmp_path / "letter.txt").write_text("mine")
    with pytest.raises(UsageError, match="not empty"):
        open_place(str(tmp_path), create=True)


def test_an_archive_of_another_version_is_refused(tmp_path: Path):
    (tmp_path / MARKER).write_text(json.dumps({"version": VERSION + 1}))
    with pytest.raises(ArchiveError, match=f"version {VERSION + 1}"), opened(str(tmp_path)):
        pass


def test_a_wrong_query_is_an_error_of_the_archive(tmp_path: Path):
    open_place(str(tmp_path), create=True)
    with pytest.raises(ArchiveError, match="nothing"), opened(str(tmp_path)) as duckdb:
        duckdb.execute("SELECT nothing FROM runs")


@pytest.mark.parametrize("seed", range(4))
def test_what_is_archived_is_what_the_run_says(tmp_path: Path, seed: int):
    run = random_run(tmp_path / "run", seed)
    added([run], tmp_path / "archive")
    place, analysis = tmp_path / "archive", make_report(run).analysis
    totals = {event.event: event.total for event in analysis.events}
    assert dict(rows(place, "SELECT event, total FROM events")) == totals
    assert dict(rows(place, "SELECT event, sum(value) FROM samples GROUP BY ALL")) == totals
    for event in analysis.events:
        of_event = f"WHERE event = '{event.event}'"
        hosts = f"SELECT host, sum(value) FROM samples JOIN processes USING (run, process) {of_event}"
        assert dict(rows(place, f"{hosts} GROUP BY ALL")) == {one.name: one.total for one in event.hosts}
        work = f"FROM work {of_event} GROUP BY ALL"
        assert dict(rows(place, f"SELECT category, sum(value) {work}")) == event.work.categories
        assert dict(rows(place, f"SELECT phase, sum(value) {work}")) == event.work.phases
        stacks = "FROM samples JOIN stacks USING (stack_high, stack_low)"
        by_stack = f"SELECT category, sum(value) {stacks} {of_event} GROUP BY ALL"
        assert dict(rows(place, by_stack)) == event.work.categories
        methods = f"SELECT method, sum(own_cost), sum(all_cost) FROM methods {of_event} GROUP BY ALL"
        expected = {(one.name, one.self_value, one.total_value) for one in event.methods}
        assert set(rows(place, methods)) == expected
        leaves = f"SELECT frames[-1], sum(value) {stacks} {of_event} GROUP BY ALL"
        own = {one.name: one.self_value for one in event.methods if one.self_value}
        assert dict(rows(place, leaves)) == own


def test_a_run_is_as_long_as_its_processes_together_that_follow_each_other(tmp_path: Path):
    folder = make_run(tmp_path / "run", [MadeHost("n1", {7: "main 300", 8: "main 300"})])
    with changed(folder) as run:
        first, later = run["hosts"][0]["recordings"]
        first["seconds"], later["seconds"], later["joined"] = 3.0, 4.0, 11.0
    added([folder.path], tmp_path / "archive")
    assert rows(tmp_path / "archive", "SELECT seconds FROM runs") == [(15.0,)]
    assert rows(tmp_path / "archive", "SELECT seconds FROM processes ORDER BY pid") == [(3.0,), (4.0,)]


def test_sums_of_processes_are_those_that_diff_uses(tmp_path: Path):
    run = spark_run(tmp_path / "run").path
    added([run], tmp_path / "archive")
    source = RunSource(run)
    spread = source.read("cpu", source.events["cpu"], lambda *_: None, None, LeftOut()).spread
    known = "SELECT role, parts, samples, whole, squared, weighted, sampled FROM spreads"
    (role, *found), *others = rows(tmp_path / "archive", known)
    kind = spread.kinds[role]
    sums = [kind.whole.cost, kind.whole.squared, kind.whole.weighted, kind.whole.sampled]
    assert found == [kind.parts, spread.samples, *sums] and not others
    for method, *own in rows(
        tmp_path / "archive", "SELECT method, own_cost, own_squared, own_weighted, own_sampled FROM methods"
    ):
        expected = kind.sums("own", method)
        assert (expected and [expected.cost, expected.squared, expected.weighted, expected.sampled]) == (
            own if own[0] else None
        )


def test_samples_have_their_second_stage_and_threads(tmp_path: Path):
    def row(bucket: int, samples: int, stage: int) -> Row:
        amounts = (samples, samples * 10_000_000)
        return Row([GROUPS[0], "main", "work"], bucket, samples, amounts, stage)

    made = [row(0, 1, 1), row(49, 2, 1), row(50, 4, 1), row(50, 8, 0)]
    later = timed_profile([row(0, 16, 1)], start=START + 2_500_000, slices=[("stage 3.0", True)])
    content = timed_profile(made, start=START, slices=[("stage 3.0", True)])
    run = make_run(tmp_path / "run", [MadeHost("n1", {7: content, 8: later})]).path
    added([run], tmp_path / "archive")
    found = rows(
        tmp_path / "archive",
        "SELECT pid, thread_group, stage, second, value FROM samples JOIN processes USING (run, process)",
    )
    group = "Executor task launch worker"
    assert Counter(found) == Counter(
        [
            (7, group, "stage 3.0", 0, 3),
            (7, group, "stage 3.0", 1, 4),
            (7, group, None, 1, 8),
            (8, group, "stage 3.0", 2, 16),
        ]
    )


def test_a_stack_is_named_by_the_hash_of_its_frames(tmp_path: Path):
    run = make_run(tmp_path / "run", [MadeHost("n1", {7: "[main];main;com/acme/Job.run_[j] 3\n"})]).path
    added([run], tmp_path / "archive")
    state = b""
    for frame in ("main", "com/acme/Job.run"):
        state = hashlib.sha256(state + frame.encode()).digest()
    name = hashlib.sha256(state + b"application" + b"\0").digest()
    halves = [int.from_bytes(name[at : at + 8], "big", signed=True) for at in (0, 8)]
    expected = (*halves, ["main", "com/acme/Job.run"], "application", "")
    query = "SELECT stack_high, stack_low, frames, category, phase FROM stacks"
    assert rows(tmp_path / "archive", query) == [expected]


def test_a_run_is_added_once(tmp_path: Path):
    run = random_run(tmp_path / "run", 0)
    (first,) = added([run], tmp_path / "archive")
    before = sorted((tmp_path / "archive").rglob("*"))
    (again,) = added([run], tmp_path / "archive")
    assert (first.known, again.known) == (False, True) and first.run == again.run
    assert sorted((tmp_path / "archive").rglob("*")) == before


def test_what_is_no_run_is_said_and_the_others_are_added(tmp_path: Path):
    run = random_run(tmp_path / "run", 0)
    found = list(add([tmp_path / "nothing", run], str(tmp_path / "archive")))
    assert "is not a run folder" in str(found[0].failure) and found[1].failure is None
    assert rows(tmp_path / "archive", "SELECT count(*) FROM runs") == [(1,)]


def test_pseudonyms_hide_hosts_and_users(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    run = spark_run(tmp_path / "run").path
    monkeypatch.delenv("HPROFILER_PSEUDONYM_KEY", raising=False)
    with pytest.raises(UsageError, match="HPROFILER_PSEUDONYM_KEY"):
        list(add([run], str(tmp_path / "archive"), pseudonymise=True))
    monkeypatch.setenv("HPROFILER_PSEUDONYM_KEY", "a secret of the team")
    added([run], tmp_path / "archive", pseudonymise=True)
    hosts = {host for (host,) in rows(tmp_path / "archive", "SELECT host FROM processes")}
    assert len(hosts) == 8 and all(host.startswith("host-") for host in hosts)
    for path in (tmp_path / "archive").rglob("*.parquet"):
        content = path.read_bytes()
        assert b"worker0" not in content and b"hosts.txt" not in content and b"prod.example" not in content
    with opened(str(tmp_path / "archive")) as duckdb:
        for table in TABLES:
            assert "worker0" not in str(duckdb.execute(f"SELECT * FROM {table}").fetchall())


EVERYTHING = (
    "SELECT application, started, host, event, thread_group, stage, second, frames, category, phase, value "
    "FROM samples JOIN runs USING (run) JOIN processes USING (run, process) "
    "JOIN stacks USING (stack_high, stack_low)"
)
WHOLE = ("FROM runs", "FROM events", "FROM spreads", "FROM methods", "FROM work", EVERYTHING)


def everything(place: Path) -> list[Counter[str]]:
    """All rows of all tables, in no order."""
    with opened(str(place)) as duckdb:
        return [Counter(map(str, duckdb.execute(query).fetchall())) for query in WHOLE]


def files_of(place: Path, table: str) -> list[Path]:
    return sorted(place.glob(f"{table}/*/*/*.parquet"))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four runs of one month, and the archive of them."""
    folder = tmp_path_factory.mktemp("made")
    added([random_run(folder / f"run{seed}", seed) for seed in range(4)], folder / "archive")
    return folder


@pytest.fixture
def archive(made: Path, tmp_path: Path) -> Path:
    """Of four runs in one month; each is beside it."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    return tmp_path / "archive"


def test_compacting_changes_no_answer(archive: Path):
    before = everything(archive)
    assert len(files_of(archive, "runs")) == 4
    (done,) = compact(str(archive))
    assert (done.runs, done.files) == (4, 4)
    assert everything(archive) == before
    assert [len(files_of(archive, table)) for table in ("runs", "samples", "stacks")] == [1, 1, 1]
    assert list(compact(str(archive))) == []
    assert check(str(archive)) == Checked(4, (), ())


def test_what_is_added_later_is_compacted_with_the_rest(archive: Path, tmp_path: Path):
    list(compact(str(archive)))
    added([random_run(tmp_path / "later", 9)], archive)
    before = everything(archive)
    (done,) = compact(str(archive))
    assert (done.runs, done.files) == (5, 2)
    assert everything(archive) == before


def test_files_with_many_runs_are_not_joined_again(
    archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("hprofiler.archive.compact._MOST_RUNS", 3)
    before = everything(archive)
    assert [(done.runs, done.files) for done in compact(str(archive))] == [(3, 3)]
    (full,) = (path for path in files_of(archive, "samples") if "compact-" in path.name)
    assert everything(archive) == before
    added([random_run(tmp_path / "later", 9)], archive)
    before = everything(archive)
    assert [(done.runs, done.files) for done in compact(str(archive))] == [(2, 2)]
    assert full.exists() and everything(archive) == before
    assert check(str(archive)) == Checked(5, (), ())


def test_archives_that_share_compacted_runs_are_merged_by_copying(archive: Path, tmp_path: Path):
    other, merged, expected = tmp_path / "other", tmp_path / "merged", tmp_path / "expected"
    added([tmp_path / "run3", random_run(tmp_path / "run4", 4)], other)
    added([tmp_path / f"run{seed}" for seed in range(5)], expected)
    for place in (archive, other):
        list(compact(str(place)))
        shutil.copytree(place, merged, dirs_exist_ok=True)
    assert everything(merged) == everything(expected)
    assert check(str(merged)) == Checked(5, (), ())
    assert prune(str(merged), timedelta(36500)) == 0
    assert len(files_of(merged, "runs")) == 2
    (done,) = compact(str(merged))
    assert done.runs == 5 and len(files_of(merged, "runs")) == 1
    assert everything(merged) == everything(expected)
    assert check(str(merged)) == Checked(5, (), ())


def test_no_old_run_comes_back_from_a_merged_archive(archive: Path, tmp_path: Path):
    other, merged = tmp_path / "other", tmp_path / "merged"
    started = dict(rows(archive, "SELECT started, run FROM runs"))
    newest = max(started)
    added([tmp_path / "run2", tmp_path / "run3"], other)
    for place in (archive, other):
        list(compact(str(place)))
        shutil.copytree(place, merged, dirs_exist_ok=True)
    assert prune(str(merged), datetime.utcnow() - newest + timedelta(hours=1)) == 3
    assert rows(merged, "SELECT run FROM runs") == [(started[newest],)]


def test_other_programs_read_the_files_as_they_are(archive: Path):
    pandas = pytest.importorskip("pandas")
    for table in ("runs", "samples", "stacks", "methods"):
        found = pandas.read_parquet(archive / table)
        assert {*TABLES[table].columns, "month", "app"} == set(found.columns)
        assert table == "stacks" or len(found) == rows(archive, f"SELECT count(*) FROM {table}")[0][0]


def test_a_copy_that_compact_did_not_delete_counts_once(archive: Path, tmp_path: Path):
    """As after a kill between the new file and the deletion of the old ones."""
    before = everything(archive)
    copies = {path: path.read_bytes() for path in archive.rglob("*.parquet")}
    list(compact(str(archive)))
    for path, content in copies.items():
        path.write_bytes(content)
    assert everything(archive) == before
    assert check(str(archive)).left_over
    list(compact(str(archive)))
    assert everything(archive) == before
    assert check(str(archive)) == Checked(4, (), ())


def test_prune_removes_old_runs_and_nothing_else(archive: Path, tmp_path: Path):
    new = tmp_path / "new"
    started = [start for (start,) in rows(archive, "SELECT started FROM runs ORDER BY started")]
    added([tmp_path / "run2", tmp_path / "run3"], new)
    list(compact(str(archive)))
    age = datetime.utcnow() - started[2]
    assert prune(str(archive), age + timedelta(hours=1)) == 2
    assert everything(archive) == everything(new)
    assert check(str(archive)) == Checked(2, (), ())
    assert prune(str(archive), timedelta(0)) == 4 - 2
    assert check(str(archive)) == Checked(0, (), ())
    assert list(archive.rglob("*.parquet")) == []


def test_only_one_process_compacts(archive: Path):
    place = open_place(str(archive))
    with place.lock(), pytest.raises(ArchiveError, match="another process compacts"):
        list(compact(str(archive)))
    assert len(list(compact(str(archive)))) == 1


@pytest.mark.parametrize("table", ["runs", "samples", "methods"])
def test_a_file_cut_in_half_is_said_and_nothing_wrong_is_answered(archive: Path, table: str):
    damaged = files_of(archive, table)[1]
    damaged.write_bytes(damaged.read_bytes()[: damaged.stat().st_size // 2])
    with pytest.raises(ArchiveError, match="cannot be read"):
        everything(archive)
    with pytest.raises(ArchiveError):
        list(compact(str(archive)))
    assert len(files_of(archive, "events")) == 4
    found = check(str(archive))
    assert len(found.problems) == 1 and str(damaged) in found.problems[0]


def test_a_damaged_file_of_runs_stops_no_adding_and_is_mended_by_it(archive: Path, tmp_path: Path):
    before = everything(archive)
    damaged = files_of(archive, "runs")[1]
    damaged.write_bytes(b"PAR1")
    with pytest.raises(ArchiveError, match=damaged.name):
        everything(archive)
    again = added([tmp_path / f"run{seed}" for seed in range(4)], archive)
    assert {one.run for one in again if not one.known} == {damaged.stem}
    assert everything(archive) == before
    assert check(str(archive)) == Checked(4, (), ())


def test_a_missing_file_is_said(archive: Path):
    files_of(archive, "samples")[1].unlink()
    with pytest.raises(ArchiveError, match="lacks a file"):
        everything(archive)
    assert len(check(str(archive)).problems) == 1


def test_a_file_of_another_run_is_found(archive: Path):
    one, other, *_ = files_of(archive, "samples")
    one.write_bytes(other.read_bytes())
    assert any("do not add up" in problem for problem in check(str(archive)).problems)


def test_what_a_killed_process_left_is_removed_after_an_hour(archive: Path, monkeypatch):
    before = everything(archive)
    samples = files_of(archive, "samples")[0]
    orphan = samples.with_name("20261127T020000Z-000000000000.parquet")
    part = samples.with_name(".x.parquet.host.1.part")
    mine = archive / "notes.txt"
    for path in (orphan, part, mine):
        path.write_bytes(b"half of it")
    os.utime(orphan, (0, 0))  # as a copy may keep the time of what was copied
    list(compact(str(archive)))
    assert orphan.exists() and part.exists()
    monkeypatch.setattr("hprofiler.archive.compact._LEFT_OVER_SECONDS", -1.0)
    assert len(check(str(archive)).left_over) == 2
    list(compact(str(archive)))
    assert not orphan.exists() and not part.exists() and mine.exists()
    assert everything(archive) == before


def test_an_archive_in_an_object_store(tmp_path: Path):
    pytest.importorskip("fsspec")
    runs = [random_run(tmp_path / f"run{seed}", seed) for seed in range(2)]
    address = f"memory://{tmp_path.name}/archive"
    assert [one.failure for one in add(runs, address)] == [None, None]
    assert all(one.known for one in add(runs, address))
    with opened(address) as duckdb:
        before = sorted(map(str, duckdb.execute(EVERYTHING).fetchall()))
    assert [one.runs for one in compact(address)] == [2]
    with opened(address) as duckdb:
        assert sorted(map(str, duckdb.execute(EVERYTHING).fetchall())) == before
    assert check(address) == Checked(2, (), ())
    assert prune(address, timedelta(0)) == 2
    assert check(address) == Checked(0, (), ())


def test_a_lock_of_an_object_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    fsspec = pytest.importorskip("fsspec")
    address = f"memory://{tmp_path.name}/archive"
    list(add([random_run(tmp_path / "run", 1)], address))
    files, lock = fsspec.filesystem("memory"), f"/{tmp_path.name}/archive/compact.lock"
    with (
        place_of(address).lock(),
        pytest.raises(ArchiveError, match=f"another process .*: pid {os.getpid()} on"),
    ):
        list(compact(address))
    assert not files.exists(lock)
    another = ["another-host", 1, time.time()]
    files.pipe_file(lock, json.dumps(another).encode())
    with pytest.raises(ArchiveError, match="pid 1 on another-host"), place_of(address).lock():
        pass
    # One that looks before the other has written: only one of them makes the file.
    monkeypatch.setattr(place_of(address).__class__, "read", after_a_look(place_of(address).__class__.read))
    with pytest.raises(ArchiveError, match="pid 1 on another-host"), place_of(address).lock():
        pass
    with subprocess.Popen(["true"]) as ended:
        pass
    for over in ([socket.gethostname(), ended.pid, time.time()], ["another-host", 1, time.time() - 100_000]):
        files.pipe_file(lock, json.dumps(over).encode())
        with place_of(address).lock():
            assert json.loads(files.cat_file(lock))[:2] == [socket.gethostname(), os.getpid()]
        assert not files.exists(lock)
    pipe_file = files.pipe_file  # of a library that knows no modes
    monkeypatch.setattr(type(files), "pipe_file", lambda self, path, value: pipe_file(path, value))
    with place_of(address).lock(), pytest.raises(ArchiveError), place_of(address).lock():
        pass
    assert not files.exists(lock)


def after_a_look(read: Callable[..., bytes | None]) -> Callable[..., bytes | None]:
    """Reading that finds nothing at first."""
    answers = iter([None])
    return lambda place, name: next(answers, read(place, name))


@pytest.mark.parametrize("verb", [["compact"], ["prune", "--older-than", "1d"]])
def test_an_archive_that_cannot_be_written(
    archive: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any, verb: list[str]
):
    words = ["archive", verb[0], str(archive), *verb[1:]]
    (archive / "compact.lock").mkdir()
    assert main(words) == 4
    assert f"cannot write to {archive}: Is a directory" in capsys.readouterr().err
    (archive / "compact.lock").rmdir()

    def refuse(*_: object) -> None:  # as NFS without its lock daemon does
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", refuse)
    assert main(words) == 4
    said = capsys.readouterr().err
    assert f"cannot lock {archive}/compact.lock: No locks available" in said and "Traceback" not in said


def test_the_commands(archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any):
    def told(*words: str) -> tuple[int, str]:
        code = main(["archive", *words])
        said = capsys.readouterr()
        return code, said.out + said.err

    monkeypatch.delenv("HPROFILER_ARCHIVE", raising=False)
    run = str(random_run(tmp_path / "another", 7))
    code, text = told("add", run)
    assert code == 2 and "name it with --to, or set $HPROFILER_ARCHIVE" in text
    code, text = told("add", run, str(tmp_path / "none"), "--to", str(archive))
    assert code == 3 and "added to" in text and "none: not added: " in text
    monkeypatch.setenv("HPROFILER_ARCHIVE", str(archive))
    code = main(["archive", "add", run, "--json"])
    (record,) = json.loads(capsys.readouterr().out)["runs"]
    assert code == 0 and record["known"] and record["failure"] is None
    assert told("check") == (0, "5 runs, no problem\n")
    assert told("compact")[1] == "spark-executor 2026-11: 5 files with 5 runs joined\n"
    assert told("sql", "SELECT count(*) AS runs FROM runs") == (0, "runs\n5\n")
    query = "SELECT run, started, tables[1:1] AS tables FROM runs ORDER BY run DESC LIMIT 1"
    code, text = told("sql", str(archive), query, "--json")
    assert json.loads(text) == [
        {"run": record["run"], "started": "2026-11-08T06:00:00", "tables": ["events"]}
    ]
    assert told("sql") == told("sql", str(archive))
    code, text = told("sql")
    assert code == 0 and "stack_high" in text
    code, text = told("sql", "nosuchplace")
    assert code == 2 and "nosuchplace is not an archive" in text
    assert told("sql", "SELECT 1234567.891::DOUBLE AS a, 1.50 AS b") == (
        0,
        "a            b\n1234567.891  1.50\n",
    )
    assert json.loads(told("sql", "SELECT 1.50 AS b", "--json")[1]) == [{"b": 1.5}]
    code, text = told("prune", "--older-than", "0d")
    assert code == 2 and "removes every run" in text
    for short in ("12m", "1ns"):
        code, text = told("prune", "--older-than", short)
        assert code == 2 and f"{short!r} is not an age such as 90d" in text
    code, text = told("prune", "--older-than", "1h")
    assert (code, text) == (0, "5 runs removed\n")


@pytest.mark.parametrize(
    ("selector", "classes", "given", "application"),
    [
        ("pid:7", ["com.acme.Job"], None, "com.acme.Job"),
        ("pid:7,8", ["com.acme.Job", "com.acme.Other"], None, "com.acme.Job + com.acme.Other"),
        ("acme", ["com.acme.Job"] * 2, None, "com.acme.Job"),
        ("acme", ["com.acme.Job", "com.acme.Other"], None, "acme"),
        ("spark-executor", ["com.acme.Job"], None, "spark-executor"),
        ("spark-executor", ["com.acme.Job"], "billing", "billing"),
    ],
)
def test_an_application_has_the_same_name_after_a_restart(tmp_path, selector, classes, given, application):
    run = make_run(tmp_path / "run", [MadeHost("h", dict.fromkeys(range(7, 7 + len(classes)), "main;x 9"))])
    with changed(run) as record:
        record["selector"], record["target"] = selector, {"kind": "local", "name": "h"}
        for recording, name in zip(record["hosts"][0]["recordings"], classes, strict=True):
            recording["process"]["main_class"] = name
    (added,) = add([run.path], str(tmp_path / "archive"), application=given)
    assert (added.failure, added.application) == (None, application)
