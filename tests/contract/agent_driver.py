"""The built agent, driven over its stdin and stdout as agents/PROTOCOL.md says; nothing in between."""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import queue
import re
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.lab import procs

Event = dict[str, Any]
FREQUENCY = 997
"""Hz; no multiple of the 100 rounds a second in which the burner goes through its methods."""
SIGMAS = 4.5
"""Standard deviations that chance is given: one test in 150,000 is further off."""
PAYLOADS = ("profile", "raw")
"""Events that a payload follows."""
_END = {"type": "(end of output)"}


@dataclass
class Result:
    """What came between `start` and `done`, by pid; `events` has every profile by its event's name."""

    outcomes: dict[int, Event] = field(default_factory=dict)
    heads: dict[int, Event] = field(default_factory=dict)
    """Of each process's first profile."""
    profiles: dict[int, bytes] = field(default_factory=dict)
    """Each process's first."""
    events: dict[int, dict[str, tuple[Event, bytes]]] = field(default_factory=dict)
    raws: dict[int, tuple[Event, bytes]] = field(default_factory=dict)
    started: dict[int, Event] = field(default_factory=dict)
    recording: int | None = None
    left: list[str] | None = None

    def take(self, event: Event, payload: bytes) -> None:
        """Take in a profile or a raw recording, which come before the process's outcome."""
        pid = event["pid"]
        assert pid not in self.outcomes, "a payload after the final outcome"
        assert hashlib.sha256(payload).hexdigest() == event["sha256"]
        if event["type"] == "raw":
            assert pid not in self.raws, "more than one raw recording"
            self.raws[pid] = event, payload
            return
        of_process = self.events.setdefault(pid, {})
        assert event["event"] not in of_process, "more than one profile of an event"
        of_process[event["event"]] = event, payload
        self.heads.setdefault(pid, event)
        self.profiles.setdefault(pid, payload)


@contextlib.contextmanager
def ready(command: Sequence[str], env: Mapping[str, str] | None = None) -> Iterator[subprocess.Popen[bytes]]:
    """A process that has said `ready`, and lives until the end of its stdin."""
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env) as process:
        assert process.stdin is not None and process.stdout is not None
        try:
            assert process.stdout.readline() == b"ready\n"
            yield process
        finally:
            process.stdin.close()


