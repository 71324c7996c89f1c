"""What changed between two runs or files: the numbers, what is chance, and the command."""

from __future__ import annotations

import json
import random
from collections import Counter
from functools import partial
from pathlib import Path

import pytest

from hprofiler._flamegraph import Profile
from hprofiler.analysis.diff import compare_paths
from hprofiler.analysis.diff_findings import findings_of_changes
from hprofiler.analysis.noise import Noise, Spread
from hprofiler.base.errors import UsageError
from hprofiler.report.diff_text import lines
from tests.unit.command import ROOT, exit_code, hprofiler
from tests.unit.test_outliers import USUAL, identical, sampled
from tests.viewer.block import described
from tests.viewer.made_profile import counted, made_profile
from tests.viewer.made_run import MadeHost, changed, make_run

HOT = "com/acme/Job.m2"
SHOWN = "com.acme.Job.m2"
# A quarter more of all work, in one method: its share goes from 8.3 % to 26.7 %.
WORSE = [share + (0.25 * sum(USUAL) if number == 2 else 0) for number, share in enumerate(USUAL)]


MAIN = "org.apache.spark.executor.CoarseGrainedExecutorBackend"


def nobody(side, done, of):
    """No progress is shown."""


def compare(before, after, event=None, absolute=False):
    return compare_paths(Path(before), Path(after), event, absolute, nobody)


def run_of(path, *folded):
    """A run folder with a host and a process for each text."""
    hosts = [MadeHost(f"h{n}", {n + 1: text}) for n, text in enumerate(folded)]
    return make_run(path, hosts).path


def by_name(changes):
    return {one.name: one for one in changes.methods}


diff = partial(hprofiler, "diff")


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


def test_only_the_method_that_costs_more_is_reported(before, after):
    changes = compare(before, after)
    (grew,) = changes.grew("own")
    assert grew.name == HOT and 0.15 < grew.own.change < 0.22 and grew.own.noise < 0.05
    assert changes.grew("total") == [], "the totals tell no more than the own costs"
    assert 0.2 * sum(USUAL) / sum(WORSE) > 0.1, "all others are less of the whole"
    assert "com/acme/Job.m0" in {one.name for one in changes.shrank("own")}


@pytest.mark.parametrize(("processes", "bursts"), [(1, False), (2, True), (3, True), (6, True)])
def test_two_runs_of_the_same_program_have_no_change_beyond_noise(tmp_path, processes, bursts):
    dice = random.Random(processes)
    for number in range(8):
        sides = [
            make_run(tmp_path / f"{number}{side}", identical(dice, processes, 600, bursts)).path
            for side in ("before", "after")
        ]
        changes = compare(*sides)
        assert not changes.grew("own") and not changes.shrank("own"), lines(changes, [], 5)
        assert not changes.appeared.sure and not changes.vanished.sure
        assert not changes.grew_over(0.0)


def test_processes_are_compared_with_those_of_their_kind(tmp_path):
    """A driver differs from executors: that is not noise of the executors."""

    def run(name, slow):
        executors = [f"main;work {7000 - slow}\nmain;slow {slow}\n"] * 4
        hosts = [MadeHost(f"h{n}", {n + 1: text}) for n, text in enumerate(executors, 1)]
        driver = MadeHost("h0", {1: "main;plan 5000\n"}, label="driver")
        return make_run(tmp_path / name, [driver, *hosts]).path

    changes = compare(run("a", 500), run("b", 1000))
    assert set(changes.before.spread.kinds) == {f"{MAIN} driver", f"{MAIN} executor N"}
    slow = by_name(changes)["slow"].own
    assert slow.beyond and slow.noise < 0.02


MONITOR = (
    "_complete_monitor_locking_Java;ObjectMonitor::enter;___pthread_cond_wait;__futex_abstimed_wait_common"
)
SLEEP = "java/lang/Thread.sleep_[j];JVM_Sleep;___pthread_cond_timedwait;__futex_abstimed_wait_common"
POOL = f"java/lang/Thread.run_[j];java/util/concurrent/ThreadPoolExecutor.getTask_[j];{SLEEP}"
RUNS = "com/acme/Job.run_[i]"
SLEEPS, WAITS = "sleeps in com/acme/Job.run", "waits for a monitor in com/acme/Job.run"


