"""`hprofiler.record` and `hprofiler.Run`: the session’s application, a recorded block, tables, page."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from html import unescape
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import hprofiler
from hprofiler.base.errors import HprofilerError, UsageError
from hprofiler.cli.options.parser import parse
from hprofiler.model import Host, Sampling, Target
from hprofiler.notebook import recording
from hprofiler.notebook import run as notebook_run
from hprofiler.notebook.session import Session, read_session
from hprofiler.report import make_report
from hprofiler.resolve import Located
from hprofiler.transport.local import LocalTransport
from tests.unit.conftest import MakeFleet
from tests.viewer.made_run import spark_run

APPLICATION = "application_1700000000000_0042"
PAGE = "http://driver:4040"


class Context:
    """A SparkContext, as far as it is asked."""

    def __init__(self, master: str, hadoop: dict[str, str] | None = None, **settings: str) -> None:
        known = {"spark.driver.host": "edge7", "spark.driver.port": "33445"}
        known.update({f"spark.{name.replace('_', '.')}": value for name, value in settings.items()})
        self.master = master
        self.applicationId = APPLICATION
        self.uiWebUrl = PAGE
        self.getConf = lambda: known
        self._jsc = SimpleNamespace(hadoopConfiguration=lambda: hadoop or {})
        file = SimpleNamespace(getCanonicalPath=lambda: "/proc/4242")
        self._jvm = SimpleNamespace(java=SimpleNamespace(io=SimpleNamespace(File=lambda path: file)))


TWO = {
    "yarn.http.policy": "HTTPS_ONLY",
    "yarn.resourcemanager.ha.enabled": "true",
    "yarn.resourcemanager.ha.rm-ids": "rm1, rm2",
    "yarn.resourcemanager.hostname.rm1": "m1",
    "yarn.resourcemanager.webapp.https.address.rm2": "m2:9999",
}


@pytest.mark.parametrize(
    ("context", "expected"),
    [
        (
            Context("local[*]", app_name="etl"),
            Session(("-j", "pid:4242"), PAGE, pid=4242, name="etl"),
        ),
        (Context("local"), Session(("-j", "pid:4242"), PAGE, pid=4242)),
        (
            Context("yarn", {"yarn.resourcemanager.hostname": "rm"}),
            Session(("-j", APPLICATION, "-c", "http://rm:8088"), None, ("edge7", 33445)),
        ),
        (
            Context("yarn", TWO, submit_deployMode="cluster"),
            Session(("-j", APPLICATION, "-c", "https://m1:8090,https://m2:9999")),
        ),
        (
            Context("k8s://https://api:6443", kubernetes_namespace="etl", kubernetes_context="prod"),
            Session(
                ("-j", f"k8s:spark-app-selector={APPLICATION}", "-n", "etl", "--context", "prod"),
                PAGE,
                ("edge7", 33445),
            ),
        ),
    ],
    ids=["local", "one thread", "yarn", "two managers", "kubernetes"],
)
def test_the_application_of_a_session(context: Context, expected: Session) -> None:
    assert read_session(SimpleNamespace(sparkContext=context)) == read_session(context) == expected


def test_sessions_that_cannot_be_profiled() -> None:
    ended, broken = Context("local"), Context("local")
    ended._jsc = None  # type: ignore[assignment]

    def no_answer() -> dict[str, str]:
        raise ConnectionRefusedError("[Errno 111] Connection refused")

    broken.getConf = no_answer  # type: ignore[assignment]
    elsewhere = Context("local")
    elsewhere._jvm.java.io.File = lambda path: SimpleNamespace(getCanonicalPath=lambda: path)
    for spark, reason in (
        (SimpleNamespace(), "has its driver's JVM beside this Python"),
        (ended, "has ended"),
        (broken, "does not answer: .*refused"),
        (elsewhere, "not on Linux"),
        (Context("spark://m:7077"), r"master is spark://m:7077.*local mode, YARN and Kubernetes"),
        (Context("yarn"), "does not say where the ResourceManager is"),
    ):
        with pytest.raises(HprofilerError, match=reason):
            read_session(spark)


def test_the_options_of_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The session's application, with the options of the command line."""
    monkeypatch.chdir(tmp_path)
    words = ["-e", "cpu,alloc", "-f", "300", "-t", "60"]
    plan = recording._plan(Context("local[2]"), words)
    assert plan.request.command == ("hprofiler", "run", "-j", "pid:4242", *words)
    assert plan.request.sampling == Sampling(("cpu", "alloc"), 300, 60.0, metrics=True)
    assert plan.request.selector.query["pids"] == [4242] and plan.request.spark is not None
    assert plan.request.located.hosts[0].labels == {"role": "driver"}
    named = recording._plan(Context("local[2]", app_name="etl"), words).request
    assert named.selector.text == "etl" and named.selector.children
    assert named.located.hosts[0].processes[4242]["process"] == "driver etl"
    assert recording._plan(Context("local[2]"), [*words, "--slices", "none"]).request.spark is None
    with pytest.raises(UsageError, match="--sekonds") as error:
        hprofiler.record(Context("local[2]"), seconds=1, options="--sekonds 5")
    assert "see `hprofiler run --help`" in str(error.value)


