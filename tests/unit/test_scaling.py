"""`hprofiler scale`: the table, the fits of known curves, and what is warned of."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hprofiler.spark.application import Application, Executor, Stage, TaskTable
from hprofiler.spark.facts import SparkError
from hprofiler.spark.figures import figures
from hprofiler.spark.saved import save_application
from hprofiler.spark.scaling import Scaling, SizedRun, run_of, scaling
from tests.unit.command import exit_code
from tests.unit.spark_application import START, Made, event, stage_event, task_event
from tests.viewer.block import blocks, described
from tests.viewer.made_run import MadeHost, make_run

SIZES = (1, 2, 4, 8, 16, 32)
# As in a published series on a machine of 20 cores: two tasks at a time are more than twice as fast.
SUPER_LINEAR = {1: 1.00, 2: 2.08, 4: 4.1, 8: 7.9, 16: 13.6, 20: 16.0}


@pytest.fixture(autouse=True)
def few_replicas(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the bootstrap: the curves here are clear with few."""
    monkeypatch.setattr("hprofiler.spark.scaling._REPLICAS", 100)


def measured(speedups: dict[int, float]) -> Scaling:
    return scaling([SizedRun(f"run {n}", n, 1000 / speedup) for n, speedup in speedups.items()])


def law(n: int, g: float, a: float, b: float) -> float:
    return g * n / (1 + a * (n - 1) + b * n * (n - 1))


def codes(found: Scaling) -> set[str]:
    return {one.code for one in found.warnings}


@pytest.mark.parametrize(("a", "b"), [(0.05, 0.002), (0.3, 0.0), (0.0, 0.001), (0.02, 1e-5), (0.0, 0.0)])
def test_an_exact_curve_gives_its_parameters(a: float, b: float) -> None:
    found = measured({n: law(n, 1, a, b) for n in SIZES})
    usl = found.usl
    assert usl is not None
    assert (usl.g, usl.a, usl.b) == pytest.approx((1, a, b), rel=1e-6, abs=1e-9)
    assert usl.peak == (pytest.approx(((1 - a) / b) ** 0.5) if b else None)
    assert ("no-peak" in codes(found)) is ((usl.peak or 99) > 32)
    assert usl.limit == (pytest.approx(1 / a) if a and not b else None), "it falls after its peak"


def test_an_exact_fit_says_nothing_of_chance() -> None:
    """As many sizes as parameters: no interval of b, so that it may or may not hold 0."""
    found = measured({n: law(n, 1, 0.05, 0.01) for n in (1, 4, 16)})
    assert found.usl is not None and found.usl.intervals is None
    assert codes(found) == {"few-runs", "few-points"} and found.usl.limit is None


def test_amdahl_is_the_law_without_coherence() -> None:
    amdahl = measured({n: law(n, 1, 0.1, 0) for n in SIZES}).amdahl
    assert amdahl is not None and amdahl.b == 0
    assert (amdahl.g, amdahl.a, amdahl.limit) == pytest.approx((1, 0.1, 10))


def test_a_super_linear_table_warns() -> None:
    found = measured(SUPER_LINEAR)
    assert codes(found) == {"super-linear", "few-runs", "no-peak"}
    assert found.warnings[0].parameters["sizes"] == [2, 4]
    usl = found.usl
    assert usl is not None and usl.intervals is not None and usl.peak is None
    errors = [
        sum((speedup - law(n, *values)) ** 2 for n, speedup in SUPER_LINEAR.items())
        for values in [(usl.g, usl.a, usl.b), (1.05, 0.0, 8e-4)]
    ]
    assert errors[0] <= errors[1]
    assert measured(SUPER_LINEAR) == found  # the bootstrap's seed is fixed


def test_what_gets_slower_is_all_contention() -> None:
    """Speed-up falls: more contention than 1 means nothing."""
    found = measured({1: 1.0, 2: 0.6, 4: 0.4, 8: 0.2})
    assert found.amdahl is not None and found.amdahl.a == 1
    assert found.amdahl.limit == pytest.approx(0.55)
    assert found.usl is not None and found.usl.a == 1 and found.usl.b > 0


