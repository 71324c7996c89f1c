"""Short-lived JVMs on this machine: each is recorded by a run that was there before it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading

import pytest

from tests.burners.burner import Burner
from tests.contract import real
from tests.lab import procs

pytestmark = pytest.mark.skipif(bool(real.why_not()), reason=str(real.why_not()))
WORD = f"joinme{os.getpid()}"
SECONDS = 5
HPROFILER = [sys.executable, "-m", "hprofiler"]


def test_jvms_of_five_seconds_are_recorded_until_the_last_of_them_has_ended(tmp_path):
    """The run waits for the first one. The second one starts beside it, the third after it."""
    command = [
        *HPROFILER,
        "-j",
        f"text:{WORD}",
        "--wait",
        "100",
        "-t",
        "job:100",
        "--json",
        "-o",
        tmp_path / "run",
    ]
    run = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    burnt = {}

    def burn(before: float) -> None:
        threading.Event().wait(before)
        burner = Burner(seconds=SECONDS, extra=[WORD])
        assert burner.process.wait(60) == 0
        burnt[burner.pid] = burner

    assert run.stderr is not None
    while ": recording" not in run.stderr.readline():
        pass
    threads = [threading.Thread(target=burn, args=(before,)) for before in (0.0, 2.0, SECONDS + 2.0)]
    for thread in threads:
        thread.start()
    out, err = run.communicate(timeout=120)
    for thread in threads:
        thread.join()
    assert run.returncode == 0, err
    result = json.loads(out)
    assert {one["pid"] for one in result["processes"]} == set(burnt), result["processes"]
    for one in result["processes"]:
        assert one["ended_by"] == "process" and one["ended"] - one["joined"] > SECONDS - 2.0, one
        lived = one["ended"] - one["started"]
        assert lived > SECONDS - 0.5 and 0 < one["cpu_seconds_before"] < 2 * lived, one
    assert result["interrupted"] is False
    sums = [sum(one[name] for one in result["processes"]) for name in ("cpu_seconds", "cpu_seconds_before")]
    cpu = result["seen"]["cpu"]
    assert cpu["counted_by"] == "processes" and cpu["recorded_seconds"] == pytest.approx(sums[0]), cpu
    # The kernel may count a bit more than was sampled.
    assert sum(sums) <= cpu["all_seconds"] * 1.0001 < 1.1 * sum(sums), (cpu, sums)
    assert 0.5 < cpu["share"] < 1, cpu
    assert [[recorded, missed] for _, recorded, missed in result["seen"]["moments"]][-1] == [0, 0]


def test_ps_names_what_starts_and_ends():
    word = f"{WORD}ps"
    first = Burner(load=0.1, extra=[word])
    command = [*HPROFILER, "ps", "--watch", "--json", "-j", f"text:{word}"]
    ps = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert ps.stdout is not None
    changes = (json.loads(line) for line in ps.stdout)
    try:
        runs = next(changes)
        assert (runs["what"], runs["pid"]) == ("runs", first.pid)
        second = Burner(load=0.1, extra=[word])
        started = next(changes)
        second.kill()
        ended = next(changes)
        assert (started["what"], started["pid"]) == ("started", second.pid)
        assert (ended["what"], ended["pid"], ended["label"]) == ("ended", second.pid, "Burner")
        ps.send_signal(signal.SIGINT)
        assert ps.wait(procs.PATIENCE) == 130
    finally:
        ps.kill()
        first.kill()
