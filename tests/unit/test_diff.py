"""What changed between two runs or files: the numbers, what chance makes of them, and the command."""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
from pathlib import Path

import pytest

from hprofiler._flamegraph import Profile
from hprofiler.analysis.diff import compare_paths, split_by_certainty
from hprofiler.base.errors import ProfileError, UsageError
from hprofiler.report.diff_text import lines
from tests.unit.test_outliers import USUAL, identical, sampled
from tests.viewer.made_run import MadeHost, content_of, make_run, rewrite

ROOT = Path(__file__).resolve().parent.parent.parent
HOT = "com/acme/Job.m2"
# A quarter more of all work, in one method: its share goes from 8.3 % to 26.7 %.
WORSE = [share + (0.25 * sum(USUAL) if number == 2 else 0) for number, share in enumerate(USUAL)]


MAIN = "org.apache.spark.executor.CoarseGrainedExecutorBackend"


def nobody(side, done, of):
    """Nobody waits for progress."""


def compare(before, after, event=None, absolute=False):
    return compare_paths(Path(before), Path(after), event, absolute, nobody)


def run_of(path, *folded, **events):
    """A run folder with a host and a process for each text."""
    hosts = [MadeHost(f"h{n}", {n + 1: text}) for n, text in enumerate(folded)]
    return make_run(path, hosts).path


def by_name(changes):
    return {one.name: one for one in changes.methods}


def hprofiler(*words, **options):
    command = [sys.executable, "-m", "hprofiler", "diff", *map(str, words)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, **options)


@pytest.fixture
def before(tmp_path):
    dice = random.Random(1)
    return run_of(tmp_path / "before", *(sampled(dice, USUAL, 4000) for _ in range(4)))


@pytest.fixture
def after(tmp_path):
    dice = random.Random(2)
    return run_of(tmp_path / "after", *(sampled(dice, WORSE, 3000) for _ in range(4)))


