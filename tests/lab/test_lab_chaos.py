"""Runs in which something goes wrong: a few of the trials of `make chaos`, and the judge's own eyes."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path
from typing import Iterator, Optional, Tuple

import pytest

from tests.lab import cache, procs
from tests.lab.chaos.fault import Excuse
from tests.lab.chaos.faults import ALL
from tests.lab.chaos.faults.processes import KilledJvm
from tests.lab.chaos.ground import Ground
from tests.lab.chaos.trial import take
from tests.lab.coordinator import Running
from tests.lab.hosts import Lab
from tests.lab.witness import Witness, sockets

TRIALS = [
    ("agent killed", "packets lost"),
    ("ssh session killed", "clock off by an hour"),
    ("JVM killed", "boot clock off by an hour"),
    ("host frozen", "slow link"),
    ("Ctrl-C", "cable out, briefly"),
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
def test_nothing_is_lost_harmed_or_left(ground: Ground, names: Tuple[str, ...]) -> None:
    chance = random.Random(" ".join(names))
    verdict = take(ground, [ALL[name](ground, chance) for name in names])
    assert verdict.passed, "\n".join([*verdict.faults, *verdict.complaints])


def test_every_fault_is_told() -> None:
    told = (cache.CHECKOUT / "docs/chaos.md").read_text()
    assert [name for name in ALL if f"`{name}`" not in told] == []


class Unexcused(KilledJvm):
    """Data of a host are lost, and nothing excuses that."""

    def begin(self, running: Optional[Running]) -> None:
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