@pytest.mark.parametrize("callers_unsure", [False, True])
def test_waits_are_compared_by_who_waits_for_what_besides_idle_threads(tmp_path, callers_unsure):
    def run(name, monitor, idle):
        stacks = f"{RUNS};{MONITOR} {monitor}\n{RUNS};{SLEEP} 1000\n{POOL} {idle}\n"
        folder = make_run(
            tmp_path / name, [MadeHost("h", events={"wall": {1: counted("wall", stacks)}})], events=["wall"]
        )
        with changed(folder) as content:
            content["hosts"][0]["recordings"][0]["callers_unsure"] = callers_unsure
        return folder.path

    changes = compare(run("a", 1, 5000), run("b", 3000, 9000), "wall")
    own = {one.name: (one.own.before, one.own.after) for one in changes.methods if one.own.change}
    assert own == {SLEEPS: (1000 / 1001, 0.25), WAITS: (1 / 1001, 0.75)}
    assert by_name(changes)["com/acme/Job.run"].total.after == 1.0
    assert [side.spread.samples for side in changes.sides] == [1001, 4000]
    first = findings_of_changes(changes)[0]
    assert first.text.startswith(
        "Waiting for a monitor in Job.run takes 74.9 points more of wall-clock time besides "
    )
    assert (first.method, first.row) == ("com/acme/Job.run", WAITS)


def test_a_side_that_only_idles_keeps_its_idle_threads(tmp_path):
    hosts = [MadeHost("h", events={"wall": {1: f"{POOL} 50\n"}})]
    idle = make_run(tmp_path / "a", hosts, events=["wall"]).path
    changes = compare(idle, idle, "wall")
    assert (
        by_name(changes)["waits for work in java/util/concurrent/ThreadPoolExecutor.getTask"].own.after == 1.0
    )


def test_what_doubles_as_a_whole_is_named_by_the_innermost_method_above_all(tmp_path):
    def run(name, times):
        text = "".join(f"Thread.run;Job.run;Job.m{n} {600 * times}\n" for n in range(8))
        return run_of(tmp_path / name, *[f"{text}Thread.run;Job.close {50 * times}\n"] * 3)

    first = findings_of_changes(compare(run("a", 1), run("b", 2), absolute=True))[0]
    assert first.method == "Job.run"


def test_runs_of_different_events_are_an_error(tmp_path, before):
    hosts = [MadeHost("h", events={"alloc": {1: "main;x 10\n"}})]
    alloc = make_run(tmp_path / "alloc", hosts, events=("alloc",)).path
    with pytest.raises(UsageError, match="no event in common") as error:
        compare(before, alloc)
    assert "before has cpu" in error.value.remedy and "alloc has alloc" in error.value.remedy
    with pytest.raises(UsageError, match="not both have the event 'lock'"):
        compare(before, before, "lock")


def test_the_command_prints_what_changed(before, after):
    done = diff(before, after, "--top", 1)
    assert (done.returncode, done.stderr) == (0, "")
    first, second, third, *rest = done.stdout.splitlines()
    assert first == f"cpu: {before} (16,000 samples, 4 processes) → {after} (12,000 samples, 4 processes)"
    assert second.startswith(
        "shares of CPU time; noise is the most that chance explains, from the number of samples"
    )
    assert third == "" and rest[0].startswith("Job.m2 takes 18.")
    assert rest[1].startswith("Other methods cost more: that alone makes most methods' shares 0.8")
    row = next(line for line in rest if line.endswith(SHOWN))
    cells = row.split()
    assert "% to " in rest[0] and " %" not in done.stdout
    assert "u202f" not in diff(before, after, "--json").stdout
    assert cells[0].endswith("%") and cells[2].startswith("+1") and cells[3].startswith("±")
    assert rest[rest.index("less self cost:") + 2].endswith("com.acme.Job.m0")


def test_fail_over_is_an_exit_code_for_ci(before, after):
    done = diff(before, after, "--fail-over", "5%")
    assert done.returncode == 1
    assert f"hprofiler: {SHOWN} grew: +1" in done.stderr
    assert diff(before, after, "--fail-over", "25").returncode == 0, "it grew by less"
    assert diff(before, before, "--fail-over", "0").returncode == 0
    assert diff(after, before, "--fail-over", "5%").returncode == 0, "what got faster is no failure"
    assert diff(before, after, "--fail-over", "5%", "--absolute").returncode == 1


