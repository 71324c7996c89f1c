"""Blocked time and its bounds, of applications worked out by hand."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from hprofiler.analysis.spark.findings import judge
from hprofiler.analysis.spark.words import sentence
from hprofiler.cli.commands.spark import print_answer
from hprofiler.cli.terminal.lines import print_json
from hprofiler.report.spark.blocked import blocked_part
from hprofiler.report.spark.record import blocked_record
from hprofiler.spark.application import FAILED
from hprofiler.spark.figures import figures
from hprofiler.spark.replay.blocked import BlockedTime, blocked_time
from hprofiler.spark.replay.schedule import Replay
from tests.unit.spark_application import Made


def analyzed(made: Made) -> BlockedTime:
    return blocked_time(made.application, Replay(made.application))


def recorded(made: Made) -> dict[str, Any]:
    judged = judge(made.application, Replay(made.application))
    return blocked_record(judged.blocked, judged.account)


def shuffle() -> Made:
    """Two tasks at a time on one executor; 40 % of the second stage is fetches."""
    made = Made(a=2)
    made.job(0, 0, 3000, (0, 1))
    write = {"shuffle_write_time": 500_000_000, "cpu_time": 400_000_000, "shuffle_write_bytes": 5_000_000}
    made.stage(0, 0, 1000, [(0, 1000, {**write, "gc_time": 200}), (0, 1000, {**write, "gc_time": 300})])
    read = {"fetch_wait": 800, "cpu_time": 600_000_000, "shuffle_remote_bytes": 5_000_000, "gc_time": 5000}
    made.stage(1, 1000, 3000, [(1000, 2000, read), (1000, 1900, {**read, "run_time": 1400})], parents=(0,))
    return made


def test_bounds_by_resource() -> None:
    blocked = analyzed(shuffle())
    found = {one.resource.name: one for one in blocked.resources}
    assert (blocked.replay.as_it_was, blocked.replay.error) == (3000, 0)
    network, disk = found["network"], found["disk"]
    assert network.time == 1600 and network.gain and network.gain.time == pytest.approx(800)
    assert disk.time == 2600 and disk.gain and disk.gain.share == pytest.approx(1300 / 3000)
    # Collectors count more than a task lasts; a task cannot gain more than that.
    assert found["gc"].time == 200 + 300 + 2000 + 1900
    assert found["gc"].gain and found["gc"].gain.time == pytest.approx(3000 - 800)
    # One task ran 1400 of its 1900; the others have no delay.
    assert found["scheduler"].time == 500 and found["scheduler"].gain and found["scheduler"].gain.time == 0
    assert found["python"].time is None and found["locks"].gain is None


def test_python_where_the_log_has_it() -> None:
    made = Made(a=1)
    made.job(0, 0, 1000, (0,))
    made.stage(0, 0, 1000, [(0, 1000, {"python_time": 600})])
    blocked = analyzed(made)
    (python,) = (one for one in blocked.resources if one.resource.name == "python")
    assert python.time == 600 and python.gain and python.gain.time == pytest.approx(600)
    findings = judge(made.application, Replay(made.application)).findings
    assert sentence(findings) == "Stage 0.0 takes 100% of the time; 60% of its task time is Python workers."


def test_slots_are_by_the_resource_profile() -> None:
    made = Made(a=8)
    made.job(0, 0, 1000, (0,))
    made.stage(0, 0, 1000, [(0, 1000)])
    made.application.executors["a"].resource_profile = 1
    made.application.resource_profiles[1] = {"task": {"cpus": 4.0}}
    assert Replay(made.application).slots.most == 2


def test_stages_have_shares_of_their_task_time() -> None:
    first, second = analyzed(shuffle()).stages
    assert first.waits["disk"] / first.task_time == 0.5
    assert second.waits["network"] / second.task_time == pytest.approx(1600 / 3900)


def test_a_pause_is_one_for_the_executor() -> None:
    made = shuffle()
    assert "real pauses" not in blocked_part(analyzed(made)).text, "nobody sampled them"
    made.application.executors["a"].peak = {"TotalGCTime": 2300}
    assert "the tasks' 4.4 s are at least 2.3 s of real pauses." in blocked_part(analyzed(made)).text
    assert recorded(made)["gcPauses"] == 2300


def test_use_of_disk_network_and_cpu() -> None:
    use = analyzed(shuffle()).use
    assert (use.disk, use.network, use.cpu_time) == (20_000_000, 10_000_000, 2000)
    assert use.per_cpu_second(use.network) == pytest.approx(5_000_000)
    assert use.per_host_second(use.disk) == pytest.approx(20_000_000 / 3)
    assert use.slots == pytest.approx(5900 / 6000) and use.cpu == pytest.approx(2000 / 6000)


def test_failed_tasks_use_slots_and_cpu() -> None:
    made = Made(a=1)
    made.job(0, 0, 2000, (0,))
    cpu = {"cpu_time": 500_000_000, "input_bytes": 1000}
    made.stage(0, 0, 2000, [(0, 1000, {**cpu, "status": FAILED}), (1000, 1000, {**cpu, "partition": 0})])
    use = analyzed(made).use
    assert (use.slots, use.cpu, use.disk) == (1.0, 0.5, 2000)


def test_nothing_is_blocked_where_there_is_nothing() -> None:
    made = Made()
    blocked = analyzed(made)
    assert [one.time for one in blocked.resources] == [0, 0, 0, 0, None, None]
    assert blocked.use.per_cpu_second(1) is None and blocked.use.slots is None
    record = recorded(made)
    assert list(record.pop("stages")) == []
    record = msgspec.json.decode(msgspec.json.encode(record))
    assert record["replayError"] == 0 and record["use"]["cpuUse"] is None


def test_record() -> None:
    record = recorded(shuffle())
    names = [one["name"] for one in record["resources"]]
    assert names == ["network", "disk", "gc", "scheduler", "python", "locks"]
    assert record["resources"][0]["upperBound"] == pytest.approx(800)
    assert list(record["stages"])[1]["blocked"]["network"] == 1600


def test_sections_of_the_answer(capsys: pytest.CaptureFixture[str]) -> None:
    application = shuffle().application
    print_answer(application, figures(application), as_json=True)
    answer = msgspec.json.decode(capsys.readouterr().out)
    assert answer["blocked"]["replayed"] == 3000 and answer["stragglers"]["count"] == 0
    assert answer["findings"][0] == {
        "code": "stage-share",
        "parameters": {
            "stage": 1,
            "attempts": [0],
            "does": "",
            "share": pytest.approx(2 / 3),
            "cpu": pytest.approx(0.308, abs=0.001),
            "few": 0.0,
        },
        "seconds": 2.0,
        "text": "stage 1.0 takes 67% of the time",
    }
    print_answer(application, figures(application), as_json=False)
    text = capsys.readouterr().out
    assert "Stage 1.0 takes 67% of the time; " in text and "blocked time; the job would be shorter" in text


def test_long_lists_are_printed_item_by_item(capsys: pytest.CaptureFixture[str]) -> None:
    whole = {"one": 1, "none": [], "empty": {}, "part": {"rows": [1, {"of": [2]}], "last": None}}
    members = {**whole, "none": iter([]), "part": {"rows": iter([1, {"of": [2]}]), "last": None}}
    print_json(members)
    assert capsys.readouterr().out == json.dumps(whole, indent=2) + "\n"
