"""Many hosts that take their time: a run is as slow as the slowest, and needs little where it starts."""

from __future__ import annotations

import hashlib
import json
import platform
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.contract import real
from tests.contract.crowd import Crowd
from tests.contract.sshd import SSHD
from tests.lab.chaos import bombs

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(not Path(SSHD).exists(), reason="sshd is not installed (openssh-server)"),
    pytest.mark.skipif(bool(real.why_not()), reason=str(real.why_not())),
]
HOSTS = 200
PAUSE = 1.0
"""Seconds of each answer of each host; of a run's five three come after all have connected."""
PROFILE = bombs.flat([f"a.B.m{number}" for number in range(50)])
WORDS = ["-j", "x", "-t", "1", "--engine", "async-profiler", "--timeout", "120"]


def slow(library: str) -> str:
    """The shell script of a host that answers slowly, whatever it is asked."""
    host = {
        "name": "slow",
        "arch": "x86_64",
        "kernel": "k",
        "cpus": 2,
        "memory_bytes": 1,
        "uid": 0,
        "user": "root",
    }
    facts = {"boot_id": "'$STAND_IN'", "pid_namespace": "p"}  # each is a machine of its own
    process = {"pid": 7, "start_time": 1, "uid": 0, "user": "root", "label": "M", "jvm": {"version": "17"}}
    head = {
        **{
            "pid": 7,
            "event": "cpu",
            "engine": "async-profiler",
            "source": "ctimer",
            "interval": 1,
            "seconds": 1,
        },
        **{"cpu_seconds": 1, "timeline": [9], "samples": {"expected": 9, "taken": 9, "lost": 0}},
        **{"size": len(PROFILE), "sha256": hashlib.sha256(PROFILE).hexdigest()},
    }
    hello = line("hello", protocol=2, version="0", sha256="0" * 64, host={**host, **facts}, blobs=[library])
    answers = [
        [hello],
        [line("found", searched=1, processes=[process], ignored=[])],
        [line("ready", processes=[{"pid": 7}])],
        [line("started", pid=7, engine="async-profiler", sources={}), line("recording", processes=1)],
        [line("profile", **head)],
    ]
    says = "\n".join(f"sleep {PAUSE:g}\n" + "\n".join(lines) for lines in answers)
    end = f"cat $0.profile\n{line('outcome', pid=7, status='ok', stage='record')}\n{line('done', left=[])}"
    leave = """while read -r request; do case $request in *'"bye"'*) exit 0;; esac; done"""
    return f"#!/bin/sh\n{says}\n{end}\n{leave}\n"


def line(kind: str, **members: Any) -> str:
    return f"echo '{json.dumps({'type': kind, **members})}'"


@pytest.fixture
def crowd(tmp_path):
    library = real.binaries().blobs["async-profiler"][platform.machine()].sha256
    made = Crowd(tmp_path, library, {"slow": slow(library)})
    (made.folder / "scripts/slow.profile").write_bytes(PROFILE)
    return made


NAMES: list[str] = [f"slow-{number:03}" for number in range(HOSTS)]


def test_many_slow_hosts_take_as_long_as_the_slowest(crowd, tmp_path):
    command = crowd.start("run", NAMES, *WORDS, "-o", str(tmp_path / "run"))
    command.wait_to_hear(f"{NAMES[-1]}: recording", timeout=400)
    threads = command.threads()
    ended = command.result(400)
    assert ended.code == 0, ended
    hosts = json.loads((tmp_path / "run/run.json").read_text())["hosts"]
    assert [len(host["recordings"]) for host in hosts] == [1] * HOSTS
    assert threads < 6 * HOSTS + 50, threads
    assert ended.memory < (150 + 2 * HOSTS) << 20, ended.memory
    assert ended.seconds < 5 * PAUSE * HOSTS / 4, "the hosts took turns"


def test_an_interrupt_does_not_wait_for_slow_hosts(crowd, tmp_path):
    command = crowd.start("run", NAMES, *WORDS, "-o", str(tmp_path / "run"))
    command.wait_to_hear(": ready", timeout=400)
    command.process.send_signal(signal.SIGINT)
    ended = command.result(60)
    assert ended.code == 130, ended
    assert "Traceback" not in ended.err