def test_a_driver_in_client_mode_is_reached_without_ssh() -> None:
    pod = Host("exec-1", "etl/exec-1/spark", inside=True)
    located = Located(Target("kubernetes", "k8s:x"), [pod])
    both = recording._with_driver(located, Session((), PAGE, ("edge7", 33445))).hosts
    assert both[1] is pod and list(both[0].containers) == ["spark_driver_33445"]
    assert recording._with_driver(located, Session((), PAGE)).hosts == [pod]
    elsewhere: list[Host] = []
    reach = SimpleNamespace(transport_for=elsewhere.append)
    monkeyed = recording._with_this_machine(recording.Reach(reach.transport_for, None), None)  # type: ignore[arg-type]
    assert isinstance(monkeyed.transport_for(both[0]), LocalTransport) and not elsewhere
    monkeyed.transport_for(pod)
    monkeyed.transport_for(Host("n1", "localhost", port=2222))
    assert [host.name for host in elsewhere] == ["exec-1", "n1"]


# Recording

BLOCK = """hello(); found(7); prepared(7); recording(7)
assert read()["type"] == "stop"
profile(7, PROFILE, seconds=12.5); outcome(7); say("done", left=[]); read()"""
FULL = """hello(); found(7); prepared(7); recording(7)
profile(7, PROFILE, seconds=12.5); outcome(7); say("done", left=[]); read()"""
REFUSED = """hello(); found(7); read()
outcome(7, "failed", "prepare", "refuses attach", "use --become sudo"); say("ready", processes=[]); read()"""
Record = Callable[..., recording.Recording]


