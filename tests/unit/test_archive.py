"""The archive: tables, places, adding and compacting, and what a kill or a damaged file leaves."""

from __future__ import annotations

import hashlib
import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from hprofiler.analysis.diff_sides import RunSource
from hprofiler.analysis.result import AnalysisResult
from hprofiler.archive.add import Added, add
from hprofiler.archive.place import ArchiveError, open_place
from hprofiler.archive.reading import opened
from hprofiler.archive.schema import MARKER, TABLES, TYPES, VERSION
from hprofiler.base.errors import UsageError
from hprofiler.report import make_report
from tests.timed_profile import Row, timed_profile
from tests.viewer.made_run import MadeHost, content_of, make_run, rewrite, spark_run

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
    run = make_run(path, hosts, events=("cpu", "alloc"))
    rewrite(run, {**content_of(run), "started": f"2026-11-{1 + seed:02}T06:00:00+00:00"})
    return run.path


def added(folders: list[Path], place: Path, **options: Any) -> list[Added]:
    found = list(add(folders, str(place), **options))
    assert [one.failure for one in found] == [None] * len(folders)
    return found


def rows(place: Path, query: str) -> list[tuple[Any, ...]]:
    with opened(str(place)) as duckdb:
        return duckdb.execute(query).fetchall()


def analysis_of(folder: Path) -> AnalysisResult:
    return make_report(folder).analysis


def test_tables_have_only_types_that_all_readers_know():
    for table in TABLES.values():
        assert set(table.columns.values()) <= set(TYPES), table.name
        assert set(table.order) <= set(table.columns), table.name
        assert next(iter(table.columns)) == ("stack_high" if table.name == "stacks" else "run")


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
    place, analysis = tmp_path / "archive", analysis_of(run)
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


def test_sums_of_processes_are_those_that_diff_uses(tmp_path: Path):
    run = spark_run(tmp_path / "run").path
    added([run], tmp_path / "archive")
    source = RunSource(run)
    spread = source.read("cpu", source.events["cpu"], lambda *_: None).spread
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
