"""A user who makes himself many, a process that has much to tell: the others are recorded all the same."""

from __future__ import annotations

import hashlib
import os
import sys
from pathlib import Path

import pytest

from tests.contract.agent_driver import ready
from tests.contract.asking import chosen, sampling
from tests.contract.conftest import OTHER_USER
from tests.lab import procs

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: processes of other users"),
]

MOST = 512
MOST_FINDINGS = 100
HUNDREDS, MANY_WORDS = 300, 150_000
MIB = 1 << 20


def crowding(user: int, copies: int, files: list[Path]) -> list[str]:
    for file in files:
        file.write_bytes(b"\x7fELF of a sort")
    program = str(Path(__file__).with_name("crowding.py"))
    return [sys.executable, program, str(user), str(copies), *map(str, files)]


def test_who_starts_hundreds_keeps_nobody_out(agent, burn, tmp_path):
    with ready(crowding(OTHER_USER, MOST + 2, [tmp_path / "libjvm.so"])):
        mine = burn()  # the youngest
        agent.send("find", selector={"kind": "regex", "regex": f"libjvm.so|{mine.outer.pid}|Burner"})
        found = agent.expect("found")["processes"]
    users = [process["uid"] for process in found]
    assert users.count(OTHER_USER) >= MOST + 2
    assert mine.outer.pid in [process["pid"] for process in found[:MOST]]
    theirs = [process["start_time"] for process in found if process["uid"] == OTHER_USER]
    assert theirs == sorted(theirs)


def most_memory(pid: int) -> int:
    """The most bytes that a process ever had in memory."""
    return int(procs.status(pid)["VmHWM"][0]) << 10


def test_words_without_number_take_no_memory_and_nobody_elses_words(agent, burn, tmp_path):
    crowd = crowding(OTHER_USER, HUNDREDS, [tmp_path / "libjvm.so"])
    with ready([*crowd, "--", *["x"] * MANY_WORDS]):
        mine = burn(options=["-Dlong=" + "y" * 100_000])  # the youngest
        agent.send("find", selector={"kind": "regex", "regex": "libjvm.so|-Dlong=y{1000}.*y .*Burner"})
        found = agent.expect("found")["processes"]
    users = [process["uid"] for process in found]
    assert users.count(OTHER_USER) == HUNDREDS + 1
    assert [p["main_class"] for p in found if p["pid"] == mine.outer.pid] == ["Burner"]
    assert most_memory(agent.process.pid) < 192 * MIB


def test_no_more_findings_are_told_than_are_read(agent, library_file, tmp_path):
    libraries = [tmp_path / f"libasyncProfiler-{number}.so" for number in range(MOST_FINDINGS + 1)]
    with ready(crowding(OTHER_USER, 0, [tmp_path / "libjvm.so", *libraries])) as process:
        agent.send("find", selector={"kind": "pids", "pids": [process.pid]})
        found = agent.expect("found")["processes"]
        blobs = {"async-profiler": hashlib.sha256(library_file.read_bytes()).hexdigest()}
        agent.send("check", sampling=sampling(), blobs=blobs, processes=chosen(found))
        (checked,) = agent.expect("checked")["processes"]
    findings = checked["findings"]
    assert len(findings) == MOST_FINDINGS and "more findings are left out" in findings[-1]["text"]
    assert findings[0]["about"] == "jvm"