@pytest.fixture
def made(fleet: MakeFleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Record:
    """Makes a recording of one host with a scripted agent."""

    def make(body: str, limit: float = 600.0) -> recording.Recording:
        hosts = fleet(n1=body)
        hosts.sampling = Sampling(("cpu",), 99, limit)
        plan = recording._Plan(parse(["-j", "x"]), hosts.request(tmp_path / "run"), hosts.reach)
        monkeypatch.setattr(recording, "_plan", lambda spark, words: plan)
        return recording.Recording(None, ())

    return make


def described(run: hprofiler.Run) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((run.folder / "run.json").read_text())
    return content


def test_a_block_is_recorded_until_it_ends(made: Record, capsys: Any) -> None:
    """Its end is as planned, and its length is that of the recording."""
    with made(BLOCK) as run, pytest.raises(HprofilerError, match="has not ended\n  use the run after"):
        _ = run.folder
    assert run.page.is_file() and not run.interrupted
    said = described(run)
    assert (said["interrupted"], said["sampling"]["duration"]) == (False, 12.5)
    assert run.methods[["method", "self", "self_share"]].values.tolist() == [["work", 9, 1.0], ["main", 0, 0]]
    lines = [line.removeprefix("hprofiler: ") for line in capsys.readouterr().err.splitlines()]
    assert lines[:2] == ["preparing 1 host", "recording 1 process on 1 host"]
    assert lines[2:4] == ["fetching the recordings", f"recorded 1 of 1 process on 1 of 1 host: {run.page}"]
    first = run.findings[0]
    assert first.event == "cpu" and f"  {first.text}" in "\n".join(lines[4:])


def test_a_recording_that_was_meant_otherwise(made: Record) -> None:
    with pytest.raises(AttributeError, match="methods: this is a recording that has not begun: use it in a"):
        _ = made(BLOCK).methods
    with pytest.raises(HprofilerError, match="without seconds="), hprofiler.Run():
        pass


@pytest.mark.parametrize(("error", "interrupted"), [(ZeroDivisionError, False), (KeyboardInterrupt, True)])
def test_a_block_that_fails_keeps_what_was_recorded(
    made: Record, error: type[BaseException], interrupted: bool
) -> None:
    with pytest.raises(error), made(BLOCK) as run:
        raise error
    assert run.interrupted is interrupted and len(run.processes) == 1


def test_a_block_that_outlasts_the_limit(made: Record, capsys: Any) -> None:
    block = made(FULL, limit=0.1)
    with block as run:
        assert block._work is not None
        block._work._result.result()
    assert not run.interrupted and described(run)["sampling"]["duration"] == 0.1
    said = "the recording ended before the block: its processes ended, or its limit of 0.1 s was reached"
    assert f"{said} (limit=)" in capsys.readouterr().err


def test_nothing_recorded_is_an_error_before_the_block_runs(made: Record, tmp_path: Path) -> None:
    with pytest.raises(HprofilerError) as error, made(REFUSED):
        pytest.fail("the block ran")
    reason = "nothing recorded: the only matching process could not be recorded; n1 pid 7 (M): refuses attach"
    assert str(error.value) == f"{reason}\n  use --become sudo"
    with (
        pytest.raises(HprofilerError, match="no process matches 'any'; searched n1"),
        made("hello(); found(); read()"),
    ):
        pytest.fail("the block ran")


def test_an_interrupt_while_waiting_for_the_end_keeps_what_was_recorded(
    made: Record, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As Ctrl-C does in a terminal, for `record(spark, seconds=…)`."""
    begun = made(BLOCK)
    begun.start()
    assert begun._work is not None
    wait, interrupts = begun._work._wait, iter([KeyboardInterrupt])

    def interrupted(*arguments: Any) -> None:
        for error in interrupts:
            raise error
        wait(*arguments)

    monkeypatch.setattr(begun._work, "_wait", interrupted)
    run = begun.end()
    assert run.interrupted and len(run.processes) == 1


# Run


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> hprofiler.Run:
    folder = spark_run(tmp_path_factory.mktemp("notebook") / "run").path
    make_report(folder)
    return hprofiler.Run.open(folder)


def test_tables(opened: hprofiler.Run) -> None:
    processes = opened.processes
    assert len(processes) == 16 and processes["executor"].nunique() == 8
    refused = processes[processes["status"] == "failed"]
    assert list(refused["pid"]) == [6004] and "DisableAttachMechanism" in refused["reason"].iloc[0]
    methods = opened.methods
    hottest = methods.sort_values("self", ascending=False).iloc[0]
    assert methods.iloc[0]["method"] == hottest["method"] and 0 < hottest["self_share"] < 1
    assert methods["self"].sum() == opened.profile().total() == processes["samples"].sum()
    assert set(opened.outcomes["status"]) == {"failed", "degraded", "idle"}
    for table in (opened.stages, opened.tasks, opened.jobs):
        assert table.empty and "stage" in " ".join(table.columns)
    with pytest.raises(HprofilerError, match="no samples of alloc; its events are cpu"):
        opened.profile("alloc")


def test_a_folder_that_is_no_run(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="not a run folder"):
        hprofiler.Run.open(tmp_path)


def test_a_link_to_a_folder_of_any_name(
    opened: hprofiler.Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(opened.folder, tmp_path / "run #1")
    monkeypatch.chdir(tmp_path)
    assert '<a href="run%20%231/report.html"' in (hprofiler.Run.open(tmp_path / "run #1")._repr_html_() or "")


def test_tables_without_pandas(opened: hprofiler.Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(HprofilerError, match="not installed\n  pip install pandas"):
        _ = opened.methods


def test_the_page_inside_a_notebook(opened: hprofiler.Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(opened.folder.parent)
    shown = opened._repr_html_() or ""
    page, _, rest = shown.removeprefix('<iframe srcdoc="').partition('"')
    assert unescape(page) == opened.page.read_text() and "allow-same-origin" not in rest
    assert '<a href="run/report.html"' in rest
    monkeypatch.setattr(notebook_run, "MOST_INLINE", 1000)
    large = opened._repr_html_() or ""
    assert "<iframe" not in large and f"hprofiler report {opened.folder} --serve" in large
    opened_elsewhere = hprofiler.Run.open(opened.folder)
    monkeypatch.chdir(opened.folder / "cluster")
    assert "<a" not in (opened_elsewhere._repr_html_() or "")
