"""The end of a run: nothing recorded, changes of its target, a full disk, permissions of files."""

from __future__ import annotations

import json
import os
import stat
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hprofiler.base.errors import Defect, HprofilerError, PicturesError, RunFolderError
from hprofiler.cli import exit_code, main
from hprofiler.cli.commands.run import exit_code as run_code
from hprofiler.cli.terminal.exit_codes import Exit
from hprofiler.cli.terminal.run_text import print_json, print_summary
from hprofiler.model import JobAccount, JobPart, Outcome, Selector, Status, Target
from hprofiler.runfolder import RunFolder, RunRecord
from tests.unit.conftest import MakeFleet
from tests.unit.stand_in import ANY

IDLE = "hello(); found(); read()"
FAILED = "sys.exit(9)"
SEE_ALL = "  list the processes there: hprofiler ps -j java, with the same host options"
ONLY_JVMS = "  only JVMs were searched; --engine perf also records other programs"


@pytest.mark.parametrize(
    ("selector", "hints"), [(ANY, [SEE_ALL, ONLY_JVMS]), (replace(ANY, native=True), [SEE_ALL])]
)
def test_no_match_names_the_hosts_that_were_searched(
    tmp_path: Path, fleet: MakeFleet, capsys: Any, selector: Selector, hints: list[str]
) -> None:
    print_summary(fleet(a=IDLE, b=IDLE, c=FAILED).run(tmp_path / "run", selector), selector, outliers=False)
    told = capsys.readouterr().err
    verdict = "hprofiler: nothing recorded: no process matches 'any'; searched a, b; not searched: c"
    assert "\n".join([verdict, *hints]) in told


PIDS = Selector("pid:7,8", "pids", {"kind": "pids", "pids": [7, 8]}, native=True)
GONE = 'hello(); read(); say("found", searched=9, processes={}, ignored=[dict(pid=8, reason="it has ended")])'


def test_a_process_id_that_is_left_out_has_its_reason(tmp_path: Path, fleet: MakeFleet, capsys: Any) -> None:
    print_summary(fleet(a=GONE.format([]) + "; read()").run(tmp_path / "none", PIDS), PIDS, outliers=False)
    told = capsys.readouterr().err
    assert "nothing recorded: process 8: it has ended\n" in told and "may have ended; it must run" not in told
    rest = RECORDED.replace("hello(); found(7, 8)", GONE.format("[process(7)]")).replace(
        "outcome(8, 'failed', 'prepare', 'refuses attach'); ", ""
    )
    result = fleet(b=rest).run(tmp_path / "part", PIDS)
    assert result.coverage.complete and run_code(result) is Exit.PARTIAL
    print_summary(result, PIDS, outliers=False)
    assert "process 8: it has ended" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("body", "keep_empty", "kept"),
    [(IDLE, False, False), (IDLE, True, True), (FAILED, False, False), (FAILED, True, True)],
)
def test_a_run_without_a_recording_leaves_no_folder(
    tmp_path: Path, fleet: MakeFleet, capsys: Any, body: str, keep_empty: bool, kept: bool
) -> None:
    folder = tmp_path / "run"
    result = fleet(a=body).run(folder, keep_empty=keep_empty)
    print_summary(result, ANY, outliers=False)
    assert (result.kept, folder.exists(), str(folder) in capsys.readouterr().err) == (kept, kept, kept)
    print_json(result)
    assert (json.loads(capsys.readouterr().out)["folder"] is not None) == kept


BODY = """
hello(); read()
say("found", searched=9, ignored=[], processes=[process(7, command="java --password=hunter2 Main")])
read()
say("outcome", pid=7, status="failed", stage="prepare", reason="no", remedy="")
say("ready", processes=[]); read()
"""


@pytest.fixture
def habits():
    before = os.umask(0o077)
    yield
    os.umask(before)


def test_files_of_a_run_follow_umask(fleet, tmp_path, habits):
    folder = tmp_path / "run"
    fleet(one=BODY).run(folder)
    files = [folder, *folder.rglob("*")]
    assert len(files) > 2 and not [path for path in files if stat.S_IMODE(path.stat().st_mode) & 0o077]
    assert not [path for path in files if path.is_file() and b"hunter2" in path.read_bytes()]


RECORDED = """hello(); found(7, 8); read()
outcome(8, 'failed', 'prepare', 'refuses attach'); say('ready', processes=[{"pid": 7}])
recording(7); profile(7, PROFILE); outcome(7); say('done', left=[]); read()"""
FULL = "cannot write the run folder {}: No space left on device: the report was not made"


