"""The command lines that are for the sake of the hosts: the real agent and a real JVM on this machine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.burners.burner import Burner
from tests.contract import real
from tests.lab import attach, procs

pytestmark = pytest.mark.skipif(bool(real.why_not()), reason=str(real.why_not()))


@pytest.fixture
def burner():
    made = Burner(role="alpha", load=0.4)
    yield made
    made.kill()


def hprofiler(*words: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "hprofiler", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=4 * procs.PATIENCE)


def lines(audit: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in audit.read_text().splitlines()]


def test_doctor_says_and_does_nothing(burner, tmp_path):
    audit = tmp_path / "audit"
    done = hprofiler("doctor", "-j", f"pid:{burner.pid}", "--force-busy", "--json", "--audit", audit)
    told = json.loads(done.stdout)
    assert told["processes"]["found"] == 1 and not told["processes"]["failed"], done
    assert done.returncode == (3 if told["processes"]["degraded"] else 0)
    (process,) = told["hosts"][0]["processes"]
    assert (process["pid"], process["engine"]) == (burner.pid, "async-profiler")
    begin, *between, end = lines(audit)
    assert (begin["what"], end["what"], end["exit_code"]) == ("begin", "end", done.returncode)
    assert {"connect", "command", "request"} == {line["what"] for line in between if line["by"] != "agent"}
    assert all(line["pid"] is None for line in between), "no process was touched"
    assert not attach.profiler_libraries(burner.pid)


def test_a_run_after_a_canary(burner, tmp_path):
    audit, folder = tmp_path / "audit", tmp_path / "run"
    words = ["-j", f"pid:{burner.pid}", "-t", 1, "--canary", "--force-busy", "--audit", audit, "-o", folder]
    done = hprofiler("run", *words, "--max-hosts", 1)
    run = json.loads((folder / "run.json").read_text())
    (host,) = run["hosts"]
    assert [one["process"]["pid"] for one in host["recordings"]] == [burner.pid], done
    assert not host["recordings"][0]["process"]["command"], "it may hold what nobody else is to see"
    well = f"canary: process {burner.pid}"
    assert well in done.stderr and "for 2 s by async-profiler: fine" in done.stderr
    assert [line["status"] for line in host["outcomes"] if line["reason"].startswith(well)] == ["ok"]
    requests = [line["detail"].split()[0] for line in lines(audit) if line["what"] == "request"]
    asked = [name for name in requests if name in ("check", "prepare", "start", "bye")]
    assert asked == ["check", "prepare", "start", "prepare", "start", "bye"]
    starts = [line for line in lines(audit) if line["what"] == "attach" and "start," in line["detail"]]
    assert len(starts) == 2 and {line["pid"] for line in starts} == {burner.pid}
    made = {line["detail"] for line in lines(audit) if line["what"] == "folder" and line["pid"]}
    gone = {line["detail"] for line in lines(audit) if line["what"] == "removed"}
    assert made and made <= gone and not any(os.path.exists(path) for path in made)
    assert not [line for line in lines(audit) if line["what"] == "dropped"]
    assert (lines(audit)[-1]["what"], lines(audit)[-1]["exit_code"]) == ("end", done.returncode)
