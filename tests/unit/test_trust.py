"""Profiles that cannot be trusted: what is said, what is left out, and the exit status."""

from __future__ import annotations

import json

import pytest

from hprofiler._flamegraph import Profile
from hprofiler.analysis.heaviest import heaviest
from hprofiler.report import make_report
from hprofiler.runfolder import RunFolder
from tests.unit.command import hprofiler
from tests.viewer.made_run import MadeHost, changed, make_run

RUN = "java/lang/Thread.run_[j];com/acme/Job.run_[j]"
GOOD = f"{RUN};com/acme/Job.parse_[j];com/acme/Job.hash_[j] 600\n{RUN};com/acme/Job.sum_[j] 400\n"
# What perf makes of the same without frame pointers: what runs is right, its callers are not.
BROKEN = "com/acme/Job.sum_[j];com/acme/Job.hash_[j] 600\n[libc.so];com/acme/Job.sum_[j] 400\n"


def run_of(path, good=0, broken=0, share=1.0, code="no-frame-pointers", wall=False):
    """A run of so many processes of either kind; with `wall` also of wall-clock time, which is sound."""
    texts = {pid + 1: BROKEN if pid < broken else GOOD for pid in range(good + broken)}
    host = MadeHost("h", texts)
    for pid in range(1, broken + 1):
        host.fails("degraded", "any words", "restart it", pid=pid)
        note = {"code": code, "reason": "any words", "remedy": "restart it"}
        host.outcomes[-1]["notes"] = [{**note, "parameters": {"event": "cpu", "share": share}}]
    if wall:
        host.events["wall"] = dict.fromkeys(texts, GOOD)
    return make_run(path, [host], events=("cpu", "wall") if wall else ("cpu",)).path


def event_of(path):
    (event,) = make_report(path).events
    return event


def costs(event):
    return {
        one.name: (one.self_value / event.attributed, one.total_value / event.attributed)
        for one in event.methods
    }


@pytest.mark.parametrize("code", ["no-frame-pointers", "broken-stacks"])
def test_of_broken_stacks_only_self_costs_are_shown(tmp_path, code):
    event = event_of(run_of(tmp_path / "run", broken=1, code=code))
    assert event.self_only
    answer = event.findings[0]
    assert (answer.code, answer.method) == ("self-only", "com/acme/Job.hash")
    assert "60.0" in answer.text and not any("is spent in" in one.text for one in event.findings)
    assert {name: own for name, (own, _) in costs(event).items() if own} == {
        "com/acme/Job.hash": 0.6,
        "com/acme/Job.sum": 0.4,
    }
    assert "(broken stacks)" in costs(event)


@pytest.mark.parametrize(("share", "trusted"), [(0.33, True), (0.34, False)])
def test_a_third_of_the_stacks_may_be_broken(tmp_path, share, trusted):
    run = run_of(tmp_path / "run", broken=1, share=share)
    assert event_of(run).self_only != trusted
    done = hprofiler("report", run)
    assert done.returncode == (0 if trusted else 3)
    assert ("the stacks of 1 process are broken" in done.stderr) != trusted


def test_few_broken_processes_are_left_out_of_the_others_totals(tmp_path):
    event = event_of(run_of(tmp_path / "run", good=3, broken=1))
    assert not event.self_only and "broken stacks" in event.share_of
    assert costs(event)["com/acme/Job.parse"] == (0, 0.6)
    (caveat,) = [one for one in event.findings if one.code == "broken-left-out"]
    assert "1 process with broken stacks, 25.0" in caveat.text
    assert event_of(run_of(tmp_path / "many", good=1, broken=1)).self_only


def test_processes_are_shares_of_what_tables_count(tmp_path):
    def costs_of(good, broken):
        folder = run_of(tmp_path / f"{good} {broken}", good, broken)
        event = event_of(folder)
        return [one.cost / event.attributed for one in heaviest(RunFolder.open(folder), event, 5)]

    assert costs_of(3, 1) == pytest.approx([1 / 3] * 3)
    assert costs_of(1, 1) == [0.5, 0.5]


