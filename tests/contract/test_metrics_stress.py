"""Each resource under stress is named as a finding, and no other one.

A slow disk is not among them: a control group's limit delays requests before the kernel counts them as the
disk's. The time that a hypervisor takes cannot be made here either.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import msgspec
import pytest

from hprofiler.analysis.machines import host_figures, host_findings
from hprofiler.analysis.metrics import HostMetrics
from hprofiler.model.metrics import Metrics
from tests.contract.agent_driver import Agent, running
from tests.lab.procs import wait_for
from tests.needed import lacking

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: control groups, network namespaces"),
]
MEMORY = Path("/sys/fs/cgroup/memory")
FAULTS = """
import mmap, os, random, sys
file = os.open(sys.argv[1], os.O_RDONLY)
size = os.fstat(file).st_size
pages = mmap.mmap(file, size, prot=mmap.PROT_READ)
pages.madvise(mmap.MADV_RANDOM)
while True:
    pages[random.randrange(size)]
"""
SENDER = """
import socket, threading
listener = socket.create_server(("127.0.0.1", 0))
sender = socket.create_connection(listener.getsockname())
receiver, _ = listener.accept()
def receive():
    while receiver.recv(1 << 16):
        pass
threading.Thread(target=receive, daemon=True).start()
while True:
    sender.sendall(bytes(1 << 16))
"""


def found(agent: Agent, burner) -> set[str]:
    """The codes of what stands out in 4 s, but for what other work on this machine may cause."""
    others = {"run-queue"} if os.getloadavg()[0] > (os.cpu_count() or 1) else set()
    return stands_out(agent, burner) - others


def stands_out(agent: Agent, burner) -> set[str]:
    agent.begin(burner, duration=4, metrics=True)
    metrics = HostMetrics(msgspec.convert(agent.collect().metrics, Metrics))
    return {one.code for one in host_findings("n1", host_figures(metrics), metrics.facts)}


@pytest.fixture
def quiet(burn):
    """It uses a twentieth of a CPU."""
    return burn(load=0.05)


def test_nothing_is_named_without_stress(agent, quiet):
    assert found(agent, quiet) == set()


def test_more_threads_than_processors(agent, quiet):
    with ExitStack() as started:
        for _ in range(4 * (os.cpu_count() or 1)):
            started.enter_context(running(sys.executable, "-c", "while True: pass"))
        assert stands_out(agent, quiet) == {"run-queue"}


def test_a_collector_without_a_rest(agent, burn):
    small = burn(jdk=17, role="alloc", load=1.0, options=["-Xmx24m", "-Xmn1m", "-XX:+UseSerialGC"])
    assert found(agent, small) == {"gc"}


@contextmanager
def little_memory(limit: int) -> Iterator[str]:
    """A command's words that put it into a control group with so many bytes."""
    group = MEMORY / f"hprofiler-stress-{os.getpid()}"
    if not MEMORY.is_dir():
        lacking("the memory controller of cgroup v1")
    group.mkdir()
    try:
        (group / "memory.limit_in_bytes").write_text(str(limit))
        yield f'echo $$ > {group}/cgroup.procs && exec "$@"'
    finally:
        wait_for("an empty group", lambda: not (group / "cgroup.procs").read_text())
        group.rmdir()


def test_pages_that_do_not_fit_into_memory(agent, quiet, tmp_path):
    path = tmp_path / "pages"
    with path.open("wb") as file:
        file.write(os.urandom(1 << 20) * 256)
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    with (
        little_memory(24 << 20) as script,
        running("sh", "-c", script, "sh", sys.executable, "-c", FAULTS, str(path)),
    ):
        assert found(agent, quiet) == {"major-faults"}


def test_a_network_that_drops_packets(new_agent, quiet):
    if not shutil.which("tc"):
        lacking("tc is missing")
    # What does not fit into the small buffer is dropped, and TCP sends it again.
    script = (
        "ip link set lo up mtu 1500 && tc qdisc add dev lo root tbf rate 20mbit burst 10kb limit 10kb && "
        'echo ready && exec "$@"'
    )
    command = ["unshare", "--net", "sh", "-c", script, "sh", sys.executable, "-c", SENDER]
    with running(*command, stdout=subprocess.PIPE) as sender:
        assert sender.stdout.readline() == b"ready\n"
        agent = new_agent(by=["nsenter", "--net", f"--target={sender.pid}"])
        assert found(agent, quiet) == {"retransmits"}