def test_shares_before_and_after_are_the_profiles(tmp_path):
    changes = compare(
        run_of(tmp_path / "a", "main;x;y 30\nmain;x 10\nmain;z 60\n"),
        run_of(tmp_path / "b", "main;x;y 20\nmain;x;y;y 20\nmain;w 10\n"),
    )
    methods = by_name(changes)
    assert set(methods) == {"main", "x", "y", "z", "w"}
    x, y = methods["x"], methods["y"]
    assert (x.own.before, x.own.after, x.total.before, x.total.after) == (0.1, 0.0, 0.4, 0.8)
    assert (y.own.before, y.own.after, y.total.after) == (0.3, 0.8, 0.8), "a stack counts once"
    assert (methods["z"].own.which, methods["w"].own.which, y.own.which) == ("gone", "new", "")
    amounts = by_name(compare(tmp_path / "a", tmp_path / "b", absolute=True))
    amounts_of = (amounts["x"].total.before, amounts["x"].total.after, amounts["z"].own.change)
    assert amounts_of == tuple(samples * (10**9 // 300) for samples in (40, 40, -60))


def test_a_method_that_costs_more_is_found_and_nothing_that_did_not_change(before, after):
    changes = compare(before, after)
    (grew,) = changes.grew("own")
    assert grew.name == HOT and 0.15 < grew.own.change < 0.22 and grew.own.noise < 0.05
    assert changes.grew("total") == [], "the totals tell no more than the own costs"
    assert 0.2 * sum(USUAL) / sum(WORSE) > 0.1, "all others are less of the whole"
    assert "com/acme/Job.m0" in {one.name for one in changes.shrank("own")}


@pytest.mark.parametrize(("processes", "bursts"), [(1, False), (2, True), (3, True), (6, True)])
def test_two_runs_of_the_same_program_have_no_change_beyond_noise(tmp_path, processes, bursts):
    dice = random.Random(processes)
    for number in range(25):
        sides = [
            make_run(tmp_path / f"{number}{side}", identical(dice, processes, 600, bursts)).path
            for side in ("before", "after")
        ]
        changes = compare(*sides)
        assert not changes.grew("own") and not changes.shrank("own"), lines(changes, 5)
        assert not changes.appeared(5) and not changes.vanished(5)
        assert not changes.grew_over(0.0)


def test_what_varies_from_process_to_process_is_no_change(tmp_path):
    """A collector that takes 2 to 20 % of its process says nothing by taking 14 % here and 8 % there."""
    sides = []
    for name, shares in (("a", (2, 8, 14, 4, 12)), ("b", (12, 18, 20, 8, 12))):
        folded = [f"main;work {100 * (100 - share)}\nGC;copy {100 * share}\n" for share in shares]
        sides.append(run_of(tmp_path / name, *folded))
    one = by_name(compare(*sides))["copy"]
    assert one.own.before == 0.08 and one.own.after == 0.14 and not one.own.beyond
    alone = by_name(compare(*(side / "hosts/h0/1/cpu.pb.gz" for side in sides)))["copy"]
    assert alone.own.beyond, "of one process each nothing tells that it varies"


def test_processes_are_compared_with_those_of_their_kind(tmp_path):
    """A driver that does something else than its executors makes no noise of what they do."""

    def run(name, slow):
        executors = [f"main;work {7000 - slow}\nmain;slow {slow}\n"] * 4
        folder = make_run(
            tmp_path / name,
            [MadeHost(f"h{n}", {n + 1: text}) for n, text in enumerate(["main;plan 5000\n", *executors])],
        )
        content = content_of(folder)
        content["hosts"][0]["recordings"][0]["process"]["label"] = "driver"
        rewrite(folder, content)
        return folder.path

    changes = compare(run("a", 500), run("b", 1000))
    assert set(changes.before.spread.kinds) == {f"{MAIN} driver", f"{MAIN} executor N"}
    slow = by_name(changes)["slow"].own
    assert slow.beyond and slow.noise < 0.02


def test_what_appeared_and_vanished_is_told_with_its_caller(tmp_path):
    changes = compare(
        run_of(tmp_path / "a", "main;old;deep 300\nmain;same 700\n"),
        run_of(tmp_path / "b", "main;new 300\nmain;same 695\nmain;rare 5\n"),
    )
    assert [one.path for one in changes.appeared(5)] == [("main", "new")], "5 samples may be chance"
    assert [one.path for one in changes.vanished(5)] == [("main", "old")]
    text = "\n".join(lines(changes, 5))
    assert "30.0%  new ← main" in text and "30.0%  old ← main" in text


def test_events_are_compared_in_what_their_pictures_show(tmp_path):
    def run(name, kib):
        folded = f"main;a;byte[]_[i] {kib << 10}\nmain;b;byte[]_[i] {1000 << 10}\n"
        hosts = [MadeHost("h", {1: "main;x 10\n"}, events={"alloc": {1: folded}})]
        folder = make_run(tmp_path / name, hosts, events=("cpu", "alloc"))
        content = content_of(folder)
        content["hosts"][0]["recordings"][1]["samples"]["taken"] = 4000
        rewrite(folder, content)
        return folder.path

    changes = compare(run("a", 1000), run("b", 3000), "alloc")
    assert changes.after.column == ("alloc_space", "bytes")
    a = by_name(changes)["a"]
    assert (a.total.before, a.total.after) == (0.5, 0.75) and a.total.beyond
    assert a.total.noise > 0.03, "bytes are no more certain than the 4000 samples behind them"
    text = "\n".join(lines(changes, 5))
    assert "2.0 MiB, 4,000 samples, 1 process" in text and "shares of allocated memory" in text


def test_files_of_any_format_compare_with_runs(tmp_path, before, after):
    pprof = after / "hosts/h0/1/cpu.pb.gz"
    folded = tmp_path / "x.folded"
    Profile.open(pprof).write(folded)
    of_file, of_text = compare(before, pprof), compare(before, folded)
    assert of_file.event == of_text.event == "cpu"
    assert by_name(of_file)[HOT].own == by_name(of_text)[HOT].own
    assert by_name(of_file)[HOT].own.beyond
    speedscope = tmp_path / "x.speedscope.json"
    Profile.open(folded).write(speedscope)
    assert by_name(compare(folded, speedscope))[HOT].own.change == 0


def test_values_that_do_not_tell_samples_have_no_noise(tmp_path):
    for name, bytes_ in (("a", 10), ("b", 40)):
        hosts = [MadeHost("h", events={"alloc": {1: f"main;x {bytes_ << 20}\nmain;y {10 << 20}\n"}})]
        make_run(tmp_path / name, hosts, events=("alloc",))
    changes = compare(*(tmp_path / name / "hosts/h/1/alloc.pb.gz" for name in "ab"))
    assert changes.event == "alloc"
    x = by_name(changes)["x"]
    assert x.own.noise is None and not x.own.beyond
    assert [one.name for one in changes.grew_over(0.2)] == ["x"], "then the limit alone counts"
    assert "noise is not known" in "\n".join(lines(changes, 5))


def test_unlike_events_are_told(tmp_path, before):
    hosts = [MadeHost("h", events={"alloc": {1: "main;x 10\n"}})]
    alloc = make_run(tmp_path / "alloc", hosts, events=("alloc",)).path
    with pytest.raises(UsageError, match="no event in common") as error:
        compare(before, alloc)
    assert "before has cpu" in error.value.remedy and "alloc has alloc" in error.value.remedy
    with pytest.raises(UsageError, match="not both have the event 'lock'"):
        compare(before, before, "lock")


def test_what_is_compared_by_class_says_so(tmp_path):
    def run(name, stack):
        hosts = [MadeHost("n1", {}, events={"alloc": {1: f"main;work;{stack}_[k] 900\n"}})]
        return make_run(tmp_path / name, hosts, events=["alloc"]).path

    said = hprofiler(run("a", "byte[]"), run("b", "int[]")).stdout
    assert "noise  class\n" in said and "noise  method" not in said


def test_an_event_is_found_by_its_other_names(tmp_path):
    events = ("alloc", "a.b.C.m")
    hosts = [
        MadeHost(
            "n1", {}, events={"alloc": {1: "main;work;byte[]_[k] 9\n"}, "a.b.C.m": {1: "main;a/b/C.m 4\n"}}
        )
    ]
    run = make_run(tmp_path / "run", hosts, events=events).path
    for name, event in (("heap", "alloc"), ("a/b/C.m", "a.b.C.m")):
        for command in (["diff", run, run], ["outliers", run]):
            words = [sys.executable, "-m", "hprofiler", *map(str, command), "-e", name]
            done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
            assert done.stderr == "" and done.stdout.startswith(f"{event}: ")
    values = run_of(tmp_path / "v", "main;a 1\n").parent / "values.pb.gz"
    Profile.from_bytes(b"main;a 5\n", "folded").write(values, "pprof")
    with pytest.raises(UsageError, match="not both have the event 'heap'"):
        compare(values, values, "heap")


def test_a_side_without_samples_is_told(tmp_path, before):
    empty = run_of(tmp_path / "empty", "main;a 5\n")
    (empty / "hosts/h0/1/cpu.pb.gz").write_bytes(b"damaged")
    with pytest.raises(ProfileError, match=r"no samples of cpu in .*empty: its profile .* cannot be used"):
        compare(before, empty)
    done = hprofiler(before, empty)
    assert (done.returncode, done.stdout) == (4, "") and "cannot be used" in done.stderr


def test_the_command_prints_what_changed(before, after):
    done = hprofiler(before, after, "--top", 1)
    assert (done.returncode, done.stderr) == (0, "")
    first, second, third, *rest = done.stdout.splitlines()
    assert first == f"cpu: {before} (16,000 samples, 4 processes) → {after} (12,000 samples, 4 processes)"
    assert second == "shares of CPU time; noise is what samples, and the spread over processes, make of it"
    assert third.startswith("others cost more: most methods have 0.8")
    row = next(line for line in rest if line.endswith(HOT))
    cells = row.split()
    assert cells[0].endswith("%") and cells[2].startswith("+1") and cells[3].startswith("±")
    assert rest[rest.index("less, by itself:") + 2].endswith("com/acme/Job.m0")
    same = hprofiler(before, before)
    assert "nothing changed" in same.stdout.splitlines()


def test_fail_over_is_an_exit_code_for_ci(before, after):
    done = hprofiler(before, after, "--fail-over", "5%")
    assert done.returncode == 1
    assert f"hprofiler: {HOT} grew: +1" in done.stderr
    assert hprofiler(before, after, "--fail-over", "25").returncode == 0, "it grew by less"
    assert hprofiler(before, before, "--fail-over", "0").returncode == 0
    assert hprofiler(after, before, "--fail-over", "5%").returncode == 0, "what got faster is no failure"
    assert hprofiler(before, after, "--fail-over", "5%", "--absolute").returncode == 1


def test_fail_over_fails_by_nothing_that_too_few_processes_tell(tmp_path, before, after):
    """A role with fewer than three processes on a side: two JVMs of one program may differ by as much."""
    dice = random.Random(3)
    fewer = run_of(tmp_path / "fewer", *(sampled(dice, WORSE, 3000) for _ in range(2)))
    done = hprofiler(before, fewer, "--fail-over", "5%")
    assert done.returncode == 0
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"hprofiler: cannot tell whether {HOT} grew (+1")
    assert line.endswith("): fewer than 3 processes of a role on a side")
    told = json.loads(hprofiler(before, fewer, "--fail-over", "5%", "--json").stdout)
    reason = "fewer than 3 processes of a role on a side"
    assert (told["failed"], told["unsure"]) == ([], [{"method": HOT, "reason": reason}])
    assert json.loads(hprofiler(before, after, "--fail-over", "5%", "--json").stdout)["unsure"] == []
    stored = [path / "hosts/h0/1/cpu.pb.gz" for path in (before, fewer)]
    assert hprofiler(*stored, "--fail-over", "5%").returncode == 1, "files are taken at their word"


def test_what_few_processes_hide_is_told(tmp_path):
    """So noisy that nothing can fail."""
    sides = {"a": (100, 600), "b": (400, 900)}
    few, more = (
        [
            run_of(tmp_path / f"{side}{n}", *(f"main;hot {of}\nmain;cold {1000 - of}\n" for of in shares * n))
            for side, shares in sides.items()
        ]
        for n in (1, 2)
    )
    done = hprofiler(*few, "--fail-over", "5%")
    assert done.returncode == 0
    (line,) = done.stderr.splitlines()
    assert line.startswith("hprofiler: cannot tell whether hot grew (+30.0 points self, +30.0 total")
    points = re.search(r": with 2 processes on a side, a change below ([0-9.]+) points may be chance$", line)
    assert points and float(points[1]) > 30
    assert hprofiler(*few, "--fail-over", "40%").stderr == "", "it grew by less"
    assert hprofiler(*few).stderr == ""
    done = hprofiler(*more, "--fail-over", "5%")
    assert (done.returncode, done.stderr) == (0, ""), "four processes tell what is chance"


def test_a_driver_does_not_keep_its_executors_from_failing(tmp_path):
    """What grew in a role of several processes has grown, whoever else is there once."""

    def run(name, hot, driver):
        texts = [f"main;hot {hot + n}\nmain;cold {900 - n}\n" for n in range(3)]
        folder = make_run(
            tmp_path / name,
            [
                MadeHost("h0", {9: f"main;plan {driver}\nmain;wait 900\n"}),
                *(MadeHost(f"h{n}", {n: text}) for n, text in enumerate(texts, 1)),
            ],
        )
        record = content_of(folder)
        record["hosts"][0]["recordings"][0]["process"]["main_class"] = "org.apache.spark.deploy.SparkSubmit"
        rewrite(folder, record)
        return folder.path

    worse = compare(run("a", 300, 100), run("b", 3000, 100))
    slower = compare(run("c", 300, 100), run("d", 300, 3000))
    found = [split_by_certainty(one, one.grew_over(0.05)) for one in (worse, slower)]
    names = [[[method.name for method in methods] for methods in pair] for pair in found]
    assert names == [[["hot"], []], [[], ["plan"]]]


def test_what_fills_the_room_that_others_left_has_not_grown(tmp_path):
    """Half of the time is saved: all else has twice its share, and costs what it did."""
    before = run_of(tmp_path / "a", "main;regex 5000\nmain;parse 3000\nmain;write 2000\n")
    after = run_of(tmp_path / "b", "main;regex 100\nmain;parse 3010\nmain;write 1990\n")
    changes = compare(before, after)
    assert [one.name for one in changes.grew("own")] == ["parse", "write"], "shares are what they are"
    assert "  … and 1 more" in lines(changes, 1)
    assert changes.room.told == pytest.approx(2, rel=0.05)
    assert not changes.grew_over(0.02)
    worse = run_of(tmp_path / "c", "main;regex 100\nmain;parse 3010\nmain;write 3500\n")
    assert [one.name for one in compare(before, worse).grew_over(0.05)] == ["write"]
    hotter = run_of(tmp_path / "d", "main;regex 50000\nmain;parse 3010\nmain;write 1990\n")
    assert [one.name for one in compare(before, hotter).grew_over(0.05)] == ["regex"]


def test_the_json_has_everything_that_changed(before, after):
    done = hprofiler(before, after, "--json", "--fail-over", "5%")
    told = json.loads(done.stdout)
    assert (told["event"], told["value"], told["unit"], told["noise"]) == (
        "cpu",
        "samples",
        "share",
        "processes",
    )
    assert told["before"] == {
        "name": str(before),
        "total": 16_000,
        "samples": 16_000,
        "processes": 4,
        "unusable": 0,
        "partial": None,
    }
    assert told["failed"] == [HOT]
    hot = next(one for one in told["methods"] if one["method"] == HOT)
    assert set(hot["self"]) == {"before", "after", "change", "noise", "beyond"} and hot["self"]["beyond"]
    assert hot["self"]["change"] == pytest.approx(hot["self"]["after"] - hot["self"]["before"])


def test_a_profile_that_cannot_be_used_is_left_out_and_told(before, after):
    (after / "hosts/h1/2/cpu.pb.gz").write_bytes(b"damaged")
    done = hprofiler(before, after)
    assert done.returncode == 3
    assert f"not compared: {after}: h1 pid 2: its profile in the run folder cannot be used" in done.stderr
    assert "9,000 samples, 3 processes" in done.stdout


def test_the_picture_is_written(before, after, tmp_path):
    picture = tmp_path / "change.svg"
    assert hprofiler(before, after, "-o", picture).returncode == 0
    assert "16,000 samples" in picture.read_text() and "m2" in picture.read_text()


def described(page):
    content = page.read_text()
    record = re.search(r'id="hprofiler-page">(.*?)</script>', content, re.DOTALL)
    return json.loads(record[1]), content


def test_the_page_has_both_runs(before, after, tmp_path):
    page = tmp_path / "change.html"
    assert hprofiler(before, after, "-o", page, "-o", tmp_path / "change.svg").returncode == 0
    assert (tmp_path / "change.svg").exists()
    record, content = described(page)
    assert record["runs"] == ["before", "after"]
    assert [(host["name"], host["run"]) for host in record["hosts"]] == [
        (f"h{n}", run) for run in (0, 1) for n in range(4)
    ]
    assert [event["name"] for event in record["events"]] == ["cpu"]
    assert {column["process"] for column in record["columns"]} == set(range(8))
    assert re.match(
        r"Job\.m2 takes 1\d\.\d points more of CPU time: 2\d\.\d.% after 8\.\d.%\.",
        record["findings"][0][0]["text"],
    )
    assert "More, by itself" in content and "16,000 samples, 4 processes" in content


def test_the_page_of_a_file_and_a_run_of_one_name(after, tmp_path):
    (tmp_path / "x").mkdir()
    file = tmp_path / "x" / "after"
    file.write_text("main;<b>;c 3000\n")
    page = tmp_path / "change.html"
    assert hprofiler(file, after, "-o", page, "--title", "<i>").returncode == 0
    record, content = described(page)
    assert record["runs"] == ["before", "after"] and len(record["processes"]) == 5
    assert "<b>;" not in content and "<title>&lt;i&gt; · hprofiler</title>" in content


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["nowhere", "."], 2, "nowhere does not exist"),
        ([".", "."], 2, "is not a run folder: it has no run.json"),
        ([".ci/run", ".ci/run"], 4, "cannot read: .ci/run"),
        (["README.md", "README.md", "-o", "x.pdf"], 2, "must end with .svg or .html"),
        (["README.md", "README.md", "-o", "no/such/x.svg"], 2, "no such folder"),
        (["README.md", "README.md", "--fail-over", "much"], 2, "'much' is not a share"),
        (["README.md", "README.md", "--fail-over", "101"], 2, "'101' is not a share"),
        (["README.md", "README.md", "--top", "0"], 2, "rows from 1"),
        (["README.md"], 2, "AFTER"),
    ],
)
def test_mistakes_are_told(words, code, says):
    done = hprofiler(*words)
    assert (done.returncode, done.stdout) == (code, "") and says in done.stderr


