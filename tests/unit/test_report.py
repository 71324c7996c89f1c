"""A report: its page and pictures, their coverage, and its ledger."""

from __future__ import annotations

import pytest

from hprofiler._flamegraph import Profile
from hprofiler.app.run import RunResult
from hprofiler.cli.commands.run import exit_code
from hprofiler.cli.terminal.exit_codes import Exit
from hprofiler.model import Status
from hprofiler.report import make_report
from hprofiler.runfolder import Coverage
from tests.viewer.block import described, words
from tests.viewer.made_run import FREQUENCY, MadeHost, changed, make_run, spark_run

TWO = [
    ("big", {1: "a;hot 270\na;cold 30\n"}),
    ("small", {2: "a;hot 20\na;cold 60\n", 3: "a;hot 10\nz 10\n"}),
]


def two_hosts(path):
    return make_run(path, [MadeHost(name, dict(processes)) for name, processes in TWO])


def shares(path):
    profile = Profile.read(str(path))
    return {one.name: round(one.self_value / profile.total(), 3) for one in profile.top(99) if one.self_value}


def test_all_pictures_are_made_for_every_host_and_the_cluster(tmp_path):
    folder = two_hosts(tmp_path / "run")
    make_report(folder.path)
    made = {str(path.relative_to(folder.path)) for path in folder.path.rglob("*") if path.is_file()}
    pictures = {
        f"{name}.{kind}"
        for name in ("cluster/cpu", "cluster/cpu-mean")
        for kind in ("svg", "folded", "pb.gz")
    }
    pictures |= {
        f"hosts/{host}/cpu.{kind}" for host in ("big", "small") for kind in ("svg", "folded", "pb.gz")
    }
    stored = {"hosts/big/1/cpu.pb.gz", "hosts/small/2/cpu.pb.gz", "hosts/small/3/cpu.pb.gz", "run.json"}
    assert made == pictures | stored | {"report.html"}


@pytest.mark.parametrize("kind", ["folded", "pb.gz"])
def test_the_sum_counts_samples_and_the_mean_counts_hosts(tmp_path, kind):
    folder = two_hosts(tmp_path / "run")
    make_report(folder.path)
    assert shares(folder.path / f"cluster/cpu.{kind}") == {"hot": 0.75, "cold": 0.225, "z": 0.025}
    assert shares(folder.path / f"cluster/cpu-mean.{kind}") == {"hot": 0.6, "cold": 0.35, "z": 0.05}
    assert shares(folder.path / f"hosts/small/cpu.{kind}") == {"cold": 0.6, "hot": 0.3, "z": 0.1}


def test_coverage_is_in_the_page_and_in_every_picture(tmp_path):
    folder = spark_run(tmp_path / "run")
    report = make_report(folder.path)
    assert report.coverage == "15 of 16 processes on 8 of 9 hosts, 1 idle"
    assert report.coverage in report.page.read_text()
    assert report.coverage in (folder.path / "cluster/cpu.svg").read_text()
    assert report.coverage in (folder.path / "cluster/cpu-mean.svg").read_text()
    assert "2 of 3 processes" in (folder.path / "hosts/worker04.prod.example/cpu.svg").read_text()