def test_broken_stacks_are_in_no_category_of_work(tmp_path):
    def work(good, broken):
        folder = run_of(tmp_path / f"{good} {broken}", good, broken)
        return event_of(folder).work.categories

    sound = work(3, 0)
    assert sum(sound.values()) == 3000 and work(3, 1) == sound
    assert work(1, 1) == {}


@pytest.mark.parametrize("share", ["abc", float("nan"), -1, 7])
def test_what_is_no_share_is_no_error(tmp_path, share):
    event = event_of(run_of(tmp_path / "run", broken=1, share=share))
    assert event.total == 1000 and not event.self_only


def diff(*words):
    done = hprofiler("diff", *words)
    return done.returncode, done


def test_a_difference_to_broken_stacks_has_no_totals(tmp_path):
    good, broken = run_of(tmp_path / "good", good=3), run_of(tmp_path / "broken", broken=3)
    code, done = diff(good, broken, "--fail-over", "5%")
    first = done.stdout.splitlines()[0]
    assert code == 3 and "broken stacks" in first and "totals are not compared" in first
    assert "total cost" not in done.stdout and "appeared" not in done.stdout
    assert "cannot tell whether a total grew" in done.stderr
    code, done = diff(good, broken, "--json")
    answer = json.loads(done.stdout)
    assert (code, answer["self_only"], answer["after"]["broken"]) == (3, True, 1.0)
    assert [one["pid"] for one in answer["after"]["untrusted"]] == [1, 2, 3]
    assert all(one["total"] is None for one in answer["methods"])
    # The files that the report writes say it too.
    for run in (good, broken):
        make_report(run)
    code, done = diff(good / "cluster" / "cpu.pb.gz", broken / "cluster" / "cpu.pb.gz")
    assert code == 3 and "totals are not compared" in done.stdout.splitlines()[0]


def test_few_broken_processes_make_no_difference(tmp_path):
    """They do other work than the rest: without them, the rest would have more."""

    def run(name, server, share):
        texts = dict.fromkeys(range(1, 9), f"{RUN} 1000\n") | dict.fromkeys((9, 10, 11), server)
        host = MadeHost("h", texts)
        for pid in (9, 10, 11):
            host.fails("degraded", "any words", "restart it", pid=pid)
            note = {"code": "broken-stacks", "reason": "any words", "remedy": "restart it"}
            host.outcomes[-1]["notes"] = [{**note, "parameters": {"event": "cpu", "share": share}}]
        return make_run(tmp_path / name, [host]).path

    server = "java/lang/Thread.run_[j];com/acme/Server.serve_[j]"
    good, mixed = run("good", f"{server} 1000\n", 0.0), run("mixed", "com/acme/Server.serve_[j] 1000\n", 1.0)
    sound, broken = tmp_path / "sound.txt", tmp_path / "broken.txt"
    sound.write_text("R;Server.serve 3000\nR;Job.work 8000\n")
    broken.write_text("(broken stacks);Server.serve 3000\nR;Job.work 8000\n")
    for one, other in ((good, mixed), (mixed, good), (sound, broken), (broken, sound)):
        code, done = diff(one, other, "--fail-over", "5%")
        assert code == 3 and "27.3" in done.stdout.splitlines()[0], done.stdout
        assert "nothing changed" in done.stdout and "Server.serve" not in done.stdout + done.stderr