def test_fail_over_needs_three_processes_of_a_role(tmp_path, before, after):
    """With fewer than three processes of a role, two JVMs of one program may differ as much."""
    dice = random.Random(3)
    fewer = run_of(tmp_path / "fewer", *(sampled(dice, WORSE, 3000) for _ in range(2)))
    done = diff(before, fewer, "--fail-over", "5%")
    assert done.returncode == 3
    line, remedy = done.stderr.splitlines()
    assert remedy.startswith("  give three runs a side")
    assert line.startswith(f"hprofiler: cannot tell whether {SHOWN} grew (+1")
    assert line.endswith("): fewer than 3 processes of a role on a side")
    told = json.loads(diff(before, fewer, "--fail-over", "5%", "--json").stdout)
    reason = "fewer than 3 processes of a role on a side"
    assert (told["failed"], told["unsure"]) == ([], [{"method": HOT, "reason": reason}])
    assert json.loads(diff(before, after, "--fail-over", "5%", "--json").stdout)["unsure"] == []
    more = run_of(tmp_path / "more", sampled(dice, WORSE, 3000))
    done = diff(before, f"{fewer},{more}", "--fail-over", "5%", "-o", tmp_path / "page.html")
    assert done.returncode == 1 and "(9,000 samples, 3 processes)" in done.stdout
    assert diff(before, f"{fewer},{tmp_path / 'none'}").returncode == 2
    stored = [path / "hosts/h0/1/cpu.pb.gz" for path in (before, fewer)]
    assert diff(*stored, "--fail-over", "5%").returncode == 1, "files are taken at their word"


def test_what_noise_hides_of_few_processes_is_not_certain_in_json_too(tmp_path):
    before, after = (run_of(tmp_path / str(x), f"main;x {x}\nmain;y {100 - x}\n") for x in (30, 45))
    done = diff(before, after, "--fail-over", "5%", "--json")
    (unsure,) = json.loads(done.stdout)["unsure"]
    assert (done.returncode, unsure["method"]) == (3, "x") and unsure["reason"] in done.stderr


def test_a_larger_share_of_less_work_is_not_growth(tmp_path):
    """Half of the work is gone: everything else has twice its share at the same cost."""
    before = run_of(tmp_path / "a", "main;regex 5000\nmain;parse 3000\nmain;write 2000\n")
    after = run_of(tmp_path / "b", "main;regex 100\nmain;parse 3010\nmain;write 1990\n")
    changes = compare(before, after)
    assert [one.name for one in changes.grew("own")] == ["parse", "write"], "shares are what they are"
    assert "  … and 1 more" in lines(changes, [], 1)
    assert changes.unchanged.usual == pytest.approx(2, rel=0.05)
    assert not changes.grew_over(0.02)
    worse = run_of(tmp_path / "c", "main;regex 100\nmain;parse 3010\nmain;write 3500\n")
    assert [one.name for one in compare(before, worse).grew_over(0.05)] == ["write"]
    hotter = run_of(tmp_path / "d", "main;regex 50000\nmain;parse 3010\nmain;write 1990\n")
    assert [one.name for one in compare(before, hotter).grew_over(0.05)] == ["regex"]


def service(**costs):
    """A service's stacks: it cleans texts by a regular expression, which some callers compile, and more."""
    stacks = {
        "compile": "main;clean;java/util/regex/Pattern.compile;java/util/regex/Pattern.<init>",
        "in_replace": "main;clean;java/lang/String.replaceAll;java/util/regex/Pattern.compile",
        "replace": "main;clean;java/lang/String.replaceAll;match",
        "match": "main;clean;match",
        "md5": "main;checksum;md5",
        "score": "main;score",
        "mask": "main;com/acme/Masking.mask",
        "digits": "main;com/acme/Masking.mask;digits",
        "jit": "CompileBroker::compiler_thread_loop",
    }
    return "".join(f"{stacks[name]} {cost}\n" for name, cost in costs.items())


BASE = {"md5": 1780, "score": 2000}
COMPILED = {**BASE, "match": 3500, "compile": 2700}
ONCE = {**BASE, "match": 3500}
REPLACED = {**BASE, "replace": 3500, "in_replace": 2700}
MASKED = {**ONCE, "mask": 1500, "digits": 2000}
GONE = "Pattern.compile is gone: 27.1 points less of CPU time."
IS_NEW = "Pattern.compile is new: 27.1 points more of CPU time."


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        (COMPILED, ONCE, [GONE]),
        (ONCE, COMPILED, [IS_NEW]),
        (REPLACED, ONCE, [GONE]),  # String.replaceAll is gone too, but what it matched is not
        (ONCE, REPLACED, [IS_NEW]),
        (ONCE, MASKED, ["Masking.mask is new: 32.5 points more of CPU time."]),
        (COMPILED, MASKED, ["Masking.mask is new: 32.5 points more of CPU time.", GONE]),
        ({**COMPILED, "jit": 100}, {**ONCE, "jit": 5000}, ["Pattern.compile is gone: 26.8 points less"]),
        (
            ONCE,
            {**ONCE, "md5": 4000},
            ["checksum takes 17.7 points more of CPU time with all it calls: from 24.5\u202f%"],
        ),
        (ONCE, ONCE, ["No method changed beyond noise."]),
    ],
)
def test_what_explains_a_change_is_named_first(tmp_path, old, new, says):
    changes = compare(run_of(tmp_path / "a", service(**old)), run_of(tmp_path / "b", service(**new)))
    texts = [one.text for one in findings_of_changes(changes) if one.code in ("changed", "unchanged")]
    assert [text[: len(start)] for text, start in zip(texts, says, strict=False)] == says
    assert len(texts) == len(says) + ("jit" in old), texts


