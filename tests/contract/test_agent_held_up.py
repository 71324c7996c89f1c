"""Agents that live and are held up: by a slow reader, or by whoever stops them."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import threading
import time
from contextlib import ExitStack

import pytest

from tests.contract.agent_driver import good
from tests.contract.cleaning import clean, listed, of_pid
from tests.contract.conftest import found, is_profiled
from tests.lab.procs import wait_for

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: agents and JVMs of other users"),
]
LEASE = 10.0
LIMIT = 30
"""Seconds after its time by which a profiler ends by itself."""
PIECE = 4096


def read_slowly(pipe, enough):
    """Some KiB a second, until it is enough; then the rest."""
    while os.read(pipe.fileno(), PIECE):
        if not enough.is_set():
            time.sleep(0.3)  # it is what makes the reader slow: a minute for all, far longer than is looked


def test_one_that_sends_for_longer_than_its_lease_is_no_leftover(private, agent):
    """An answer of some 800 KiB to a coordinator that pings, and reads slowly."""
    enough = threading.Event()
    with ExitStack() as stack:
        for _ in range(200):
            command = [shutil.which("sleep"), "600", "0" * PIECE]
            running = stack.enter_context(subprocess.Popen(command))
            stack.callback(running.kill)
        sends = stack.enter_context(
            subprocess.Popen([str(private)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        )
        reader = threading.Thread(target=read_slowly, args=(sends.stdout, enough))
        reader.start()
        for at_last in (reader.join, sends.kill, enough.set):
            stack.callback(at_last)

        def ask(*requests):
            sends.stdin.write(b"".join(json.dumps(request).encode() + b"\n" for request in requests))
            sends.stdin.flush()

        ask({"type": "hello", "protocol": 2, "lease_seconds": LEASE}, {"type": "list"})
        end = time.monotonic() + 2 * LEASE
        while time.monotonic() < end:
            ask({"type": "ping"})
            entry = of_pid(listed(agent), sends.pid)["agent"]
            assert entry["state"] == "used", entry
            time.sleep(0.2)  # a ping comes now and then
        assert reader.is_alive(), "it was all sent before"
        enough.set()
        ask({"type": "bye"})
        assert sends.wait(60) == 0


def test_one_that_was_stopped_past_its_limit_ends_nobody_elses_recording(start_agent, library_file, burn):
    burner = burn()
    pid = burner.outer.pid

    def begin(duration):
        agent = start_agent()
        agent.hello(lease=600)
        ready, refused = agent.prepare(
            agent.put(library_file.read_bytes()), found(agent, burner), duration=duration
        )
        assert ready, refused
        agent.start()
        return agent

    stopped = begin(3)
    stopped.process.send_signal(signal.SIGSTOP)
    wait_for("the profiler's own time limit", lambda: not is_profiled(pid), 2 * LIMIT)
    other = begin(300)
    stopped.process.send_signal(signal.SIGCONT)
    assert stopped.collect().outcomes[pid]["status"] != "ok"
    assert stopped.bye() == 0
    assert is_profiled(pid), "it is the other one's"
    other.send("stop")
    assert good(other.collect().outcomes[pid])
    assert not is_profiled(pid)
    # It was given up at once as it went on, and told to end before it had deleted all.
    clean(other)