class Agent:
    """A running agent. Its events arrive in `next` in order; `expect` fails on any other kind."""

    def __init__(self, command: Sequence[str], env: dict[str, str] | None = None) -> None:
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, **(env or {})},
        )
        self._events: queue.Queue[tuple[Event, bytes, int]] = queue.Queue()
        self.received = 0
        """Bytes of all events that were taken."""
        self.acts: list[Event] = []
        """What was told of what was done, where `hello` asked for it."""
        self.reads = threading.Event()
        """Nothing is read while it is not set."""
        self.reads.set()
        self._errors: list[bytes] = []
        self._threads = [threading.Thread(target=self._read), threading.Thread(target=self._drain)]
        for thread in self._threads:
            thread.start()

    def _read(self) -> None:
        stdout = self.process.stdout
        assert stdout is not None
        for line in stdout:
            self.reads.wait()
            if not line.endswith(b"\n"):
                break  # it goes on by another connection
            event = json.loads(line)
            payload = stdout.read(event["size"]) if event["type"] in PAYLOADS else b""
            self._events.put((event, payload, len(line) + len(payload)))
        self._events.put((_END, b"", 0))

    def _drain(self) -> None:
        assert self.process.stderr is not None
        self._errors.extend(self.process.stderr)

    def send(self, kind: str, payload: bytes = b"", **members: Any) -> None:
        self.send_raw(json.dumps({"type": kind, **members}).encode() + b"\n" + payload)

    def send_raw(self, data: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def close_stdin(self) -> None:
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()

    def next(self, timeout: float = procs.PATIENCE) -> tuple[Event, bytes]:
        while True:
            event, payload, size = self._events.get(timeout=timeout)
            self.received += size
            if event["type"] != "audit":
                return event, payload
            self.acts.append(event)

    def expect(self, kind: str, timeout: float = procs.PATIENCE) -> Event:
        event, _ = self.next(timeout)
        assert event["type"] == kind, (event, self.stderr())
        return event

    def expect_end(self) -> None:
        """Of its output: the process may go on."""
        event, _ = self.next()
        assert event is _END, event

    def hello(self, lease: float = 30, resume: str | None = None, **exclude: Any) -> Event:
        self.send("hello", protocol=2, lease_seconds=lease, exclude=exclude or None, resume=resume)
        return self.expect("hello")

    def resume(self, token: str, received: int) -> bool:
        """Go on with the session of that token; False where there is none."""
        self.send("resume", token=token, received=received)
        return bool(self.expect("resumed")["found"])

    def put(self, data: bytes) -> str:
        digest = hashlib.sha256(data).hexdigest()
        self.send("put", data, name="library", sha256=digest, size=len(data))
        assert self.expect("stored")["sha256"] == digest
        return digest

    def find(self, native: bool = False, **selector: Any) -> Event:
        self.send("find", selector=selector, native=native)
        return self.expect("found")

    def prepare(
        self,
        library: str | None,
        processes: Sequence[Event],
        duration: float = 1,
        events: Sequence[str] = ("cpu",),
        **more: Any,
    ) -> tuple[list[int], dict[int, Event]]:
        """The pids that are ready, and the outcomes of those that are not."""
        sampling = {
            "engine": "async-profiler",
            "events": list(events),
            "frequency": FREQUENCY,
            "duration": duration,
            "alloc_interval": None,
            "lock_threshold": None,
            "wall_interval": None,
            "keep_raw": False,
            **more,
        }
        blobs = {"async-profiler": library} if library else {}
        chosen = [{k: p[k] for k in ("pid", "start_time", "label", "labels")} for p in processes]
        self.send("prepare", sampling=sampling, blobs=blobs, processes=chosen)
        outcomes: dict[int, Event] = {}
        while True:
            event_, _ = self.next()
            if event_["type"] == "ready":
                return [p["pid"] for p in event_["processes"]], outcomes
            assert event_["type"] == "outcome", (event_, self.stderr())
            outcomes[event_["pid"]] = event_

    def start(self) -> dict[int, dict[str, str]]:
        """Start what is ready; what is used for each event of each process, once all record."""
        self.send("start")
        started: dict[int, dict[str, str]] = {}
        while True:
            event, _ = self.next()
            if event["type"] == "recording":
                assert event["processes"] == len(started), event
                return started
            assert event["type"] == "started", (event, self.stderr())
            started[event["pid"]] = event["sources"]

    def collect(self, timeout: float = 2 * procs.PATIENCE) -> Result:
        """Everything up to `done`."""
        result = Result()
        while True:
            event, payload = self.next(timeout)
            if event["type"] == "done":
                result.left = event["left"]
                return result
            if event["type"] in PAYLOADS:
                result.take(event, payload)
            elif event["type"] == "outcome":
                assert event["pid"] not in result.outcomes, "more than one final outcome"
                result.outcomes[event["pid"]] = event
            elif event["type"] == "started":
                result.started[event["pid"]] = event
            else:
                assert event["type"] == "recording", (event, self.stderr())
                result.recording = event["processes"]

    def wait(self, timeout: float = procs.PATIENCE) -> int:
        """Its exit code; all its output has been read by then."""
        code = self.process.wait(timeout)
        for thread in self._threads:
            thread.join(timeout)
        return code

    def bye(self) -> int:
        self.send("bye")
        return self.wait()

    def stderr(self) -> str:
        return b"".join(self._errors).decode("utf-8", "replace")

    def end(self) -> None:
        """End it if it still runs."""
        self.close_stdin()
        try:
            self.wait()
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.wait()
        for pipe in (self.process.stdout, self.process.stderr):
            assert pipe is not None
            pipe.close()


def leftovers(held: bool = False) -> list[str]:
    """What agents leave beside JVMs on this machine's own file system.

    Folders that a live session holds (of this test or of somebody else) count only with `held`.
    """
    patterns = (".hprofiler-run-*", ".hprofiler-ap-*", ".hprofiler-map-*", ".attach_pid*")
    bases = [Path(base) for base in ("/tmp", "/var/tmp", "/dev/shm")]
    paths = [path for base in bases for pattern in patterns for path in base.glob(pattern)]
    in_use = set() if held else locked_inodes()
    return sorted(str(path) for path in paths if _inode(path) not in {None, *in_use})


def locked_inodes() -> set[int]:
    """What somebody holds a lock of: folders of sessions that live."""
    locks = Path("/proc/locks").read_text()
    return {int(inode) for inode in re.findall(r"FLOCK .* \w+:\w+:(\d+) ", locks)}


def _inode(path: Path) -> int | None:
    """None when it has gone since."""
    try:
        return path.lstat().st_ino
    except FileNotFoundError:
        return None


def near(share: float, want: float, samples: int, slack: float = 0.02) -> bool:
    """Whether a share of so many samples is what was burnt: `slack` is for what is not chance."""
    return abs(share - want) <= slack + SIGMAS * math.sqrt(want * (1 - want) / max(1, samples))


def good(outcome: Event) -> bool:
    """That a process was recorded as it was asked for; AssertionError has why it was not.

    Of a busy machine's timers a recording may have had fewer samples, and that is told.
    """
    starved = re.search(r"took \d+ of \d+|could not keep up|samples were lost", outcome["reason"])
    assert outcome["status"] == "ok" or (outcome["status"] == "degraded" and starved), outcome
    return True
