"""A scripted agent, for what the real one never does: send wrong data, break off, flood.

A stand-in is an executable Python script. In its body `read()` gives the next request that is not answered
the same way by all, `say(type, **members)` sends an event, `out(bytes)` sends raw bytes, `process(pid)` is a
found process, `PROFILE` a profile of nine samples.
"""

from __future__ import annotations

import hashlib
import io
import os
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from hprofiler.agent.bootstrap import AgentBinaries
from hprofiler.app.run import RunRequest, RunResult, run
from hprofiler.cli.commands.run import record
from hprofiler.cli.options.parser import parse
from hprofiler.collect.following import Following
from hprofiler.collect.limits import Care
from hprofiler.collect.recording import collect
from hprofiler.collect.stop import Stop
from hprofiler.collect.visit_group import HostProgress, Listener, Reach
from hprofiler.model import Host, HostRecord, Process, Recording, Sampling, Selector, Target
from hprofiler.model.metrics import Metrics
from hprofiler.resolve import Located
from hprofiler.transport.local import LocalTransport
from tests.viewer.made_profile import made_profile

HERE = Host("here", "localhost")
SAMPLING = Sampling(("cpu",), 99, 0.1)
ANY = Selector("any", "text", {"kind": "text", "text": "x"})

PRELUDE = """
import gzip, hashlib, json, os, sys, time
stdin, stdout = sys.stdin.buffer, sys.stdout.buffer
def out(data):
    stdout.write(data); stdout.flush()
AHEAD = 0
def say(type, **members):
    out(json.dumps({"type": type, **members}).encode() + b"\\n")
def read(stores=True, unread=("follow",)):
    while True:
        line = stdin.readline()
        if not line:
            sys.exit(0)
        request = json.loads(line)
        if request["type"] == "clock":
            say("clock", time=time.time() + AHEAD)
        elif request["type"] == "put" and (payload := stdin.read(request["size"])) and stores:
            say("stored", sha256=hashlib.sha256(payload).hexdigest())
        elif request["type"] not in ("ping", "received", *unread):
            return request
def followed():
    request = read(unread=())
    assert request["type"] == "follow", request
    return request
HOST = dict(name="here", boot_id="", pid_namespace="p", kernel="k", arch="x86_64", cpus=2, memory_bytes=1,
            uid=0, user="root")
def hello(**members):
    read()
    usual = {"protocol": 3, "version": "0", "sha256": "0" * 64, "host": HOST, "blobs": []}
    say("hello", **{**usual, **members})
def process(pid, **members):
    usual = dict(pid=pid, namespace_pid=pid, start_time=1, uid=0, user="root", ppid=1, main_class="M",
                 command="java M", label="M", labels={}, jvm={"version": "17"})
    return {**usual, **members}
def found(*pids):
    read()
    say("found", searched=9, processes=[process(pid) for pid in pids], ignored=[])
def prepared(*pids):
    read()
    say("ready", processes=[{"pid": pid} for pid in pids])
def recording(*pids):
    read()
    recorded(*pids)
def recorded(*pids):
    for pid in pids:
        say("started", pid=pid, engine="async-profiler", sources={"cpu": "perf_events"})
    say("recording", processes=len(pids))
def profile(pid, data, **members):
    say("profile", **{"pid": pid, "event": "cpu", "engine": "async-profiler", "source": "perf_events",
        "interval": 10101010, "seconds": 0.1, "cpu_seconds": 0.1, "resident_bytes": 9, "attach_seconds": 0.25,
        "size": len(data),
        "samples": {"expected": 10, "taken": 9, "lost": 1}, "sha256": hashlib.sha256(data).hexdigest(),
        **members})
    out(data)
def raw(pid, data, **members):
    say("raw", **{"pid": pid, "name": "recording.jfr", "size": len(data),
        "sha256": hashlib.sha256(data).hexdigest(), **members})
    out(data)
def pauses(pid, **members):
    usual = dict(collectors=["young"], collector=[0], end=[int(1e6 * time.time())], duration=[2500])
    say("pauses", **{"pid": pid, "left_out": 0, **usual, **members})
def metrics(**members):
    runnable = dict(of="host", id="", name="runnable", kind="gauge", unit="count", values=[3])
    usual = dict(every=1.0, time=[int(1e6 * time.time()), 1], facts=dict(cpus=2), series=[runnable])
    say("metrics", **{**usual, **members})
def dump(pid, text=b"threads", **members):
    data = gzip.compress(text)
    usual = dict(kind="jvm", time=time.time(), seconds=0.1, cpu=[[pid, 0.5]], size=len(data))
    say("dump", pid=pid, **{**usual, **members})
    out(data)
def outcome(pid, status="ok", stage="record", reason="", remedy="", **members):
    say("outcome", pid=pid, status=status, stage=stage, reason=reason, remedy=remedy, **members)
"""
_profile = io.BytesIO()
made_profile("cpu", "main;work 9\n").write(_profile, "compact")
PRELUDE += f"PROFILE = {_profile.getvalue()!r}\n"