def test_names_are_nothing_that_a_terminal_obeys(tmp_path):
    a = run_of(tmp_path / "a", "main;a 500\n")
    b = run_of(tmp_path / "b\x1b[0m", "main;\x1b[1m 500\nmain;" + "n" * 5000 + " 500\n")
    done = hprofiler(a, b, "--fail-over", "5%")
    assert "grew (+50.0 points" in done.stderr
    assert "\x1b" not in done.stdout + done.stderr
    assert max(map(len, done.stdout.splitlines())) < 400


def test_counts_of_methods_add_up_over_processes(tmp_path):
    """The sums that noise is made of, against the shares written out."""
    costs = [(100, 900), (300, 700), (50, 150)]
    sides = [run_of(tmp_path / name, *(f"main;a {a}\nmain;b {b}\n" for a, b in costs)) for name in "ab"]
    spread = compare(*sides).before.spread
    (kind,) = spread.kinds.values()
    share = sum(a for a, _ in costs) / sum(a + b for a, b in costs)
    apart = sum((a - share * (a + b)) ** 2 for a, b in costs) * 3 / 2
    assert kind.between(kind.sums("own", "a")) == pytest.approx(apart)
    assert kind.by_chance(kind.sums("own", "a")) == pytest.approx(450 * (1 - share))
    assert spread.by_chance("own", "a", False) == pytest.approx(share * (1 - share) / 2200)
    assert spread.times("own", "a") == pytest.approx(apart / (450 * (1 - share)))
    assert [spread.cost("own", name) for name in "ab"] == [450, 1750]
