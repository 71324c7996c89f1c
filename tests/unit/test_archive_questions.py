"""Questions to an archive: their answers are those of the run folders, and what is printed."""

from __future__ import annotations

import json
import random
import re
import shlex
import subprocess
from collections.abc import Sequence
from configparser import ConfigParser
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
import yaml

from hprofiler.analysis.diff import Changes, compare, compare_paths, compare_sources
from hprofiler.analysis.diff_sides import LeftOut, RunSource, Side
from hprofiler.analysis.noise import Noise
from hprofiler.archive import questions
from hprofiler.archive.add import add
from hprofiler.archive.check import check
from hprofiler.archive.compact import compact
from hprofiler.archive.grown import grew
from hprofiler.archive.place import VARIABLE
from hprofiler.archive.questions import cost, history, where
from hprofiler.archive.reading import opened
from hprofiler.archive.selection import Asked
from hprofiler.archive.sides import ArchiveSide
from hprofiler.cli.options.parser import parse
from hprofiler.report import make_report
from hprofiler.report.time_plot import Line, Value, lines
from tests.unit.command import ROOT, exit_code
from tests.unit.test_archive import random_run
from tests.unit.test_outliers import USUAL, sampled
from tests.viewer.block import blocks, described
from tests.viewer.made_profile import counted
from tests.viewer.made_run import MadeHost, make_run

FIRST = datetime(2026, 11, 1, 2, 30)
DAY = timedelta(days=1)
HOT = "com/acme/Job.m4"
SHOWN = "com.acme.Job.m4"
APP = "nightly-etl"


def nobody(*_: object) -> None:
    """No progress is shown."""


def work_of(number: int, day: int, hour: int = 0, hot: float = 0.0, samples: int = 2000) -> str:
    """What a process of a night does; `hot` is how much one method has of all work."""
    dice = random.Random(repr((number, day, hour)))
    weights = [share + (hot * sum(USUAL) if place == 4 else 0) for place, share in enumerate(USUAL)]
    return sampled(dice, weights, samples + 100 * number)


def night(path: Path, *days: int, hot: float = 0.0, app: str = APP, hours: Sequence[int] = (0,)) -> Path:
    """A run of three executors and a driver; with several days or hours one run of all their processes."""
    whens = [(day, hour) for day in days for hour in hours]
    hosts = [
        MadeHost(f"n{place}-{number}", {number: work_of(number, day, hour, hot)}, label=label)
        for place, (day, hour) in enumerate(whens)
        for number, label in enumerate(("driver", "", "", ""), 1)
    ]
    started = FIRST + DAY * days[0] + timedelta(hours=hours[0])
    target = {"kind": "yarn", "name": app}
    return make_run(path, hosts, started=f"{started.isoformat()}+00:00", target=target).path


def archived(place: Path, *runs: Path) -> Asked:
    for run in runs:  # one by one, in this process
        assert [one.failure for one in add([run], str(place))] == [None]
    return Asked(str(place))