class FileBlob(NamedTuple):
    path: Path
    sha256: str


def blob(path: Path) -> FileBlob:
    return FileBlob(path, hashlib.sha256(path.read_bytes()).hexdigest())


class StandIns:
    """Makes scripted agents in a folder, and removes what the client stored of them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._stored: list[Path] = []
        self.library = folder / "library.so"
        self.library.write_bytes(b"\x7fELF of a sort")

    def binaries(self, body: str) -> AgentBinaries:
        name = hashlib.sha256(body.encode()).hexdigest()[:8]
        script = self.folder / name
        # Its folder makes its hash unique: what the client stores of it is removed at the end.
        script.write_text(f"#!{sys.executable}\n# {self.folder}\n{PRELUDE}\n{body}\n")
        agent, library = blob(script), blob(self.library)
        self._stored.append(Path(f"/tmp/.hprofiler-{os.geteuid()}/agent-{agent.sha256}"))
        return AgentBinaries(_every(agent), {"async-profiler": _every(library)})

    def clean(self) -> None:
        for path in self._stored:
            path.unlink(missing_ok=True)


def _every(item: FileBlob) -> dict[str, FileBlob]:
    return {"x86_64": item, "aarch64": item}


def local(host: Host = HERE) -> LocalTransport:
    return LocalTransport(host)


class Named(LocalTransport):
    """This machine under several names: the script gets its name in STAND_IN."""

    def open(self, command):
        return super().open(f"STAND_IN={self.host.name}; export STAND_IN; {command}")


class Sink:
    """Keeps the sizes of profiles and files, by host, pid and event or file name."""

    def __init__(self) -> None:
        self.sizes: dict[tuple[str, int, str], int] = {}
        self.read: dict[str, Metrics] = {}

    def profile(
        self, host: Host, recording: Recording, pieces: Iterator[bytes], more: bool = False
    ) -> Recording:
        size = sum(len(piece) for piece in pieces)
        self.sizes[host.name, recording.process.pid, recording.event] = size
        return replace(recording, totals={"bytes": size})

    def raw(self, host: Host, process: Process, name: str, pieces: Iterator[bytes]) -> None:
        self.sizes[host.name, process.pid, name] = sum(len(piece) for piece in pieces)

    def metrics(self, host: Host, metrics: Metrics, more: bool = False) -> None:
        self.read[host.name] = metrics


class Fleet:
    """Hosts that each run a script of their own, and one collect over them."""

    transport = Named

    def __init__(self, stand_ins: StandIns, timeout: float, bodies: dict[str, str]) -> None:
        self.hosts = [Host(name, "localhost") for name in bodies]
        binaries = stand_ins.binaries(f"exec({bodies!r}[os.environ['STAND_IN']])")
        self.reach = Reach(Named, binaries, timeout=timeout)
        self.sink = Sink()
        self.sampling = SAMPLING
        self.progress: list[HostProgress] = []
        self.listener: Listener = self.progress.append
        self.stop = Stop()

    def collect(self, care: Care | None = None, following: Following | None = None) -> dict[str, HostRecord]:
        how = (self.sampling, self.reach, self.sink, self.listener, self.stop, care or Care(), following)
        results = collect(self.hosts, ANY, *how)
        return {result.name: result for result in results}

    def located(self, **more: Any) -> Located:
        return Located(Target("hosts", "x"), self.hosts, **more)

    def request(
        self, output: Path, selector: Selector = ANY, located: Located | None = None, **more: Any
    ) -> RunRequest:
        """A whole run of these hosts, into a run folder."""
        located = located or self.located()
        return RunRequest(located, selector, self.sampling, output, False, ("hprofiler",), **more)

    def run(self, output: Path, selector: Selector = ANY, **more: Any) -> RunResult:
        return run(self.request(output, selector, **more), self.reach, self.listener)

    def record(self, output: Path, *words: str) -> int:
        """The same by the command with these words; its exit code."""
        options = parse(["-j", "x", "-o", str(output), *words])
        return record(options, self.sampling, self.located(), ANY, self.reach)
