"""Simulated hosts, and the coordinator that visits them, as two programs.

python -m tests.bench.fan_out_program agents SECONDS METRICS           prints the port where its hosts are
python -m tests.bench.fan_out_program run PORT HOSTS SECONDS FOLDER    records them; prints figures as JSON
python -m tests.bench.fan_out_program dump PORT HOSTS LOOKS FOLDER      dumps them; prints figures as JSON

Each connection is one host's agent, which speaks the protocol of agents/PROTOCOL.md. Its host has one JVM,
whose profile has 300 stacks that all hosts share and 10 that few others have, and whose dump has 200 threads
with 40 frames. METRICS is a file of a run folder, of a real host.
"""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import hashlib
import json
import os
import random
import resource
import socket
import sys
import threading
import time
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from hprofiler.agent.bootstrap import AgentBinaries
from hprofiler.app.dump import DumpRequest
from hprofiler.app.dump import dump as dump_all
from hprofiler.app.run import RunRequest
from hprofiler.app.run import run as run_all
from hprofiler.base.errors import HostError
from hprofiler.base.resources import ARCHITECTURES, Blob
from hprofiler.cli import memory
from hprofiler.collect.dumping import Looks
from hprofiler.collect.stop import Stop
from hprofiler.collect.visit_group import HostProgress, Reach, silent
from hprofiler.model import Host, Sampling, Selector, Target
from hprofiler.resolve import Located
from hprofiler.transport.base import Channel, Transport
from tests.bench.core_cluster import Maker
from tests.timed_profile import BUCKET, Row, timed_profile

SHARED_STACKS, OWN_STACKS = 300, 10
THREADS, FRAMES = 200, 40
PROFILES = 250
"""Different ones; host 250 has that of host 0."""
FREQUENCY = 99
LIBRARY = Blob(Path(__file__), "0" * 64)
_PIECE = 1 << 20
_TIMEOUT = 1000.0  # seconds: one process answers for all hosts
_PID = 4711
_JVM = {
    "pid": _PID,
    "namespace_pid": _PID,
    "start_time": 99,
    "uid": 1000,
    "user": "yarn",
    "ppid": 1,
    "label": "executor",
    "main_class": "org.apache.spark.executor.Executor",
    "command": "java -Xmx8g org.apache.spark.executor.Executor",
    "labels": {},
    "jvm": {"version": "17.0.9"},
}


@dataclass
class Figures:
    """What the coordinator used: seconds of CPU time, and bytes of memory at most."""

    collecting_cpu: float = 0.0
    collecting_peak: int = 0
    cpu: float = 0.0
    peak: int = 0
    threads: int = 0
    open_files: int = 0
    beyond_sampling: float = 0.0
    recorded: int = 0
    folder_bytes: int = 0
    record_bytes: int = 0
    page_bytes: int = 0


# The hosts