def test_a_full_disk_still_prints_the_ledger(
    fleet: MakeFleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is full when run.json is written."""

    def written(folder: RunFolder, record: RunRecord) -> None:
        if record != RunRecord():
            raise RunFolderError(f"cannot write the run folder {folder.path}: No space left on device")
        write(folder, record)

    write = RunFolder.write
    monkeypatch.setattr(RunFolder, "write", written)
    folder = tmp_path / "run"
    with pytest.raises(PicturesError) as caught:
        fleet(n1=RECORDED).record(folder)
    told = capsys.readouterr().err
    assert "not recorded:\n  n1 pid 8 (M): refuses attach\n" in told
    assert told.endswith("recorded 1 of 2 processes on 1 of 1 host\n")
    assert caught.value.reason == FULL.format(folder)
    reads = f"hprofiler convert {folder}/hosts/*/*/cpu.pb.gz -o out.html"
    assert caught.value.remedy == f"the profiles are in {folder}/hosts; `{reads}` reads them"
    assert main(["report", str(folder)]) == 4
    told = capsys.readouterr().err
    assert "the run ended before its outcome was written: the profiles are" in told
    (kept,) = folder.glob("hosts/*/*/cpu.pb.gz")
    assert main(["convert", str(kept), "-o", str(tmp_path / "out.html")]) == 0


def fails(*_: object, **__: object) -> None:
    """A bug, which cannot be had for real."""
    return {}["nothing"]  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("hprofiler.analysis.result.read_machines", "what hosts did is missing"),
        ("hprofiler.analysis.result.read_spark_facts", "what Spark did in each stage is missing"),
        ("hprofiler.analysis.findings.RULES", "the finding fails of cpu is missing"),
    ],
)
def test_a_bug_costs_a_part_of_the_report(
    fleet: MakeFleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any, name: str, part: str
) -> None:
    whole = RECORDED.replace("(7, 8)", "(7)").replace(
        "outcome(8, 'failed', 'prepare', 'refuses attach'); ", ""
    )
    monkeypatch.setattr(name, (fails,) if name.endswith("RULES") else fails)
    assert fleet(n1=whole).record(tmp_path / "run") is Exit.PARTIAL
    said = f"{part}: a bug in hprofiler (KeyError: 'nothing')"
    assert said in capsys.readouterr().err
    assert main(["report", str(tmp_path / "run")]) == Exit.PARTIAL
    assert f"not in the report:\n  localhost: {said}" in capsys.readouterr().err
    assert said in (tmp_path / "run" / "report.html").read_text()


def test_a_bug_in_the_report_leaves_the_recordings_and_says_where(
    fleet: MakeFleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hprofiler.report.make_report", fails)
    with pytest.raises(Defect) as caught:
        fleet(n1=RECORDED).record(tmp_path / "run")
    assert exit_code(caught.value) is Exit.DEFECT and isinstance(caught.value.__cause__, KeyError)
    assert f"the recordings are kept; run `hprofiler report {tmp_path}/run`" in caught.value.remedy
    monkeypatch.setattr("hprofiler.app.run._record", fails)
    with pytest.raises(Defect) as caught:
        fleet(n1=RECORDED).record(tmp_path / "early")
    assert f"the profiles are in {tmp_path}/early/hosts" in caught.value.remedy
    monkeypatch.undo()
    assert main(["report", str(tmp_path / "run")]) == Exit.OK


def test_what_changed_during_the_recording_is_in_run_json(tmp_path, fleet, monkeypatch):
    """Lines of hosts that are not of the run go to the first; a target that hangs is not waited for."""
    monkeypatch.setattr("hprofiler.app.run._NEW_PROCESSES_SECONDS", 0.1)
    late = [Outcome(host, Status.DEGRADED, "find", f"on {host}") for host in ("two", "elsewhere")]
    never = threading.Event()
    too_late = "cannot list the processes that started during the recording: no answer within 0.1 s"
    for number, (changes, first, second) in enumerate(
        [(lambda seen: late, ["on elsewhere"], ["on two"]), (lambda seen: never.wait(60), [too_late], [])]
    ):
        hosts, folder = fleet(one=IDLE, two=IDLE), tmp_path / f"run{number}"
        hosts.run(folder, located=hosts.located(notes=("a note",), new_processes=changes))
        record = json.loads((folder / "run.json").read_text())
        assert (record["notes"], record["command"]) == (["a note"], ["hprofiler"])
        reasons = [[line["reason"] for line in host["outcomes"][1:]] for host in record["hosts"]]
        assert reasons == [first, second] and record["coverage"]["hosts"]["failed"] == 0
    never.set()


def test_what_the_jobs_manager_says_at_the_end(
    fleet: MakeFleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is kept in run.json. Without an answer that says why."""
    monkeypatch.setattr("hprofiler.app.run._ACCOUNT_SECONDS", 0.1)
    known = JobAccount(manager="mapreduce", cpu_seconds=3.5, parts=(JobPart(name="task m_000000_0"),))

    def fails() -> JobAccount:
        raise HprofilerError("it is away")

    never = threading.Event()
    for number, (account, said) in enumerate(
        [
            (lambda: known, ("mapreduce", 3.5, "")),
            (fails, ("yarn", None, "it is away")),
            (lambda: never.wait(60), ("yarn", None, "no answer within 0.1 s")),
        ]
    ):
        hosts, folder = fleet(one=IDLE), tmp_path / f"run{number}"
        target = Target("yarn", "application_1_0001")
        hosts.run(folder, located=replace(hosts.located(), target=target, account=account))
        job = json.loads((folder / "run.json").read_text())["job"]
        assert (job["manager"], job["cpu_seconds"], job["problem"]) == said
    never.set()


def test_a_run_goes_to_an_archive(
    fleet: MakeFleet, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = tmp_path / "archive"
    assert fleet(n1=RECORDED).record(tmp_path / "run", "--archive", str(place)) == 3  # a process refused
    assert f"added to {place}" in capsys.readouterr().out
    assert main(["archive", "sql", str(place), "SELECT sum(value) AS total FROM samples"]) == 0
    assert capsys.readouterr().out == "total\n9\n"


def test_an_archive_that_cannot_be_is_refused_before_the_recording(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("mine")
    for words in (["--archive", str(tmp_path)], ["--pseudonymise"]):
        assert main(["-j", "pid:1", "-o", str(tmp_path / "run"), *words]) == 2
    assert not (tmp_path / "run").exists()