def test_well_known_code_is_named_first_where_no_method_has_all_of_it(tmp_path):
    """Callers may be wrong, so that the total of what all of it is below is not known."""
    parts = "".join(
        f"main;java/util/regex/Pattern${name}.match 700\n" for name in ("Start", "Slice", "CharProperty")
    )
    sides = [run_of(tmp_path / name, service(**BASE) + more) for name, more in (("a", ""), ("b", parts))]
    first = findings_of_changes(compare(*sides))[0]
    assert (
        first.text
        == "Matching regular expressions takes 35.7 points more of CPU time: from 0\u202f% to 35.7\u202f%."
    )


def test_terminal_page_and_json_say_the_same(tmp_path):
    sides = [run_of(tmp_path / name, service(**costs)) for name, costs in (("a", COMPILED), ("b", ONCE))]
    done = diff(*sides, "--json", "-o", tmp_path / "x.html")
    texts = [one["text"] for one in json.loads(done.stdout)["findings"]]
    assert texts == [
        GONE,
        "Other methods cost less: that alone makes most methods' shares 1.37 times what they were.",
    ]
    assert diff(*sides).stdout.splitlines()[3:5] == texts
    (summary,) = described(tmp_path / "x.html")["summaries"]
    assert ["".join(text for _, text in one["parts"]) for one in summary["findings"]] == texts


def test_the_json_has_everything_that_changed(before, after):
    done = diff(before, after, "--json", "--fail-over", "5%")
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
        "malformed_lines": 0,
        "incomplete": False,
        "skips_stubs": False,
        "partial": None,
        "broken": 0.0,
        "idle": 0,
        "untrusted": [],
        "callers_unsure": 0,
    }
    assert told["failed"] == [HOT]
    hot = next(one for one in told["methods"] if one["method"] == HOT)
    assert set(hot["self"]) == {"before", "after", "change", "noise", "beyond"} and hot["self"]["beyond"]
    assert hot["self"]["change"] == pytest.approx(hot["self"]["after"] - hot["self"]["before"])


def test_a_profile_that_cannot_be_used_is_left_out_with_a_warning(before, after):
    (after / "hosts/h1/2/cpu.pb.gz").write_bytes(b"damaged")
    done = diff(before, after)
    assert done.returncode == 3
    assert f"not compared: {after}: h1 pid 2: its profile in the run folder cannot be used" in done.stderr
    assert "9,000 samples, 3 processes" in done.stdout


def test_what_is_left_out_of_a_file_is_said(tmp_path):
    before, after, small, other = (tmp_path / name for name in ("before", "after", "small", "other"))
    before.write_text("a;b 500\na;c 500\n")
    after.write_text("a;b 500\na;c 500\na;c\n")
    done = diff(before, after)
    assert done.returncode == 3
    assert f"hprofiler: {after}: 1 malformed line or record was left out" in done.stderr
    small.write_text("a 1.04\nb 0.96\n")
    other.write_text("a 1.24\nb 0.76\n")
    done = diff(small, other)
    assert done.returncode == 0 and f"{small}: the counts are small fractions" in done.stderr
    assert "2,000 thousandths" in done.stdout and "noise is not known" in done.stdout
    assert diff(small, before, "--absolute").returncode == 2, "a thousandth is no count"


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["nowhere", "."], 2, "nowhere does not exist"),
        ([".ci/run", ".ci/run"], 4, "cannot read: .ci/run"),
        (["README.md", "README.md", "-o", "x.pdf"], 2, "must end with .svg or .html"),
        (["README.md", "README.md", "--fail-over", "much"], 2, "'much' is not a share"),
        (["README.md", "README.md", "--top", "0"], 2, "rows from 1"),
    ],
)
def test_mistakes_are_errors(words, code, says, capsys, monkeypatch):
    monkeypatch.chdir(ROOT)
    assert exit_code(["diff", *words]) == code
    assert says in capsys.readouterr().err


