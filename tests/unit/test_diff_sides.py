"""Sides that are less than they seem: partial, of another frequency or length, empty, hostile."""

from __future__ import annotations

import json

import pytest

from hprofiler.report.diff_text import lines
from tests.unit.test_diff import by_name, compare, hprofiler, run_of
from tests.viewer.made_profile import made_profile
from tests.viewer.made_run import MadeHost, make_run

JOB = "main;a 3000\nmain;b 6000\n"


def changed(path, change):
    """The run folder with another run.json."""
    content = json.loads((path / "run.json").read_text())
    change(content)
    (path / "run.json").write_text(json.dumps(content))
    return path


def test_amounts_of_cpu_time_are_times_whatever_the_frequency(tmp_path):
    often, seldom = run_of(tmp_path / "a", JOB), run_of(tmp_path / "b", JOB)
    third = made_profile("cpu", "main;a 1000\nmain;b 2000\n", 100)
    third.write(seldom / "hosts/h0/1/cpu.pb.gz", "pprof", thread_label=True)
    changes = compare(often, seldom, absolute=True)
    b = by_name(changes)["b"].own
    assert (b.before, b.after) == (pytest.approx(20e9, rel=1e-6), 20e9) and not b.beyond
    assert "(30.0 s" in lines(changes, 5)[0]
    files = compare(*(side / "hosts/h0/1/cpu.pb.gz" for side in (often, seldom)), absolute=True)
    assert by_name(files)["b"].own.after == b.after
    (tmp_path / "x.folded").write_text(JOB)
    text = compare(often, tmp_path / "x.folded", absolute=True)
    assert by_name(text)["b"].own.after == 6000, "folded text knows no time"


def test_a_side_that_is_not_all_is_told(tmp_path):
    before = run_of(tmp_path / "a", JOB)
    hosts = [MadeHost("h", {1: JOB})]
    for pid in range(2, 41):
        hosts[0].fails("failed", "it went away", pid=pid)
    after = make_run(tmp_path / "b", hosts).path
    changed(after, lambda content: content.update(interrupted=True))
    partial = "1 of 40 processes on 1 of 1 host, interrupted"
    done = hprofiler(before, after, "-o", tmp_path / "x.html")
    assert f"{after} is of {partial}" in done.stdout.splitlines()
    assert partial in (tmp_path / "x.html").read_text()
    told = json.loads(hprofiler(before, after, "--json").stdout)
    assert (told["before"]["partial"], told["after"]["partial"]) == (None, partial)


def test_a_run_that_recorded_nothing_is_nothing_to_compare(tmp_path):
    before, after = run_of(tmp_path / "a", JOB), run_of(tmp_path / "b", JOB)
    changed(after, lambda content: content["hosts"][0].update(recordings=[]))
    for words in ([], ["-e", "cpu"]):
        done = hprofiler(before, after, *words)
        assert (done.returncode, done.stdout) == (4, "") and "no samples of cpu in" in done.stderr


def test_nothing_from_a_run_moves_the_terminal(tmp_path):
    before, after = run_of(tmp_path / "a", JOB), run_of(tmp_path / "b", JOB, JOB)
    host = "h\x9b31m\nnot compared: forged"
    changed(after, lambda content: content["hosts"][1].update(name=host))
    done = hprofiler(before, after)
    assert done.returncode == 3 and "\x9b" not in done.stdout + done.stderr
    assert sum(line.startswith("not compared:") for line in done.stderr.splitlines()) == 1