def test_runs_of_a_size_are_averaged() -> None:
    runs = [SizedRun("", n, elapsed, tasks=8) for n, elapsed in [(2, 90), (2, 110), (2, 100), (4, 50)]]
    found = scaling(runs)
    two, four = found.points
    assert (two.runs, two.mean.elapsed, two.least, two.most) == (3, 100, 90, 110)
    assert (two.speedup, four.speedup, four.efficiency) == (2, 4, 1)
    assert found.usl is None and codes(found) == {"few-runs", "few-points"}
    assert "runs-differ" in codes(scaling([*runs, SizedRun("", 4, 80)]))


@pytest.mark.parametrize(("tasks", "warned"), [(104, False), (106, True)])
def test_other_work_is_noticed(tasks: int, warned: bool) -> None:
    found = scaling([SizedRun("", 1, 100, tasks=100), SizedRun("", 2, 50, tasks=tasks)])
    assert ("different-work" in codes(found)) is warned


@pytest.mark.parametrize(("dynamic", "n"), [("false", 8), ("true", 6)])
def test_with_dynamic_allocation_the_size_is_an_average(dynamic: str, n: float) -> None:
    application = Application(id="app", start=1000, end=2000)
    application.properties["spark.dynamicAllocation.enabled"] = dynamic
    for id_, added in (("1", 500), ("2", 1500)):
        application.executors[id_] = Executor(id_, added=added, cores=4)
    row = {"launch": 1000, "finish": 2000, "status": 1, "run_time": 1000}
    application.stages[0, 0] = Stage(0, start=1000, end=2000, status="COMPLETE", tasks=TaskTable.of([row]))
    found = figures(application)
    assert run_of("log", application, found, "cores").n == n
    assert run_of("log", application, found, "executors").n == n / 4
    assert run_of("log", application, found, "tasks").n == n
    application.resource_profiles[0] = {"task": {"cpus": 4.0}}
    assert run_of("log", application, found, "tasks").n == n / 4
    application.properties["spark.sql.shuffle.partitions"] = "64"
    assert run_of("log", application, found, "spark.sql.shuffle.partitions").n == 64
    with pytest.raises(SparkError, match="its size by spark"):
        run_of("log", application, found, "spark.app.name")


def event_log(folder: Path, cores: int, elapsed: int, tasks: int = 2) -> Path:
    """A run with one stage, whose tasks take all its time."""
    end = 1000 + elapsed
    begun = {"Number of Tasks": tasks, "Submission Time": 1000}
    metrics = {"Executor Run Time": elapsed, "Executor CPU Time": elapsed * 500_000}
    executor = {"Host": "node1", "Total Cores": cores}
    lines = [
        event("ApplicationStart", App_ID=f"app-{cores}", Timestamp=1000),
        event("ExecutorAdded", Executor_ID="1", Timestamp=1000, Executor_Info=executor),
        stage_event("StageSubmitted", **begun),
        *(task_event("TaskEnd", tid, metrics=metrics, **{"Finish Time": end}) for tid in range(tasks)),
        stage_event("StageCompleted", **begun, **{"Completion Time": end}),
        event("ApplicationEnd", Timestamp=end),
    ]
    path = folder / f"cores-{cores}"
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    return path


