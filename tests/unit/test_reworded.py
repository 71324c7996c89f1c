"""No program reads a sentence: with every reason and remedy reworded at random, nothing but texts differs."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from hprofiler.analysis.subject import Finding
from hprofiler.cli.commands.run import exit_code
from hprofiler.cli.terminal.run_text import print_json
from hprofiler.collect import reconnect
from hprofiler.model import Note, Outcome
from tests.unit.conftest import MakeFleet
from tests.unit.stand_in import Fleet

BODIES = {
    "good": """hello(); found(7); prepared(7); recording(7); profile(7, PROFILE)
outcome(7, code="recorded"); say("done", left=[]); read()""",
    "idle": "hello(); found(); read()",
    "killed": "hello(); found(7); prepared(7); recording(7); os.kill(os.getpid(), 9)",
    "partial": """hello(); found(7, 8); read()
outcome(8, "failed", "prepare", "8 accepts no profiler", "restart it", code="attach-disabled")
say("ready", processes=[{"pid": 7}]); recording(7); profile(7, PROFILE)
broken = dict(code="no-frame-pointers", reason="40 % broken", remedy="set a flag",
              parameters=dict(event="cpu", share=0.4))
outcome(7, "degraded", "record", "40 % broken; perf 6.1", "set a flag", code="no-frame-pointers",
        notes=[broken, dict(code="perf-version", reason="perf 6.1", remedy="")])
say("done", left=["/tmp/left"]); read()""",
    "silent": "sys.exit(9)",
}
# Sentences, and what differs from run to run.
SENTENCES = {"reason", "remedy", "text", "where", "left_out", "findings"}
VARYING = {
    *("started", "finished", "timings", "folder", "report", "bytes_sent", "bytes_received", "totals", "clock")
}


def without_texts(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: without_texts(v) for k, v in value.items() if k not in SENTENCES | VARYING}
    return [without_texts(one) for one in value] if isinstance(value, list) else value


def outcome_of_a_run(
    hosts: Fleet, folder: Path, capsys: pytest.CaptureFixture[str]
) -> tuple[int, Any, Any, list[str]]:
    """Exit status, run.json, `--json` and second lines of a run of all kinds of hosts, without sentences."""
    result = hosts.run(folder)
    print_json(result)
    printed = json.loads(capsys.readouterr().out)
    stored = json.loads((folder / "run.json").read_text())
    seconds = [event.second for event in result.report.events]
    return int(exit_code(result)), without_texts(stored), without_texts(printed), seconds


def test_nothing_but_texts_differs(
    fleet: MakeFleet, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reconnect, "LEASE_SECONDS", 1.0)
    hosts = fleet(timeout=30.0, **BODIES)
    usual = outcome_of_a_run(hosts, tmp_path / "usual", capsys)
    chance = random.Random(8)

    def words() -> str:
        return "".join(chance.choices("abc 7%;:()", k=40))

    def reworded(cls: type) -> None:
        made = cls.__init__

        def init(self: Any, *args: Any, **members: Any) -> None:
            made(self, *args, **members)
            for name in ("reason", "remedy"):
                if getattr(self, name, ""):
                    object.__setattr__(self, name, words())
            if isinstance(self, Finding):
                object.__setattr__(self, "parts", tuple((kind, words()) for kind, _ in self.parts))

        monkeypatch.setattr(cls, "__init__", init)

    reworded(Outcome)
    reworded(Note)
    reworded(Finding)
    assert outcome_of_a_run(hosts, tmp_path / "reworded", capsys) == usual
    assert all(usual[3])
    codes = {line["code"] for line in usual[2]["failures"]}
    assert codes == {"attach-disabled", "agent-ended", "connection-lost"}
    assert {line["code"] for host in usual[1]["hosts"] for line in host["outcomes"]} >= {
        *("recorded", "no-match", "attach-disabled", "no-frame-pointers", "agent-ended"),
    }