def test_the_page_tells_hosts_ledger_and_run(tmp_path):
    page = described(make_report(spark_run(tmp_path / "run").path).page)
    (summary,) = page["summaries"]
    odd = next(row for row in summary["hosts"]["rows"] if row["name"] == "worker08.prod.example")
    assert (odd["recorded"], odd["unlike"]["outlier"]) == (1, True)
    assert [text for text, _ in odd["counts"]] == ["3,709", "3,783", "3", "12.4 s"]
    assert odd["unlike"]["methods"][0][0] == "java/util/regex/Pattern.sequence"
    assert summary["hosts"]["idle"] == ["worker10.prod.example"]
    (failed, *_) = page["run"]["ledger"]["lines"]
    assert (failed["status"], failed["stage"], failed["pid"]) == ("failed", "start", 6004)
    sentences = ["".join(text for _, text in one["parts"]) for one in summary["findings"]]
    found = " ".join([words(page), *sentences]).replace("\u202f", " ")
    for told in [
        "of CPU time is spent in AvroUtil.toAvroIdentifier, of which 20.1 points compile",
        "worker08.prod.example is unlike the others: Pattern.sequence 43.1 % here, 15.5 % usually.",
        "the JVM was started with -XX:+DisableAttachMechanism",
        "restart it without",
        "executor 6 4006 async-profiler perf_events, 1,363 samples, 4.5 s of CPU time 1390 1363 3",
        "hprofiler -f 300 -t 60 -j spark-executor -H hosts.txt",
        "20 Nov 2026, 06:12 UTC",
        "Started text 20 Nov 2026, 06:12:03 UTC Finished text 20 Nov 2026, 06:13:05 UTC",
        "17.0.9 (15)",
    ]:
        assert told in found, told


def test_a_report_made_again_is_the_same(tmp_path):
    folder = spark_run(tmp_path / "run")
    first = make_report(folder.path).page.read_bytes()
    assert make_report(folder.path).page.read_bytes() == first


@pytest.mark.parametrize("damage", ["cut", "text", "empty", "gone"])
def test_a_profile_that_cannot_be_read_becomes_a_line_of_the_ledger(tmp_path, damage):
    folder = two_hosts(tmp_path / "run")
    path = folder.profile_path("small", 3, "cpu")
    content = {"cut": path.read_bytes()[:30], "text": b"<html>no</html>", "empty": b""}
    if damage == "gone":
        path.unlink()
    else:
        path.write_bytes(content[damage])
    report = make_report(folder.path)
    (problem,) = report.analysis.problems
    assert (problem.host, problem.pid, problem.status) == ("small", 3, Status.FAILED)
    assert "cannot be used" in report.page.read_text()
    assert report.coverage == "2 of 3 processes on 2 of 2 hosts"
    assert report.events[0].total == 380
    assert exit_code(RunResult(folder, Coverage(), (), False, report)) is Exit.PARTIAL


def test_without_a_sample_the_page_gives_the_reasons_and_no_picture_is_made(tmp_path):
    hosts = [
        MadeHost("a").fails("failed", "wrong <key>", "ssh-keygen -R a"),
        MadeHost("b").fails("idle", "none there"),
    ]
    folder = make_run(tmp_path / "run", hosts)
    report = make_report(folder.path)
    page = report.page.read_text()
    assert report.empty
    assert "Nothing was recorded" in page and "wrong \\u003ckey>" in page and "ssh-keygen -R a" in page
    assert '"columns":[]' in page and "application/octet-stream" not in page
    assert not folder.cluster_dir.exists()


def test_cpu_seconds_of_several_engines_are_those_recorded(tmp_path):
    """Each has as many samples as its CPU time has at one frequency; a second is that many of them."""
    folder = make_run(tmp_path / "run", [MadeHost("h", {1: "a;hot 300\n", 2: "a (a.py) 300\n"})])
    with changed(folder) as run:
        jvm, python = run["hosts"][0]["recordings"]
        jvm["engine"], python["engine"] = "async-profiler", "pyspy"
        # It took more samples than its CPU time has, which the page must not count as time.
        python["totals"]["samples"] *= 3
    (event,) = described(make_report(folder.path).page)["events"]
    assert event["second"]["per"] == 1e9 / FREQUENCY


def test_the_page_of_one_pid_is_called_after_its_process(tmp_path):
    titles = {
        described(make_report(make_run(tmp_path / name, [MadeHost("h", pids, label="Etl")], name).path).page)[
            "title"
        ]
        for name, pids in (("pid:1", {1: "a 9\n"}), ("java", {1: "a 9\n", 2: "a 9\n"}))
    }
    assert titles == {"Etl", "java"}
