"""Runs in which something goes wrong: a few pairs of faults, and what the judge of `make test-chaos` sees."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent import futures
from pathlib import Path

import pytest

from tests.burners.burner import Burner
from tests.lab import attach, cache, procs
from tests.lab.chaos import debugger
from tests.lab.chaos.fault import Excuse
from tests.lab.chaos.faults import ALL
from tests.lab.chaos.faults.processes import KilledJvm
from tests.lab.chaos.ground import Ground
from tests.lab.chaos.trial import take
from tests.lab.conftest import Burn
from tests.lab.coordinator import Running
from tests.lab.hosts import Lab
from tests.lab.witness import Witness, sockets

pytestmark = pytest.mark.nightly

TRIALS = [
    ("agent killed", "packets lost"),
    ("ssh session killed", "clock off by an hour"),
    ("JVM killed", "boot clock off by an hour"),
    ("host frozen", "slow link"),
    ("Ctrl-C", "cable out, briefly"),
    ("few processes",),
    ("two coordinators",),
]


@pytest.fixture(scope="module")
def ground(lab: Lab, workshop: Path) -> Iterator[Ground]:
    folder = workshop / "chaos"
    folder.mkdir()
    made = Ground(lab, folder)
    yield made
    made.end()


@pytest.mark.parametrize("names", TRIALS, ids=" and ".join)
def test_nothing_is_lost_harmed_or_left(ground: Ground, names: tuple[str, ...]) -> None:
    chance = random.Random(" ".join(names))
    verdict = take(ground, [ALL[name](ground, chance) for name in names])
    assert verdict.passed, "\n".join([*verdict.faults, *verdict.complaints])


def test_every_fault_is_told() -> None:
    told = (cache.CHECKOUT / "docs/internals/chaos.md").read_text()
    assert [name for name in ALL if f"`{name}`" not in told] == []


class Unexcused(KilledJvm):
    """Data of a host are lost, and nothing excuses that."""

    def begin(self, running: Running | None) -> None:
        assert running
        running.wait_until_recording()
        super().begin(running)

    def excuse(self) -> Excuse:
        return Excuse()


def test_the_judge_sees_what_is_lost(ground: Ground) -> None:
    fault = Unexcused(ground, random.Random(1))
    verdict = take(ground, [fault])
    complaints = [one for one in verdict.complaints if one.startswith(fault.host)]
    assert any("ledger" in complaint for complaint in complaints), verdict
    assert f"{fault.host}: its JVM is gone" in complaints


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_trials_that_are_ended_leave_nothing(lab: Lab, tmp_path: Path, number: signal.Signals) -> None:
    command = [sys.executable, "-m", "tests.lab.chaos", "--only", "host frozen, for long", "--runs", "1"]
    environment = {**os.environ, "PYTHONPATH": str(cache.CHECKOUT), "TMPDIR": str(tmp_path)}
    trials = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
    try:
        procs.wait_for(
            "a frozen host", lambda: any(map(_stands_still, procs.family(trials.pid))), 2 * procs.PATIENCE
        )
        started = [*filter(None, map(procs.Identity.of, procs.family(trials.pid)))]
        trials.send_signal(number)
        trials.wait(procs.PATIENCE)
        for process in started:
            procs.wait_for(f"the end of {process}", lambda: not process.alive(), procs.PATIENCE)  # noqa: B023
        assert number == signal.SIGKILL or list(tmp_path.iterdir()) == []
    finally:
        trials.kill()
        trials.wait()


def _stands_still(pid: int) -> bool:
    with contextlib.suppress(OSError):  # it ended while we looked
        return procs.status(pid)["State"][0] == "T"
    return False


def test_a_jvm_whose_safepoints_are_long(tmp_path: Path) -> None:
    stalled = tmp_path / "stalled"
    burner = Burner(
        load=0.3, main="Stalling", options=["-XX:-UseCountedLoopSafepoints", f"-Dstalling={stalled}"]
    )

    def took() -> float:
        began = time.monotonic()
        attach.execute(burner.outer.pid, "jcmd", "Thread.print")
        return time.monotonic() - began

    try:
        stalled.touch()
        procs.wait_for("a long safepoint", lambda: took() > 0.5)
    finally:
        burner.kill()


def test_a_jvm_that_a_debugger_holds(lab: Lab, burn: Burn) -> None:
    host = lab.hosts["host1"]
    burner = burn(host, load=0.3, options=[debugger.OPTION])
    held = debugger.Debugger(["nsenter", "-t", str(host.init.pid), "-n"])
    try:
        held.hold()
        with futures.ThreadPoolExecutor() as pool:
            answer = pool.submit(attach.execute, burner.outer.pid, "jcmd", "Thread.print")
            with pytest.raises(futures.TimeoutError):
                answer.result(1)
            held.kill()
            assert "burner" in answer.result(procs.PATIENCE)
    finally:
        held.kill()


def test_the_witness_sees_sockets(lab: Lab) -> None:
    host = lab.hosts["host1"]
    witness = Witness([host])
    script = (
        "import socket; unix = socket.socket(socket.AF_UNIX); unix.bind('\\0of-ours'); unix.listen();"
        "tcp = socket.create_server(('127.0.0.1', 4567)); print('listening', flush=True); input()"
    )
    command = ["nsenter", "-t", str(host.init.pid), "-n", sys.executable, "-c", script]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout
        assert process.stdout.readline() == b"listening\n"
        assert sockets(host) >= {"unix @of-ours", "tcp port 4567"}
        assert witness.leftovers() == ["host1: socket tcp port 4567", "host1: socket unix @of-ours"]
        process.communicate(b"\n", timeout=procs.PATIENCE)
    witness.wait_until_clean()
