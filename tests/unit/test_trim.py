"""Trimming: roots that selectors name, and pictures trimmed to them."""

from __future__ import annotations

import re

from hprofiler._flamegraph import Profile
from hprofiler.analysis.facts import ANY_ROOT, root_patterns
from hprofiler.report import make_report
from hprofiler.selectors.selection import job_selector, load_selectors, parse_selector
from tests.unit.command import ROOT
from tests.viewer.block import facts, summaries, words
from tests.viewer.made_run import MadeHost, changed, make_run

SHIPPED = ROOT / "selectors"
TASK = "org/apache/spark/executor/Executor$TaskRunner.run"
STACKS = f"""\
[Executor task N];java/lang/Thread.run_[j];{TASK}_[j];App.work_[j] 60
[Executor task N];java/lang/Thread.run_[j];{TASK}_[j];App.other 15
[GC];start_thread;G1::collect() 20
[main];java/lang/Thread.run;Rpc.poll 5
"""


def run_folder(path, roots=(TASK,), hosts=("one", "two"), stacks=STACKS):
    made = [MadeHost(name, {number: stacks}) for number, name in enumerate(hosts, 1)]
    return make_run(path, made, roots=list(roots))


def found(roots, *names):
    """The names that are roots, as the binding finds them."""
    profile = Profile.from_bytes("".join(f"above;{name} 1\n" for name in names).encode(), "folded")
    return {stack.frames[0] for stack in profile.below(root_patterns(roots)).paths()}


def test_pictures_are_trimmed_to_the_roots(tmp_path):
    folder = run_folder(tmp_path / "run")
    report = make_report(folder.path, trim=True)
    trimmed = f"{TASK}_[j];App.other 15\n{TASK}_[j];App.work_[j] 60\n"
    doubled = f"{TASK}_[j];App.other 30\n{TASK}_[j];App.work_[j] 120\n"
    assert (folder.path / "hosts/one/cpu.folded").read_text() == trimmed
    assert (folder.path / "cluster/cpu-mean.folded").read_text() == trimmed
    assert (folder.path / "cluster/cpu.folded").read_text() == doubled
    assert Profile.read(folder.path / "cluster/cpu.pb.gz").total("samples") == 150
    assert (report.events[0].total, report.events[0].left_out) == (150, 0.25)
    for picture in ("hosts/one/cpu.svg", "cluster/cpu.svg", "cluster/cpu-mean.svg"):
        told = (folder.path / picture).read_text().replace("\u202f", " ")
        assert "trimmed to the job&#39;s own frames, 25.0 % left out" in told, picture
    assert "25.0 % left out" in words(summaries(report.page)["cpu"]["chips"])
    assert facts(report.page)["Trimmed to"] == TASK


def test_the_python_program_of_a_driver_has_roots_of_its_own(tmp_path):
    """A worker's stacks begin with modules, too, which are not the job's code."""
    begins, worker = "<module> (pyspark/daemon.py)", "process (pyspark/worker.py)"
    stacks = {
        1: STACKS,
        2: f"{begins};{worker};price (etl.py) 30\n{begins};manager (pyspark/daemon.py) 5\n",
        3: "start (native);<module> (etl.py);collect (pyspark/sql/dataframe.py) 40\nstart (native) 2\n",
    }
    roots = [TASK, worker]
    folder = make_run(tmp_path, [MadeHost("one", stacks)], roots=roots, program_roots=["<module> (*)"])
    with changed(folder) as run:
        for recording in run["hosts"][0]["recordings"][1:]:
            recording["process"]["labels"] = {"parent": "1", "program": "Etl"}
        recording["process"]["labels"]["script"] = "etl.py"
    page = make_report(folder.path, trim=True).page
    trimmed = (folder.path / "hosts/one/cpu.folded").read_text().splitlines()
    assert "<module> (etl.py);collect (pyspark/sql/dataframe.py) 40" in trimmed and len(trimmed) == 4
    assert f"{worker};price (etl.py) 30" in trimmed
    assert facts(page)["Trimmed to"] == " ".join([*roots, "<module> (*)"])


def test_frames_that_are_roots():
    assert found([TASK], TASK, TASK.replace("/", "."), f"{TASK}Later", f"x{TASK}") == {
        TASK,
        TASK.replace("/", "."),
    }
    names = ("impala::Thread::Run(int, char)", "ximpala::a", "kudu::a")
    assert found(["impala::*"], *names) == {"impala::Thread::Run(int, char)"}
    assert found(["a/B.run"], "a/B.run(Int)", "a/BCrun", "a/B.runs") == {"a/B.run(Int)"}
    assert found(ANY_ROOT, "a.B.run", "C.main", "D.runner", "start_thread") == {"a.B.run", "C.main"}


def test_roots_come_from_the_selector(tmp_path):
    assert TASK in parse_selector("spark-executor", [SHIPPED]).roots
    assert parse_selector("text:spark-executor", [SHIPPED]).roots == ()
    of_jobs = job_selector("application_1_1", [SHIPPED]).roots
    assert {TASK, "org/apache/flink/runtime/taskmanager/Task.run", "process (pyspark/worker.py)"} <= {
        *of_jobs
    }
    assert job_selector("application_1_1", [tmp_path]).roots == ()


def test_every_shipped_selector_but_java_names_roots():
    for name, selector in load_selectors([SHIPPED]).items():
        assert bool(selector.roots) == (name != "java"), name
        for root in selector.roots:
            assert re.fullmatch(r"[\w/$*.:<>() ]+", root) and re.match(r"[\w<]", root), root