@pytest.fixture(scope="module")
def nights(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Ten nights, of which the last three are slower."""
    folder = tmp_path_factory.mktemp("nights")
    return [night(folder / f"{day:02}", day, hot=0.15 if day >= 7 else 0.0) for day in range(10)]


@pytest.fixture(scope="module")
def asked(nights: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Asked:
    asked = archived(tmp_path_factory.mktemp("archives") / "archive", *nights)
    list(compact(asked.place))
    return asked


def side_of(path: Path, event: str = "cpu") -> Side:
    source = RunSource(path)
    return source.read(event, source.events[event], nobody, None, LeftOut())


def changes_of(changes: Changes) -> dict[str, tuple[object, ...]]:
    return {
        one.name: tuple(
            pytest.approx(value, rel=1e-9, abs=1e-12)
            for moved in (one.own, one.total)
            for value in (moved.before, moved.after, moved.noise)
        )
        for one in changes.methods
    }


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("event", ["cpu", "alloc"])
def test_history_is_what_each_run_says(tmp_path: Path, seed: int, event: str) -> None:
    runs = [random_run(tmp_path / str(n), 2 * n + seed) for n in range(3)]
    asked = archived(tmp_path / "archive", *runs)
    found = history(Asked(asked.place, event=event), "main")
    assert (found.method, found.by, found.event) == ("main", "run", event)
    for run, point in zip(runs, found.points, strict=True):
        spread = side_of(run, event).spread
        noise = Noise(spread)
        assert (point.processes, point.runs) == (spread.parts, 1)
        for which, part in (("own", point.own), ("all", point.total)):
            assert part.share == spread.cost(which, found.method) / spread.total
            assert part.noise == pytest.approx(noise.of(which, found.method), rel=1e-9)


def test_many_runs_are_shown_by_day(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All processes of a day's runs count as those of one run."""
    monkeypatch.setattr(questions, "MOST_POINTS", 2)
    runs = [night(tmp_path / f"{hour}", 0, hours=[hour]) for hour in range(3)]
    found = history(archived(tmp_path / "archive", *runs, night(tmp_path / "later", 1)), HOT)
    assert (found.by, [one.runs for one in found.points]) == ("day", [3, 1])
    first, spread = found.points[0], side_of(night(tmp_path / "all", 0, hours=range(3))).spread
    assert (first.run, first.processes, first.own.share) == (None, 12, spread.cost("own", HOT) / spread.total)
    assert first.own.noise == pytest.approx(Noise(spread).of("own", HOT), rel=1e-9)


@pytest.mark.parametrize("since", [7, 4, 1])
def test_what_grew_is_what_diff_says(nights: list[Path], asked: Asked, since: int, tmp_path: Path) -> None:
    """Each day against all runs before: the same methods, changes and noise as of the run folders."""
    found = grew(asked, FIRST - timedelta(hours=1) + DAY * since)
    before = side_of(night(tmp_path / "before", *range(since)))
    expected = compare("cpu", before, side_of(nights[-1]))
    if since < 3:
        assert changes_of(found.newest) == changes_of(expected)
    else:  # nights may differ by more than chance explains
        noises = {one.name: (one.own.noise, one.total.noise) for one in expected.methods}
        for one in found.newest.methods:
            pairs = zip((one.own.noise, one.total.noise), noises[one.name], strict=True)
            assert all((ours or 0) >= (theirs or 0) * (1 - 1e-9) for ours, theirs in pairs)
    assert found.newest.unchanged.usual == pytest.approx(expected.unchanged.usual)
    assert [one.name for one in found.newest.grew_over(0.02)] == [
        one.name for one in expected.grew_over(0.02)
    ]
    grown = {
        day: {one.name for one in compare("cpu", before, side_of(nights[day])).grew("own")}
        for day in range(since, 10)
    }
    assert grown[9] == {HOT}
    answered = {one.change.name: {(day - FIRST).days + 1 for day in one.days} for one in found.own}
    assert answered == {
        name: {day for day in grown if name in grown[day]} for name in set().union(*grown.values())
    }
    assert (found.runs_before, len(found.days)) == (since, 10 - since)


def test_what_differs_from_night_to_night_has_not_grown(tmp_path: Path) -> None:
    """All processes of a night have it in common, so they do not show it."""
    nights = [night(tmp_path / f"{day}", day, hot=0.06 * (day % 2)) for day in range(8)]
    before = side_of(night(tmp_path / "before", *range(7), hot=0.06 * 3 / 7))
    assert HOT in {one.name for one in compare("cpu", before, side_of(nights[7])).grew("own")}
    found = grew(archived(tmp_path / "archive", *nights), FIRST + 6.5 * DAY)
    assert not found.own and not found.newest.grew_over(0.0)


def test_no_method_grew_in_nights_alike(nights: list[Path], tmp_path: Path) -> None:
    found = grew(archived(tmp_path / "archive", *nights[:7]), FIRST + 3.5 * DAY)
    assert not found.own and not found.total and not found.newest.grew_over(0.0)


@pytest.mark.parametrize("event", ["cpu", "alloc"])
def test_diff_with_an_archived_run_is_that_of_its_folder(
    tmp_path: Path, event: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = [random_run(tmp_path / str(seed), seed) for seed in (2, 4)]
    asked = archived(tmp_path / "archive", *runs)
    monkeypatch.setenv(VARIABLE, asked.place)
    expected = compare_paths(*runs, event, False, nobody)
    for when in ("yesterday", "2026-11-03", "-1d"):
        side = ArchiveSide(f"archive:spark-executor@{when}", datetime(2026, 11, 4, 12))
        found = compare_sources((side, RunSource(runs[1])), event, False, nobody)
        assert changes_of(found) == changes_of(expected)
        assert [one.path for one in found.diff.appeared()] == [one.path for one in expected.diff.appeared()]
        assert found.before.profile.to_folded(annotate=False) == (
            expected.before.profile.merged_tiers().to_folded(annotate=False)
        )
        of_found, of_expected = dict(found.categories), dict(expected.categories)
        assert of_found.keys() == of_expected.keys()
        for code, moved in of_found.items():
            assert (moved.before, moved.after) == (of_expected[code].before, of_expected[code].after)
            if event == "cpu":
                assert moved.noise == pytest.approx(of_expected[code].noise)


def test_cost_is_what_reports_say(nights: list[Path], tmp_path: Path) -> None:
    other = [night(tmp_path / f"other {hour}", 3, app="web", hours=[hour]) for hour in range(3)]
    asked = archived(tmp_path / "archive", *nights[:4], *other)
    runs = [*nights[:4], *other]
    analyses = [make_report(run).analysis.events[0] for run in runs]
    hours = [one.totals["cpu"] / 3.6e12 for one in analyses]
    found = cost(asked, "application")
    assert (found.unit, [one.runs for one in found.days]) == ("core hours", [1, 1, 1, 4])
    amounts = {one.name: one.amount for one in found.rows}
    assert amounts == {APP: pytest.approx(sum(hours[:4])), "web": pytest.approx(sum(hours[4:]))}
    assert found.total == pytest.approx(sum(hours))
    # Each of the seven runs is of a minute.
    assert [one.cores for one in found.rows] == [pytest.approx(one.amount * 60 / 7) for one in found.rows]
    assert found.cores == pytest.approx(sum(hours) * 60 / 7)
    etl = cost(Asked(asked.place, APP), "category")
    assert [row.name for row in etl.rows] == list(
        {key: 0 for one in analyses[:4] for key in one.work.categories}
    )
    assert etl.rows[0].days == pytest.approx(hours[:4])
    by_method = cost(asked, "method")
    assert by_method.total == pytest.approx(sum(hours))
    hot = sum(
        hour * method.self_value / one.total
        for hour, one in zip(hours, analyses, strict=True)
        for method in one.methods
        if method.name == HOT
    )
    assert {one.name: one.amount for one in by_method.rows}[HOT] == pytest.approx(hot)
    assert [one.name for one in cost(asked, "user").rows] == ["app"]


def test_waits_are_named_and_idle_threads_left_out_as_in_reports(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So a run is like itself in the archive."""
    nap = "com/acme/Job.nap;java/lang/Thread.sleep;JVM_Sleep;___pthread_cond_timedwait"
    idle = "java/lang/Thread.run;java/util/concurrent/ThreadPoolExecutor.getTask;java/lang/Object.wait"
    lock = "com/acme/Job.run;com/acme/Lock_[i]"
    wall = counted("wall", f"[a];{nap} 600\n[a];com/acme/Job.run 200\n[b];{idle} 9000\n")
    host = MadeHost("n1", events={"wall": {1: wall}, "lock": {1: counted("lock", f"{lock} 40\n")}})
    run = make_run(tmp_path / "run", [host], events=("wall", "lock"), target={"kind": "yarn", "name": APP})
    asked = archived(tmp_path / "archive", run.path)
    assert check(asked.place).problems == ()
    rows = {
        event: {one.name: one.amount for one in cost(replace(asked, event=event), "method").rows}
        for event in ("wall", "lock")
    }
    sleeps, runs = rows["wall"].values()
    assert list(rows["wall"]) == ["sleeps in com/acme/Job.nap", "com/acme/Job.run"]
    assert sleeps == pytest.approx(3 * runs) and list(rows["lock"]) == [
        "waits for a monitor in com/acme/Job.run"
    ]
    monkeypatch.setenv(VARIABLE, asked.place)
    for event in ("wall", "lock"):
        sides = (RunSource(run.path), ArchiveSide(f"archive:{APP}@2026-11-20", datetime(2026, 11, 21)))
        changes = compare_sources(sides, event, False, nobody)
        assert not any(one.own.change or one.total.change for one in changes.methods), event
        assert changes.before.idle == changes.after.idle and not changes.appeared.sure


def test_where_finds_runs_by_a_part_of_a_name(tmp_path: Path) -> None:
    stacks = ["org/log4j/Jndi.lookup", "org/log4j/Layout.format;b", "org/slf4j/Log.info"]
    runs = [
        make_run(
            tmp_path / str(day),
            [MadeHost("n1", {1: f"main;{stack} 30\nmain;x 70\n"})],
            started=f"{(FIRST + DAY * day).isoformat()}+00:00",
        )
        for day, stack in enumerate(stacks)
    ]
    asked = archived(tmp_path / "archive", *(run.path for run in runs))
    found = where(asked, "log4j")
    assert [one.method for one in found.methods] == ["org/log4j/Jndi.lookup", "org/log4j/Layout.format"]
    assert [(one.started, one.total) for one in found.runs] == [(FIRST + DAY, 0.3), (FIRST, 0.3)]
    (alone,) = where(asked, "org.log4j.Jndi.lookup").runs
    assert (alone.own, alone.total, found.of_runs) == (0.3, 0.3, 3)
    for part in ("org.log4j.J", "log4j.Jndi.look"):
        assert [one.method for one in where(asked, part).methods] == ["org/log4j/Jndi.lookup"]
    many = "".join(f"main;org/log4j/A.m{number:03} 1\n" for number in range(120))
    more = make_run(tmp_path / "many", [MadeHost("n1", {1: many})])
    archived(tmp_path / "archive", more.path)
    found = where(asked, "log4j")
    assert (len(found.methods), len(found.runs), found.of_runs) == (100, 3, 4)


def test_where_has_the_shares_of_one_event_and_method(tmp_path: Path) -> None:
    asked = archived(tmp_path / "archive", *(random_run(tmp_path / str(seed), seed) for seed in range(3)))
    query = "SELECT run, event, sum(whole) AS whole FROM spreads GROUP BY ALL"
    with opened(asked.place) as duckdb:
        shares = duckdb.execute(
            "SELECT run, event, sum(own_cost) / any_value(whole), sum(all_cost) / any_value(whole) "
            f"FROM methods JOIN ({query}) USING (run, event) GROUP BY run, event, method"
        ).fetchall()
    found = where(asked, "a").runs
    assert len(found) == 3
    assert {(one.run, one.event, one.own, one.total) for one in found} <= set(shares)


@pytest.mark.parametrize(
    ("highest", "levels"),
    [(0.482, ["0%", "20%", "40%", "60%"]), (0.06, ["0%", "2%", "4%", "6%"]), (0, ["0%", "100%"])],
)
def test_levels_of_charts_are_round(highest: float, levels: list[str]) -> None:
    values = [Value(FIRST, highest), Value(FIRST + DAY, highest / 2)]
    chart = lines([Line("m", values)], lambda share: f"{100 * share:.4g}%", "label")
    assert [text for _, text in chart.levels] == levels


@pytest.mark.parametrize(
    ("words", "status", "says"),
    [
        (["history", HOT], 0, f"{SHOWN} in {APP}"),
        (["history", "Job.m4"], 0, "±"),
        (["history", "com.acme.Job.m4"], 0, "2026-11-10 02:30"),
        (["history", "job.M4"], 2, f"near names: {SHOWN}"),
        (["history", "Jbo.m4"], 2, f"near names: {SHOWN}"),
        (["history", "zzz"], 2, "has the method 'zzz' in cpu"),
        (["history", HOT, "-e", "alloc"], 2, "events there: cpu"),
        (["history", HOT, "--app", "nigtly-etl"], 2, f"did you mean {APP}?"),
        (["history", HOT, "--since", "2026-12-01"], 4, "the newest started 2026-11-10 02:30 UTC"),
        (["history", HOT, "--since", "soon"], 2, "'soon' is not a time"),
        (["history", HOT, "-o", "x.pdf"], 2, "must end with .html"),
        (["grew", "--since", "2026-11-08"], 0, "3 of 3  2026-11-10  " + SHOWN),
        (["grew", "--since", "2026-11-08", "--fail-over", "20%"], 0, SHOWN),
        (["grew", "--since", "2026-11-08", "--fail-over", "4%"], 1, f"{SHOWN} grew: +"),
        (["grew", "--since", "2026-12-01"], 4, "has no run of nightly-etl since 2026-12-01"),
        (["grew", "--since", "2020-01-01"], 4, "before 2020-01-01 00:00 UTC to compare with"),
        (["cost"], 0, "all"),
        (["cost", "--by", "method", "--since", "2026-11-08"], 0, "3 days (2026-11-08 to 2026-11-10): 3 runs"),
        (["where", "Job.m4"], 0, f"{SHOWN}: in 10 of 10 runs"),
        (["where", "Job.m1"], 0, "11 methods with 'Job.m1': in 10 of 10 runs"),
        (["where", "log4j"], 2, "has a frame with 'log4j'"),
    ],
)
def test_commands(
    asked: Asked, words: list[str], status: int, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code([*words, "--in", asked.place]) == status
    said = capsys.readouterr()
    assert says in said.out + said.err and "Traceback" not in said.err
    if status in (0, 1):
        assert exit_code([*words, "--in", asked.place, "--json"]) == status
        assert json.loads(capsys.readouterr().out)


def test_an_application_is_chosen_where_there_are_several(
    nights: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = archived(tmp_path / "archive", nights[0], night(tmp_path / "web", 1, app="web"))
    assert exit_code(["history", HOT, "--in", asked.place]) == 2
    assert f"has runs of {APP}, web\n  choose one with --app" in capsys.readouterr().err
    assert exit_code(["history", HOT, "--in", asked.place, "--app", "web"]) == 0
    assert exit_code(["where", HOT, "--in", asked.place]) == 0


def test_what_is_no_archive(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.delenv(VARIABLE, raising=False)
    assert exit_code(["cost"]) == 2
    assert "name it with --in, or in $HPROFILER_ARCHIVE" in capsys.readouterr().err
    assert exit_code(["cost", "--in", tmp_path]) == 2
    assert "is not an archive" in capsys.readouterr().err
    (tmp_path / "run.json").write_text("{}")
    assert exit_code(["cost", "--in", tmp_path]) == 2
    assert "name another folder" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words", [["history", HOT], ["grew", "--since", "2026-11-08"], ["cost"], ["where", "m4"]]
)
def test_pages_have_a_chart_and_the_answer(asked: Asked, words: list[str], tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    assert exit_code([*words, "--in", asked.place, "-o", page]) == 0
    found = described(page)
    (chart,) = blocks(found, "chart")
    marks = chart["series"][0]["marks"]
    newest = datetime(2026, 11, 10, tzinfo=timezone.utc).timestamp() * 1e3
    assert 0 <= marks[-1][0] - newest < DAY.total_seconds() * 1e3 and marks[-1][2]
    assert blocks(found, "table")[-1]["rows"]


def test_diff_command_with_an_archived_day(
    nights: list[Path],
    asked: Asked,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv(VARIABLE, asked.place)
    page = tmp_path / "change.html"
    day = f"archive:{APP}@2026-11-02"
    assert exit_code(["diff", day, nights[9], "--fail-over", "4%", "-o", page]) == 1
    assert f"cpu: {day} (" in capsys.readouterr().out and page.stat().st_size > 10_000
    for words, says in [
        ([f"archive:{APP}", nights[9]], "names no run"),
        ([f"archive:{APP}@2026-11-31", nights[9]], "is not a date"),
        ([f"archive:{APP}@2026-12-01", nights[9]], "no run of nightly-etl from 2026-12-01"),
        ([f"archive:{APP}@nothing", nights[9]], "with the id nothing"),
        ([day, nights[9], "--time", "0-5"], "--time"),
    ]:
        assert exit_code(["diff", *words]) in (2, 4)
        assert says in capsys.readouterr().err


def examples(kind: str) -> list[str]:
    """Blocks of code of docs/nightly.md."""
    return re.findall(rf"```{kind}\n(.*?)```", (ROOT / "docs" / "nightly.md").read_text(), re.S)


def test_the_commands_of_the_nightly_guide_are_accepted() -> None:
    text = "\n".join(examples(r"\w+")).replace("\\\\\n", " ").replace("\\\n", " ")
    lines = re.findall(r"^\s*(?:[A-Z]\w+ ?= ?\"?)?(?:/opt/hprofiler/bin/)?hprofiler +(.*?)\"?$", text, re.M)
    assert len(lines) > 8
    for line in lines:
        options = parse(shlex.split(line))
        assert options.words[0] in ("run", "grew", "archive"), line


def test_the_units_and_manifests_of_the_nightly_guide_are_well_formed() -> None:
    (manifest,) = examples("yaml")
    (container,) = yaml.safe_load(manifest)["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"]
    subprocess.run(["sh", "-n", "-c", container["args"][0]], check=True)
    (dag,) = examples("python")
    compile(dag, "dag.py", "exec")
    for unit in examples("ini"):
        assert ConfigParser(strict=True, interpolation=None).read_string(unit) is None
