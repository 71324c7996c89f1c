"""The run folder: what is refused, what is kept, and that files stay inside."""

import json
import subprocess
import sys
from array import array
from pathlib import Path

import msgspec
import pytest

from hprofiler.analysis.facts import read_facts
from hprofiler.base.errors import RunFolderError
from hprofiler.model import (
    Clock,
    HostFacts,
    HostRecord,
    Note,
    Outcome,
    Pauses,
    Process,
    Recording,
    Samples,
    Sampling,
    Status,
    Target,
)
from hprofiler.runfolder import Coverage, RunFolder, RunRecord, safe_name


def test_new_run_goes_beside_an_old_one(tmp_path):
    names = []
    for _ in range(3):
        folder = RunFolder.create(tmp_path / "out")
        folder.release()
        names.append(folder.path.name)
    assert names == ["out", "out-2", "out-3"]


def test_a_running_run_is_not_replaced(tmp_path):
    going_on = RunFolder.create(tmp_path / "out")
    with pytest.raises(RunFolderError, match=r"another run is writing to .*/out"):
        RunFolder.create(tmp_path / "out", force=True)
    assert RunFolder.create(tmp_path / "out").path.name == "out-2"
    going_on.release()
    assert RunFolder.create(tmp_path / "out", force=True).path == going_on.path