def test_an_archive_refuses_broken_stacks(tmp_path):
    pytest.importorskip("pyarrow")
    broken, mixed = (run_of(tmp_path / str(wall), good=4, broken=1, wall=wall) for wall in (False, True))
    place = tmp_path / "archive"
    (broken / "spark.json").write_text("damaged")
    done = hprofiler("archive", "add", broken, "--to", place)
    assert done.returncode == 4 and "100 % of its cpu stacks are broken" in done.stderr
    done = hprofiler("archive", "add", mixed, "--to", place, "--json")
    (problem,) = json.loads(done.stdout)["runs"][0]["problems"]
    assert (done.returncode, problem["pid"], problem["code"]) == (3, 1, "no-frame-pointers")
    assert problem["parameters"] == {"event": "cpu", "share": 1.0}
    done = hprofiler("history", "Job.parse", "--in", place, "--json")
    (point,) = json.loads(done.stdout)["points"]
    assert (json.loads(done.stdout)["event"], point["total"]["share"]) == ("wall", pytest.approx(0.6))
    assert "has the event 'cpu'" in hprofiler("history", "Job.parse", "-e", "cpu", "--in", place).stderr
    assert hprofiler("archive", "add", run_of(tmp_path / "good", good=4), "--to", place).returncode == 0
    told = hprofiler("history", "Job.parse", "-e", "cpu", "--in", place).stdout
    assert "left out: 1 run with broken stacks of cpu" in told


def unsure_run(path, *texts):
    host = MadeHost("h", dict(enumerate(texts, 1)))
    folder = make_run(path, [host])
    with changed(folder) as run:
        for recording in run["hosts"][0]["recordings"]:
            recording["callers_unsure"] = True
    return folder.path


def start(caller):
    """A start of a program: where md5 and the clock stand depends on what was inlined."""
    inlined = f"com/acme/Job.hash_[j];{caller}_[i]"
    return f"{RUN};{inlined};md5 500\n{RUN};{inlined};os::javaTimeNanos;vdso 300\n{RUN} 200\n"


def test_unsure_callers_are_a_caveat_and_no_difference(tmp_path, monkeypatch):
    one = unsure_run(tmp_path / "one", *[start("java/lang/String.getBytes")] * 3)
    two = unsure_run(tmp_path / "two", *[start("java/util/Arrays.copyOf")] * 3)
    event = event_of(one)
    assert (event.unsure_callers.processes, event.unsure_callers.share) == (3, pytest.approx(0.8))
    caveat = event.findings[-1]
    assert caveat.code == "callers-unsure" and "80.0" in caveat.text
    for picture in ("cluster/cpu.svg", "cluster/cpu-mean.svg", "hosts/h/cpu.svg"):
        assert "callers of stubs may be wrong" in (one / picture).read_text()
    assert "-XX:+DebugNonSafepoints" in caveat.text
    code, done = diff(one, two, "--fail-over", "5%")
    assert code == 0 and "nothing changed" in done.stdout and "3 processes of" in done.stdout
    answer = json.loads(diff(one, two, "--json")[1].stdout)
    assert answer["totals_unknown"] == 2 and answer["before"]["callers_unsure"] == 3
    # Nothing can be taken out of an archive's sums.
    pytest.importorskip("pyarrow")
    monkeypatch.setenv("HPROFILER_ARCHIVE", str(tmp_path / "archive"))
    (name,) = [run["run"] for run in json.loads(hprofiler("archive", "add", one, "--json").stdout)["runs"]]
    code, done = diff(f"archive:spark-executor@{name}", two, "--fail-over", "5%")
    assert code == 3 and "totals are not compared: 3 processes of archive:" in done.stdout
    assert "cannot tell whether totals of 1 method grew" in done.stderr and "Arrays" not in done.stdout
    with changed(RunFolder.open(two)) as run:
        run["started"] = "2100-01-01T00:00:00+00:00"
    assert hprofiler("archive", "add", two).returncode == 0
    grew = hprofiler("grew", "--since", "2099-12-31", "--fail-over", "5%")
    assert grew.returncode == 3 and "totals are not compared" in grew.stdout
    assert "Arrays" not in grew.stdout
    told = hprofiler("history", "java/util/Arrays.copyOf", "--json")
    assert [point["total"] for point in json.loads(told.stdout)["points"]] == [None, None]
    answer = json.loads(hprofiler("grew", "--since", "2099-12-31", "--json").stdout)
    assert answer["callers_unsure"] and answer["total"] == []
    # What is known for sure is compared as it is; its callers may be others' too, which do not show them.
    sure = make_run(tmp_path / "sure", [MadeHost("h", {1: start("java/security/MessageDigest.update")})]).path
    assert hprofiler("archive", "add", sure).returncode == 0
    told = json.loads(hprofiler("history", "MessageDigest.update", "--json").stdout)
    assert sorted(str(one["total"] and one["total"]["share"]) for one in told["points"]) == [
        "0.8",
        "None",
        "None",
    ]
    assert 'totals_unknown": 0' in diff(sure, sure, "--json")[1].stdout
    assert Profile.open(one / "hosts" / "h" / "1" / "cpu.pb.gz").unsure_callers() == 2400 / 3