def test_the_command_reads_event_logs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    logs = [event_log(tmp_path, cores, elapsed) for cores, elapsed in [(4, 3000), (1, 10_000), (2, 5500)]]
    assert exit_code(["scale", *logs, "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["by"] == "cores" and [one["n"] for one in answer["points"]] == [1, 2, 4]
    four = answer["points"][2]
    assert four["speedup"] == pytest.approx(10 / 3) and four["efficiency"] == pytest.approx(10 / 12)
    assert (four["executorRunTime"], four["executorCpuTime"], four["numTasks"]) == (6000, 3e9, 2)
    assert {one["code"] for one in answer["warnings"]} == {"few-runs", "few-points"}
    assert exit_code(["scale", *logs]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "3 runs; speed-up is relative to cores = 1:"
    assert lines[4].split()[:2] == ["4", "1"] and "83.3%" in lines[4] and "50.0%" in lines[4]


def recorded(folder: Path, cores: int, elapsed: int, stacks: str) -> Path:
    """A run folder of a job whose one executor spends a second of CPU time on each core."""
    run = make_run(folder / f"run-{cores}", [MadeHost("n1", {7: stacks})])
    made = Made(a=cores)
    made.application.id, made.application.end = f"app-{cores}", START + elapsed
    made.job(0, 0, elapsed, (0,))
    made.stage(0, 0, elapsed, [(0, elapsed, {"cpu_time": 1_000_000_000})] * cores)
    save_application(made.application, run.path)
    return run.path


def test_methods_that_grow(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Four cores spend four times the CPU time; `lock` had a tenth of it and has half."""
    one = recorded(tmp_path, 1, 10_000, "main;work 900\nmain;lock 100\n")
    four = recorded(tmp_path, 4, 4000, "main;work 1000\nmain;lock 1000\n")
    assert exit_code(["scale", one, four, "--json", "-o", tmp_path / "plot.html"]) == 0
    growth = json.loads(capsys.readouterr().out)["growth"]
    assert growth["sizes"] == [1, 4]
    assert [(one["name"], one["before"], one["after"]) for one in growth["methods"]] == [
        ("lock", pytest.approx(100), pytest.approx(2000)),
        ("work", pytest.approx(900), pytest.approx(2000)),
    ]
    assert growth["work"] == {"1": {"other": pytest.approx(1000)}, "4": {"other": pytest.approx(4000)}}
    found = described(tmp_path / "plot.html")
    measured, *_ = blocks(found, "chart")[0]["series"]
    assert [mark[:2] for mark in measured["marks"]] == [[1, 1], [4, 2.5]]
    (grown,) = [one for one in blocks(found, "table") if one["id"] == "growth"]
    assert grown["rows"][0]["cells"][2][0] == "20.0 x"
    # The log of a recorded job knows all of it.
    log = event_log(tmp_path, 4, 2500)
    assert exit_code(["scale", one, four, log]) == 0
    assert "4.00" in (out := capsys.readouterr().out) and "lock" in out
    assert exit_code(["scale", one, log]) == 0
    assert "own CPU time" not in capsys.readouterr().out


def test_a_run_is_named_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = event_log(tmp_path, 1, 1000)
    assert exit_code(["scale", log, log]) == 2
    assert "are the same run" in capsys.readouterr().err
    runs = [f"{recorded(tmp_path, cores, 4000, 'main;work 9')}/" for cores in (1, 4)]
    assert exit_code(["scale", *runs]) == 0
    assert "own CPU time" in capsys.readouterr().out
    assert exit_code(["scale", runs[0], *runs]) == 2
    assert "are the same run" in capsys.readouterr().err


def test_a_run_that_failed_is_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    runs = [str(path) for path in sorted((Path(__file__).with_name("spark") / "scale-failed-run").iterdir())]
    assert exit_code(["scale", *runs, "--json"]) == 3
    found = json.loads(capsys.readouterr().out)
    assert [point["n"] for point in found["points"]] == [1, 2, 4]
    (failed,) = (one for one in found["warnings"] if one["code"] == "failed")
    assert failed["source"] == runs[3] and failed["reason"].startswith("The job failed in stage 0.0")
    assert exit_code(["scale", runs[3]]) == 4 and "all runs failed" in capsys.readouterr().err


def test_runs_of_one_size_do_not_scale() -> None:
    found = scaling([SizedRun(f"run {time}", 4, time) for time in (100, 110, 90)])
    assert codes(found) == {"one-size"} and found.amdahl is None