def test_names_are_printed_without_control_characters(tmp_path):
    a = run_of(tmp_path / "a", "main;a 500\n")
    b = run_of(tmp_path / "b\x1b[0m", "main;\x1b[1m 500\nmain;" + "n" * 5000 + " 500\n")
    done = diff(a, b, "--fail-over", "5%")
    assert "grew (+50.0 points" in done.stderr
    assert "\x1b" not in done.stdout + done.stderr
    assert max(map(len, done.stdout.splitlines())) < 400


JOB = "main;a 3000\nmain;b 6000\n"


def test_amounts_of_cpu_time_do_not_depend_on_the_frequency(tmp_path):
    often, seldom = run_of(tmp_path / "a", JOB), run_of(tmp_path / "b", JOB)
    third = made_profile("cpu", "main;a 1000\nmain;b 2000\n", 100)
    third.write(seldom / "hosts/h0/1/cpu.pb.gz", "pprof", thread_label=True)
    changes = compare(often, seldom, absolute=True)
    b = by_name(changes)["b"].own
    assert (b.before, b.after) == (pytest.approx(20e9, rel=1e-6), 20e9) and not b.beyond
    assert "(30.0 s" in lines(changes, [], 5)[0]
    files = compare(*(side / "hosts/h0/1/cpu.pb.gz" for side in (often, seldom)), absolute=True)
    assert by_name(files)["b"].own.after == b.after
    (tmp_path / "x.folded").write_text(JOB)
    text = compare(often, tmp_path / "x.folded", absolute=True)
    assert by_name(text)["b"].own.after == 6000, "folded text knows no time"


def test_samples_without_a_time_are_not_called_cpu_time(tmp_path):
    for name, text in (("a", JOB), ("b", JOB + "main;c 9000\n")):
        (tmp_path / f"{name}.folded").write_text(text)
    done = diff(tmp_path / "a.folded", tmp_path / "b.folded")
    assert "c is new: 50.0 points more of samples." in done.stdout
    assert "CPU" not in done.stdout


def test_a_partial_side_is_marked(tmp_path):
    before = run_of(tmp_path / "a", JOB)
    hosts = [MadeHost("h", {1: JOB})]
    for pid in range(2, 41):
        hosts[0].fails("failed", "it went away", pid=pid)
    after = make_run(tmp_path / "b", hosts, interrupted=True).path
    partial = "1 of 40 processes on 1 of 1 host, interrupted"
    done = diff(before, after, "-o", tmp_path / "x.html")
    assert f"{after} covers {partial}" in done.stdout.splitlines()
    assert partial in (tmp_path / "x.html").read_text()
    told = json.loads(diff(before, after, "--json").stdout)
    assert (told["before"]["partial"], told["after"]["partial"]) == (None, partial)


@pytest.mark.parametrize(("few", "many"), [(300, 300), (400, 1300), (300, 3000), (300, 18_000)])
@pytest.mark.parametrize("shares", [[1.0] * 100, [1 / (n + 1) for n in range(200)]], ids=["even", "steep"])
def test_runs_of_unequal_length_have_no_change_beyond_noise(shares, few, many):
    """A method without samples in the shorter run is not new."""
    dice = random.Random(few + many)
    for _ in range(20):
        sides = []
        for samples in (few, many):
            drawn = Counter(dice.choices(range(len(shares)), shares, k=samples))
            side = Spread()
            side.add(folded("".join(f"main;m{n} {count}\n" for n, count in drawn.items())), samples)
            sides.append(side)
        for before, after in (sides, sides[::-1]):
            noise = Noise(before, after)
            for name in before.names() | after.names():
                shares_of = [side.cost("own", name) / side.total for side in (before, after)]
                assert abs(shares_of[1] - shares_of[0]) <= noise.of("own", name), name
                assert shares_of[0] or shares_of[1] <= noise.of_path(name, shares_of), f"{name} appeared"


def folded(text):
    return Profile.from_bytes(text.encode(), "folded")


def test_what_one_process_alone_does_is_chance(tmp_path):
    """A new method in one process of three may be chance; in all three it is not."""
    job = "".join(f"main;m{n} 20\n" for n in range(40))
    new = f"{job}main;new 120\n"
    before = run_of(tmp_path / "a", job, job, job)
    for one, texts in enumerate(([new, new, new], [new, job, job])):
        changes = compare(before, run_of(tmp_path / f"b{one}", *texts))
        method = next(method for method in changes.methods if method.name == "new")
        assert method.total.beyond == (len(set(texts)) == 1)
        assert [path.name for path in changes.appeared.sure] == (["new"] if method.total.beyond else [])
        assert not changes.vanished.sure