def mixed(hashing, inlined):
    """A JVM of which so many of 1000 samples hash, below methods that are inlined and may be wrong."""
    hashes = f"com/acme/Job.hash_[j];{inlined}_[i]"
    return (
        f"{RUN};{hashes};sha256_implCompressMB {hashing - 5}\n{RUN};{hashes} 5\n"
        f"{RUN};com/acme/Job.match_[j] {1000 - hashing}\n"
    )


def test_what_grew_below_wrong_callers_is_named_for_the_sure_one(tmp_path):
    """The truth: hashing takes 25 and 55 %, looking up in a map nothing."""
    update, get = "java/security/MessageDigest.update", "java/util/concurrent/ConcurrentHashMap.get"
    before = unsure_run(tmp_path / "before", *[mixed(250, update)] * 3)
    after = unsure_run(tmp_path / "after", *[mixed(550, get)] * 3)
    page = tmp_path / "diff.html"
    code, done = diff(before, after, "--fail-over", "5%", "-o", page)
    text = done.stdout + done.stderr
    assert code == 1 and "the totals of 2 methods are not known" in text
    assert not any(name in text for name in ("update", "ConcurrentHashMap"))
    answer = json.loads(diff(before, after, "--json")[1].stdout)
    totals = {one["method"]: one["total"] for one in answer["methods"]}
    assert (totals["com/acme/Job.hash"]["before"], totals["com/acme/Job.hash"]["after"]) == (0.25, 0.55)
    assert (
        totals["sha256_implCompressMB"]["change"] == pytest.approx(0.3) and "com/acme/Job.run" not in totals
    )
    assert totals.get(update) is None and (answer["appeared"], answer["vanished"]) == ([], [])
    text = page.read_text().partition('id="hprofiler-page">')[2].partition("</script>")[0]
    (event,) = json.loads(text)["events"]
    assert event["unsure"] == {"code": ["sha256_implCompressMB"], "methods": [update, get], "moved": True}
    texts = [mixed(550, get)] * 3
    exact = make_run(tmp_path / "exact", [MadeHost("h", dict(enumerate(texts, 1)))]).path
    code, done = diff(before, exact, "--fail-over", "5%")
    assert code == 3 and "only one side was compiled with DebugNonSafepoints" in done.stdout
    # A run alone says of its tables and of its page what is not known.
    of_run = event_of(after)
    known = {one.name: one.known for one in of_run.methods}
    assert not known[get] and known["com/acme/Job.hash"] and known["sha256_implCompressMB"]
    assert "Job.hash" in of_run.findings[0].text and of_run.unsure_callers.methods == (get,)


def test_the_answer_is_the_method_that_surely_takes_most_whose_total_is_not_known(tmp_path):
    """The truth: cleaning takes 60 %, hashing 25 %. A stub below the inlined method may be of another one."""
    clean, find = f"{RUN};com/acme/Job.clean_[i];java/util/regex", "Matcher.find"
    hashes = f"{RUN};com/acme/Job.hash_[j];java/security/MessageDigest.update_[i];md5_implCompressMB"
    text = f"{clean}/Pattern.compile_[j] 300\n{clean}/{find}_[j] 200\n{clean}/{find}_[i];itable stub 100\n"
    event = event_of(unsure_run(tmp_path / "run", f"{text}{hashes} 250\n{RUN} 150\n"))
    answer = (
        "At least 50.0 % of CPU time is spent in Job.clean, of which 30.0 points compile regular expressions."
    )
    assert event.findings[0].text.replace("\u202f", " ") == answer
    assert (event.findings[0].method, event.second) == ("com/acme/Job.clean", "")