class Agents:
    """The agents of all hosts, and what they have in common."""

    def __init__(self, seconds: float, metrics: Path) -> None:
        self.seconds = seconds
        self.metrics = json.loads(gzip.decompress(metrics.read_bytes()))
        self.maker = Maker(2 * SHARED_STACKS)
        self.maker.own = OWN_STACKS
        self.began = 0.0

    async def serve(self) -> None:
        server = await asyncio.start_server(self.agent, "127.0.0.1", 0, backlog=4096, limit=_PIECE)
        print(server.sockets[0].getsockname()[1], flush=True)
        async with server:
            await server.serve_forever()

    async def agent(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One host's, from the first request to `bye`."""

        def say(kind: str, /, **members: Any) -> None:
            writer.write(json.dumps({"type": kind, **members}).encode() + b"\n")

        number = int(await reader.readline())
        writer.write(b"HPROFILER exec x86_64 /tmp/.hprofiler-1000\n")
        with contextlib.suppress(ConnectionError):
            while line := await reader.readline():
                kind = json.loads(line)["type"]
                if kind == "hello":
                    say("hello", protocol=3, host=_host(number), session="7-99", blobs=[LIBRARY.sha256])
                elif kind == "find":
                    say("found", searched=300, processes=[_JVM], ignored=[])
                elif kind == "clock":
                    say("clock", time=time.time())
                elif kind == "dump":
                    text = _threads()
                    say("dump", pid=_PID, kind="jvm", time=time.time(), seconds=0.01, size=len(text),
                        cpu=[[number, 1.5] for number in range(THREADS)])  # fmt: skip
                    writer.write(text)
                    say("outcome", pid=_PID, status="ok", stage="dump", code="dumped")
                    say("dumped", left=[])
                elif kind == "prepare":
                    say("ready", processes=[{"pid": _PID}])
                elif kind == "start":
                    self.began = self.began or time.time()
                    say("started", pid=_PID, engine="async-profiler", sources={"cpu": "perf_events"})
                    say("recording", processes=1)
                    await asyncio.sleep(self.seconds)
                    self.send_results(number, say, writer)
                elif kind == "bye":
                    break
                await writer.drain()
        writer.close()

    def send_results(self, number: int, say: Any, writer: asyncio.StreamWriter) -> None:
        profile = self.profile(number % PROFILES)
        taken = int(self.seconds * FREQUENCY)
        cpu = taken / FREQUENCY
        say(
            "profile", pid=_PID, event="cpu", engine="async-profiler", source="perf_events",
            interval=10**9 // FREQUENCY, seconds=self.seconds, cpu_seconds=cpu, resident_bytes=8 << 30,
            attach_seconds=0.1, samples={"expected": taken, "taken": taken, "lost": 0},
            sha256=hashlib.sha256(profile).hexdigest(), size=len(profile),
        )  # fmt: skip
        writer.write(profile)
        say(
            "pauses", pid=_PID, collectors=["young"], collector=[0] * 20, duration=[9000] * 20,
            end=[int(1e6 * (self.began + self.seconds * n / 20)) for n in range(20)], left_out=0,
        )  # fmt: skip
        say("outcome", pid=_PID, status="ok", stage="record", reason="", remedy="", code="ok")
        times = [int(1e6 * self.began), *self.metrics["time"][1:]]
        say("metrics", **{**self.metrics, "time": times})
        say("done", left=[])

    @lru_cache(maxsize=PROFILES)  # noqa: B019 (one object in the program)
    def profile(self, number: int) -> bytes:
        """A compact profile."""
        dice = random.Random(number)
        stacks = [line.rpartition(b" ")[0].decode() for line in self.maker.host(number)]
        buckets = int(self.seconds * 1_000_000) // BUCKET
        nanos = 10**9 // FREQUENCY
        rows = []
        for _ in range(int(self.seconds * FREQUENCY)):
            bucket = dice.randrange(buckets)
            frames = [name.partition("_[")[0] for name in dice.choice(stacks).split(";")]
            rows.append(Row(["[executor]", *frames], bucket, 1, (1, nanos)))
        return timed_profile(rows, start=int(1e6 * self.began))


@lru_cache(maxsize=1)
def _threads() -> bytes:
    """The compressed dump of a JVM, some 600 kB of text."""
    frames = "".join(
        f"\tat org.example.job.Stage.method{frame}(Stage.java:{frame})\n" for frame in range(FRAMES)
    )
    head = "2026-11-29 12:00:00\nFull thread dump OpenJDK 64-Bit Server VM (17.0.9+9 mixed mode):\n\n"
    threads = (
        f'"worker-{thread}" #{thread} prio=5 os_prio=0 cpu=1.50ms tid=0x7f00 nid={thread:#x} runnable\n'
        f"   java.lang.Thread.State: RUNNABLE\n{frames}\n"
        for thread in range(THREADS)
    )
    return gzip.compress(f"{head}{''.join(threads)}JNI global refs: 15, weak refs: 0\n".encode())


def _host(number: int) -> dict[str, Any]:
    return {
        "name": _name(number),
        "boot_id": f"boot-{number}",
        "pid_namespace": "4026531836",
        "kernel": "6.1.0",
        "arch": "x86_64",
        "cpus": 16,
        "load": 1.0,
        "memory_bytes": 64 << 30,
        "memory_available": 32 << 30,
        "uid": 1000,
        "user": "yarn",
    }


def _name(number: int) -> str:
    return f"worker-{number:04}.example.com"


# The coordinator

EXECUTORS = Selector("executor", "text", {"kind": "text", "text": "executor"})


class Loopback(Transport):
    """The simulated host of this name. As with SSH, a thread waits for stderr."""

    port = 0

    def destination(self) -> str:
        return self.host.address

    def _connect(self) -> None:
        """The command is the connection."""

    def _start(self, command: str) -> Channel:
        return _LoopbackChannel(self)


class _LoopbackChannel:
    def __init__(self, transport: Loopback) -> None:
        self._transport = transport
        self._ended = threading.Event()
        self._socket = socket.create_connection(("127.0.0.1", transport.port))
        self._socket.sendall(transport.host.address.encode() + b"\n")
        threading.Thread(target=self._ended.wait, daemon=True).start()

    def write(self, data: bytes) -> None:
        try:
            self._socket.sendall(data)
        except OSError as error:
            raise HostError("connect", str(error)) from error
        self._transport.bytes_sent += len(data)

    def read(self, size: int) -> bytes:
        try:
            data = self._socket.recv(size)
        except OSError as error:
            raise HostError("connect", str(error)) from error
        self._transport.bytes_received += len(data)
        return data

    def end_input(self) -> None:
        """The agent ends by itself."""

    def stderr_tail(self) -> str:
        return ""

    def exit_status(self, timeout: float) -> int | None:
        return 0

    def close(self) -> None:
        self._ended.set()
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    leave = close


def _reach(port: int) -> Reach:
    memory.keep()  # as every command does
    Loopback.port = port
    each = dict.fromkeys(ARCHITECTURES, LIBRARY)
    return Reach(Loopback, AgentBinaries(each, {"async-profiler": each}), timeout=_TIMEOUT)


def _located(hosts: int) -> Located:
    return Located(
        Target("hosts", "simulated"), [Host(_name(number), str(number)) for number in range(hosts)]
    )


def dump(port: int, hosts: int, looks: int, folder: Path) -> Figures:
    """`beyond_sampling` is all of the time: the looks follow each other at once."""
    reach, figures, began = _reach(port), Figures(), time.monotonic()
    request = DumpRequest(_located(hosts), EXECUTORS, Looks(looks, 0.0), folder, False, ("hprofiler",))
    result = dump_all(request, reach, silent, Stop())
    figures.beyond_sampling = time.monotonic() - began
    figures.cpu, figures.peak = _used()
    figures.recorded = result.record.dumped
    figures.folder_bytes = sum(path.stat().st_size for path in folder.rglob("*"))
    return figures


def run(port: int, hosts: int, seconds: float, folder: Path) -> Figures:
    reach = _reach(port)
    figures = Figures()
    ended = 0

    def listen(step: HostProgress) -> None:
        nonlocal ended
        if step.stage == "wait":
            figures.threads = max(figures.threads, threading.active_count())
        if step.stage == "record" and not figures.open_files:
            figures.open_files = len(os.listdir("/proc/self/fd"))
        ended += step.stage in ("done", "failed", "idle")
        if ended == hosts:  # once: the kernel adds up all threads for it
            figures.collecting_cpu, figures.collecting_peak = _used()

    request = RunRequest(
        located=_located(hosts),
        selector=EXECUTORS,
        sampling=Sampling(("cpu",), FREQUENCY, seconds, metrics=True),
        output=folder,
        force=False,
        command=("hprofiler",),
    )
    began = time.monotonic()
    result = run_all(request, reach, listen)
    figures.beyond_sampling = time.monotonic() - began - seconds
    figures.cpu, figures.peak = _used()
    figures.recorded = result.coverage.processes.recorded
    figures.folder_bytes = sum(path.stat().st_size for path in folder.rglob("*"))
    figures.record_bytes = (folder / "run.json").stat().st_size
    figures.page_bytes = (folder / "report.html").stat().st_size
    return figures


def _used() -> tuple[float, int]:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024


if __name__ == "__main__":
    verb, *words = sys.argv[1:]
    if verb == "agents":
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
        asyncio.run(Agents(float(words[0]), Path(words[1])).serve())
    elif verb == "dump":
        print(json.dumps(asdict(dump(*map(int, words[:3]), Path(words[3])))))
    else:
        print(json.dumps(asdict(run(int(words[0]), int(words[1]), float(words[2]), Path(words[3])))))