def test_folder_with_other_things_is_refused_and_untouched(tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    for force in (False, True):
        with pytest.raises(RunFolderError, match="not a run folder"):
            RunFolder.create(tmp_path, force=force)
    assert (tmp_path / "thesis.tex").read_text() == "years of work"


@pytest.mark.parametrize(
    "name", ["../../etc", "/etc/passwd", ".", "..", "", "a/b", "host\n", "\udcff", "x" * 300, "ho st"]
)
def test_no_host_name_leaves_the_folder(tmp_path, name):
    folder = RunFolder.create(tmp_path / "out")
    made = folder.host_dir(name).resolve()
    assert made.parent == (folder.path / "hosts").resolve()
    assert len(made.name) <= 100


def test_different_host_names_have_different_folders():
    assert safe_name("a/b") != safe_name("a_b")
    assert safe_name("node-1.example.org") == "node-1.example.org"
    assert safe_name("web-7d9f/app") == "web-7d9f~app" and safe_name("ns/web/app") == "ns~web~app"
    assert safe_name("web-7d9f~app") not in ("web-7d9f~app", safe_name("web-7d9f/app"))


def test_containers_of_old_runs_keep_their_folders(tmp_path):
    """Earlier versions named the folder of a container by a hash."""
    folder = RunFolder.create(tmp_path / "out")
    old = folder.path / "hosts" / "web_app-f5e9bf0fc03d"
    assert folder.host_dir("web/app").name == "web~app"
    old.mkdir(parents=True)
    assert folder.profile_path("web/app", 7, "cpu") == old / "7" / "cpu.pb.gz"
    assert folder.host_dir("web_app-f5e9bf0fc03d") == old and folder.host_dir("web").name == "web"
    (folder.path / "hosts" / "web~app").mkdir()
    assert folder.host_dir("web/app").name == "web~app"


def recorded(pid: int = 7) -> Recording:
    process = Process("h", pid, 1, 1000, "app", "executor 1", labels={"executor": "1"}, is_jvm=True)
    samples = Samples(60, 59, 1)
    return Recording(process, "cpu", "perf", "perf_events", 10, samples, 60.0, totals={"samples": 59})


def test_run_json_is_read_by_the_types_that_wrote_it(tmp_path):
    line = Outcome(
        "h", Status.FAILED, "connect", "refused", "start sshd", seconds=1.5,
        code="refused", parameters={"port": 22},
        notes=(Note("refused", "refused", "", {"port": 22}), Note("other", "and late")),
    )  # fmt: skip
    facts = HostFacts("h", "x86_64", "6.1", 2, 1 << 30, "root", load=0.5)
    host = HostRecord(
        name="h", inside=True, facts=facts, timings={"connect": 0.25}, recordings=(recorded(),),
        outcomes=(line,), unseen=("executor 2",), clock=Clock(-0.25, 0.001),
        pauses=(Pauses(7, ("young",), array("B", [0]), array("Q", [1 << 50]), array("Q", [2500]), 3),),
    )  # fmt: skip
    record = RunRecord(
        command=("hprofiler", "-t", "60"), target=Target("hosts", "h"), roots=("a.*",), care={"busy": True},
        sampling=Sampling(("cpu", "alloc"), 99, 60.0, alloc_interval=512),
        coverage=Coverage.of([host], 2), hosts=(host,),
    )  # fmt: skip
    folder = RunFolder.create(tmp_path / "out")
    folder.write(record)
    read = RunFolder.open(folder.path).record
    assert msgspec.to_builtins(read) == msgspec.to_builtins(record, enc_hook=list)
    text = (folder.path / "run.json").read_text()
    assert text.startswith('{\n"format": 3,\n') and '\n"hosts": [\n{"name":"h",' in text


def test_a_host_with_a_match_is_not_idle():
    """run.json and the report have one definition."""
    idle = Outcome("h", Status.IDLE, "find", code="no-match")
    lost = Outcome("h", Status.FAILED, "start", pid=7)
    hosts = HostRecord(name="h", outcomes=(idle,)), HostRecord(name="h", outcomes=(idle, lost))
    coverage = Coverage.of(hosts, 1)
    shown = read_facts(RunRecord(hosts=hosts, coverage=coverage)).hosts
    assert [host.idle for host in shown] == [True, False] and coverage.hosts.idle == 1


def test_texts_of_run_json_lose_control_characters(tmp_path):
    folder = RunFolder.create(tmp_path / "out")
    folder.write(RunRecord(command=("\udcff",)))
    assert folder.open(folder.path).record.command == ("\ufffd",)
    hostile = '{"format": 2, "hosts": [{"name": "h", "labels": {"\\u001b": "\\u202e"}}]}'
    (folder.path / "run.json").write_text(hostile)
    assert folder.open(folder.path).record.hosts[0].labels == {"\ufffd": "\ufffd"}


def test_a_run_of_format_2_opens(tmp_path):
    (tmp_path / "run.json").write_text((Path(__file__).parent / "run_format_2.json").read_text())
    record = RunFolder.open(tmp_path).record
    (node, pod) = record.hosts
    assert (record.sampling.events, record.target.kind, record.coverage.hosts.all) == (
        ("cpu",),
        "kubernetes",
        2,
    )
    assert [one.process.pid for one in node.recordings] == [7] and not node.inside and pod.inside
    assert [(one.code, one.reason) for one in pod.outcomes] == [("unknown", "connection refused")]


@pytest.mark.parametrize(
    ("damage", "where"),
    [
        ({"hosts": 5}, "Expected `array`, got `int` - at `$.hosts`"),
        ({"hosts": [7]}, "got `int` - at `$.hosts[0]`"),
        ({"hosts": [{"name": "h", "bytes_sent": -1}]}, "`$.hosts[0].bytes_sent`"),
        ({"sampling": []}, "`$.sampling`"),
        ({"roots": ["a"] * 101}, "`$.roots`"),
    ],
)
def test_a_damaged_run_json_is_an_error_that_says_where(tmp_path, damage, where):
    (tmp_path / "run.json").write_text(json.dumps({"format": 3, **damage}))
    with pytest.raises(RunFolderError) as caught:
        RunFolder.open(tmp_path)
    assert where in str(caught.value) and str(tmp_path) in str(caught.value)


def test_force_replaces_the_run_and_keeps_foreign_files(tmp_path):
    old = RunFolder.create(tmp_path / "out")
    (old.host_dir("a")).mkdir(parents=True)
    (old.path / "notes.txt").write_text("mine")
    old.release()
    new = RunFolder.create(tmp_path / "out", force=True)
    assert new.path == old.path
    assert not new.host_dir("a").exists()
    assert (new.path / "notes.txt").read_text() == "mine"


def test_folders_and_formats_that_cannot_be_opened(tmp_path):
    with pytest.raises(RunFolderError, match="not a run folder"):
        RunFolder.open(tmp_path)
    for other in (1, 99):
        (tmp_path / "run.json").write_text(f'{{"format": {other}}}')
        with pytest.raises(RunFolderError, match=f"format {other}, but this hprofiler reads 2 and 3"):
            RunFolder.open(tmp_path)


def test_threads_may_read_the_first_runs_at_the_same_time(tmp_path):
    """In a process that has read none: msgspec crashes if several threads use a type first."""
    (tmp_path / "run.json").write_bytes(msgspec.json.encode(RunRecord()))
    code = """
import sys, threading
from hprofiler.runfolder.schema import read
text, gate = open(sys.argv[1], "rb").read(), threading.Barrier(8)
sys.setswitchinterval(1e-6)
threads = [threading.Thread(target=lambda: (gate.wait(), read(text))) for _ in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "run.json")], check=True)
