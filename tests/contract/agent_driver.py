"""The built agent, driven over its stdin and stdout as agents/PROTOCOL.md says; nothing in between."""

from __future__ import annotations

import contextlib
import functools
import gzip
import hashlib
import json
import math
import os
import platform
import queue
import re
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from hprofiler._flamegraph import Profile
from tests.burners.burner import Burner, Program
from tests.lab import procs

Event = dict[str, Any]
Stacks = list[tuple[list[str], int]]
FREQUENCY = 997
"""Hz; no multiple of the 100 rounds a second in which the burner goes through its methods."""
SIGMAS = 4.5
"""Standard deviations that chance is given: one test in 150,000 is further off."""
WORK = 3e8
"""Nanoseconds of CPU time to record."""
LEAST = 40
"""Samples in which a method of 70 % cannot be missed."""
PAYLOADS = ("profile", "raw", "dump")
"""Events that a payload follows."""
LIBRARIES = {
    "async-profiler": "libasyncProfiler.so",
    "perfmap": "libhprofilerPerfmap.so",
    "threadnames": "libhprofilerThreadnames.so",
}
REQUEST = ("agent_cpu", "clock_offset", "slices")
"""Members of a request that are not the sampling's."""
_DATA = Path(__file__).resolve().parents[2] / "hprofiler" / "_data"
_END = {"type": "(end of output)"}


@functools.cache
def shipped(name: str) -> Path:
    """A library as the package has it for this machine."""
    path = _DATA / name / platform.machine() / LIBRARIES[name]
    if not path.is_file():
        pytest.fail(f"{path} is missing: run make build", pytrace=False)
    return path


@dataclass
class Result:
    """What came between `start` and `done`, by pid; `events` has every profile by its event's name, or the
    rest of it, which came after the `parts`."""

    outcomes: dict[int, Event] = field(default_factory=dict)
    events: dict[int, dict[str, tuple[Event, bytes]]] = field(default_factory=dict)
    parts: dict[int, list[tuple[Event, bytes]]] = field(default_factory=dict)
    raws: dict[int, tuple[Event, bytes]] = field(default_factory=dict)
    started: dict[int, Event] = field(default_factory=dict)
    pauses: dict[int, Event] = field(default_factory=dict)
    pauses_so_far: dict[int, list[Event]] = field(default_factory=dict)
    appeared: list[Event] = field(default_factory=list)
    metrics: Event | None = None
    metrics_so_far: list[Event] = field(default_factory=list)
    recording: int | None = None
    left: list[str] | None = None

    def add(self, event: Event, payload: bytes) -> None:
        """Add any event of a recording."""
        pid = event.get("pid")
        if event["type"] in PAYLOADS:
            self.take(event, payload)
        elif event["type"] == "outcome":
            assert pid not in self.outcomes, "more than one final outcome"
            self.outcomes[pid] = event
        elif event["type"] == "started":
            self.started[pid] = event
        elif event["type"] == "pauses":
            assert pid not in self.outcomes | self.pauses, "pauses came late, or twice"
            if event["more"]:
                self.pauses_so_far.setdefault(pid, []).append(event)
            else:
                self.pauses[pid] = event
        elif event["type"] == "appeared":
            self.appeared += event["processes"]
        elif event["type"] == "metrics":
            assert self.metrics is None, "metrics came twice"
            if event["more"]:
                self.metrics_so_far.append(event)
            else:
                self.metrics = event
        elif event["type"] == "recording":
            self.recording = event["processes"]
        else:
            assert event["type"] == "done", event
            self.left = event["left"]

    def take(self, event: Event, payload: bytes) -> None:
        """Take in a profile or a raw recording, which come before the process's outcome."""
        pid = event["pid"]
        assert pid not in self.outcomes, "a payload after the final outcome"
        assert hashlib.sha256(payload).hexdigest() == event["sha256"]
        if event["type"] == "raw":
            assert pid not in self.raws, "more than one raw recording"
            self.raws[pid] = event, payload
            return
        if event["more"]:
            self.parts.setdefault(pid, []).append((event, payload))
            return
        of_process = self.events.setdefault(pid, {})
        assert event["event"] not in of_process, "more than one profile of an event"
        of_process[event["event"]] = event, payload

    def of(self, program: Program | int) -> Recorded:
        return Recorded(program if isinstance(program, int) else program.outer.pid, self)


@dataclass(frozen=True)
class Dumped:
    """What came of one process that was asked for its threads; no text has no head."""

    outcome: Event
    head: Event | None
    text: str

    @property
    def code(self) -> tuple[str, str]:
        return self.outcome["status"], self.outcome["code"]

    @property
    def cpu(self) -> dict[int, float]:
        """Seconds by the number of a thread."""
        assert self.head is not None, self.outcome
        return dict(self.head["cpu"])


@dataclass(frozen=True)
class Recorded:
    """What one recording says of one process."""

    pid: int
    result: Result

    @property
    def outcome(self) -> Event:
        return self.result.outcomes[self.pid]

    @property
    def events(self) -> list[str]:
        return list(self.result.events.get(self.pid, {}))

    def head(self, event: str = "cpu") -> Event:
        return self.result.events[self.pid][event][0]

    def pieces(self, event: str = "cpu") -> list[tuple[Event, Profile]]:
        """The parts of a recording, and the rest."""
        parts = [one for one in self.result.parts.get(self.pid, []) if one[0]["event"] == event]
        last = self.result.events.get(self.pid, {}).get(event)
        return [(head, Profile.from_bytes(payload)) for head, payload in [*parts, *([last] if last else [])]]

    def payload(self, event: str = "cpu") -> bytes:
        return self.result.events[self.pid][event][1]

    def profile(self, event: str = "cpu") -> Profile:
        return Profile.from_bytes(self.payload(event))

    def stacks(self, event: str = "cpu", value: int = 0) -> Stacks:
        """Stacks, outermost frame first, and the sums of one of the event's values."""
        lines = self.profile(event).to_folded(value, True).decode().splitlines()
        pairs = (line.rpartition(" ") for line in lines)
        return [(stack.split(";"), int(count)) for stack, _, count in pairs]

    def share(self, frame: str, event: str = "cpu", among: Sequence[str] = ()) -> float:
        """The share of samples with a frame that holds `frame`, of those that hold any of `among`."""
        stacks = self.stacks(event)
        inside = [pair for pair in stacks if not among or any(_holds(pair[0], one) for one in among)]
        total = sum(count for _, count in inside)
        assert total, f"no samples of {among or 'anything'} in {self.outcome}: {stacks[:20]}"
        return sum(count for stack, count in inside if _holds(stack, frame)) / total

    def is_good(self) -> bool:
        """That it was recorded as it was asked for, and shows what a burner burnt."""
        return good(self.outcome) and as_burnt(self.payload())


def _holds(stack: Sequence[str], part: str) -> bool:
    return any(part in frame for frame in stack)


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


@contextlib.contextmanager
def running(*command: str, **options: Any) -> Iterator[subprocess.Popen[bytes]]:
    """A process that is killed at the end."""
    process = subprocess.Popen(command, **options)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def sampling(**members: Any) -> Event:
    """The sampling of a request: half a second of CPU time by async-profiler, but for what `members` say."""
    intervals = dict.fromkeys(("alloc_interval", "lock_threshold", "wall_interval"))
    usual = {"engine": "async-profiler", "events": ["cpu"], "frequency": FREQUENCY, "duration": 0.5}
    return {**usual, **intervals, "keep_raw": False, **members}


class Agent:
    """A running agent. Its events arrive in `next` in order; `expect` fails on any other kind."""

    def __init__(self, command: Sequence[object], env: Mapping[str, str] | None = None) -> None:
        self._command, self._env = command, env
        self.process = subprocess.Popen(
            [str(word) for word in command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, **(env or {})},
        )
        self._events: queue.Queue[tuple[Event, bytes, int]] = queue.Queue()
        self.received = 0
        """Bytes of all events that were taken."""
        self.greeting: Event = {}
        self.acts: list[Event] = []
        """What was told of what was done, where `hello` asked for it."""
        self._so_far = Result()
        self._stored: dict[str, str] = {}
        self._errors: list[bytes] = []
        self._threads = [threading.Thread(target=self._read), threading.Thread(target=self._drain)]
        for thread in self._threads:
            thread.start()

    def _read(self) -> None:
        stdout = self.process.stdout
        assert stdout is not None
        for line in stdout:
            if not line.endswith(b"\n"):
                break  # it goes on by another connection
            event = json.loads(line)
            payload = stdout.read(event["size"]) if event["type"] in PAYLOADS else b""
            self._events.put((event, payload, len(line) + len(payload)))
        self._events.put((_END, b"", 0))

    def _drain(self) -> None:
        assert self.process.stderr is not None
        self._errors.extend(self.process.stderr)

    # Requests and events

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

    def error(self) -> str:
        """The reason of its last event, after which it ends."""
        reason = self.expect("error")["reason"]
        assert self.wait() == 1
        return str(reason)

    def hello(
        self, lease: float = 300, resume: str | None = None, audit: bool = False, **exclude: Any
    ) -> Event:
        """The usual lease outlasts a test on a busy machine: there are no pings."""
        more = {"audit": True} if audit else {}
        self.send("hello", protocol=3, lease_seconds=lease, exclude=exclude or None, resume=resume, **more)
        self.greeting = self.expect("hello")
        return self.greeting

    def resume(self, token: str, received: int) -> bool:
        """Go on with the session of that token; False where there is none."""
        self.send("resume", token=token, received=received)
        return bool(self.expect("resumed")["found"])

    def put(self, data: bytes) -> str:
        digest = hashlib.sha256(data).hexdigest()
        self.send("put", data, name="library", sha256=digest, size=len(data))
        assert self.expect("stored")["sha256"] == digest
        return digest

    def library(self, name: str = "async-profiler") -> str:
        """The hash of a library of the package, which the agent has from now on."""
        if name not in self._stored:
            self._stored[name] = self.put(shipped(name).read_bytes())
        return self._stored[name]

    def list(self) -> list[Event]:
        self.send("list")
        return list(self.expect("processes")["processes"])

    def find(self, native: bool = False, **selector: Any) -> Event:
        self.send("find", selector=selector, native=native)
        return self.expect("found")

    def found(self, *programs: Program) -> list[Event]:
        """What it finds of these programs, JVMs or not."""
        pids = [program.outer.pid for program in programs]
        found = self.find(native=True, kind="pids", pids=pids)["processes"]
        assert len(found) == len(pids), found
        return list(found)

    def request(self, programs: Sequence[Program | Event], members: Mapping[str, Any]) -> Event:
        found = [one if isinstance(one, dict) else self.found(one)[0] for one in programs]
        keys = ("pid", "start_time", "label", "labels", "engine")
        processes = [{key: one[key] for key in keys if key in one} for one in found]
        also = {key: members[key] for key in REQUEST if key in members}
        wanted = {key: value for key, value in members.items() if key not in also}
        return {"sampling": sampling(**wanted), "processes": processes, **also}

    # Recordings

    def check(self, *programs: Program | Event, **members: Any) -> Event:
        """What would come of these; the libraries are only named."""
        blobs = {"async-profiler": hashlib.sha256(shipped("async-profiler").read_bytes()).hexdigest()}
        self.send("check", blobs=blobs, **self.request(programs, members))
        return self.expect("checked")

    def prepare(
        self, *programs: Program | Event, blobs: Mapping[str, str] | None = None, **members: Any
    ) -> tuple[list[int], dict[int, Event]]:
        """The pids that are ready, and the outcomes of those that are not.

        `members` are the sampling's, or those of the request.
        """
        request = self.request(programs, members)
        used = {"async-profiler": ("async-profiler", "threadnames"), "perf": ("perfmap",), "pyspy": ()}
        names = used.get(request["sampling"]["engine"], tuple(LIBRARIES))
        stored = {name: self.library(name) for name in names} if blobs is None else blobs
        self.send("prepare", blobs=stored, **request)
        outcomes: dict[int, Event] = {}
        while True:
            event, _ = self.next()
            if event["type"] == "ready":
                return [one["pid"] for one in event["processes"]], outcomes
            assert event["type"] == "outcome", (event, self.stderr())
            outcomes[event["pid"]] = event

    def refuse(self, program: Program | Event, **members: Any) -> Event:
        """The outcome of a process that cannot be made ready."""
        ready, outcomes = self.prepare(program, **members)
        (outcome,) = outcomes.values()
        assert (ready, outcome["status"], outcome["stage"]) == ([], "failed", "prepare"), outcome
        return outcome

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

    def begin(self, *programs: Program | Event, **members: Any) -> dict[int, dict[str, str]]:
        """Record all of them from now on."""
        ready, outcomes = self.prepare(*programs, **members)
        assert len(ready) == len(programs), outcomes
        return self.start()

    def collect(self, timeout: float = 2 * procs.PATIENCE, until: Sequence[str] = ("done",)) -> Result:
        """Everything up to `done`, or to one of these events, after which the next call goes on."""
        result, self._so_far = self._so_far, Result()
        while True:
            event, payload = self.next(timeout)
            result.add(event, payload)
            if event["type"] in until:
                break
        if event["type"] != "done":
            self._so_far = result
        return result

    def record(self, program: Program, **members: Any) -> Recorded:
        """One recording to its end, of which nothing is left."""
        self.begin(program, **members)
        done = self.collect().of(program)
        assert done.result.left == [], done.result.left
        return done

    def record_work(self, burner: Burner, **members: Any) -> Recorded:
        """One recording of enough of a burner's work to judge its shares by, of which nothing is left."""
        self.begin(burner, **{"duration": 120, **members})
        burner.burn(WORK)
        done = self.stop().of(burner)
        assert done.result.left == [], done.result.left
        return done

    def begin_dump(self, *programs: Program | Event, owners: bool = False) -> None:
        processes = self.request(programs, {})["processes"]
        keys = ("pid", "start_time")
        self.send("dump", processes=[{key: one[key] for key in keys} for one in processes], owners=owners)

    def dumped(self) -> dict[int, Dumped]:
        """What came of each process, by its pid, until all have answered."""
        texts: dict[int, tuple[Event, str]] = {}
        done: dict[int, Dumped] = {}
        while True:
            event, payload = self.next()
            if event["type"] == "dumped":
                assert event["left"] == [] and not set(texts) - set(done)
                return done
            pid = event["pid"]
            assert event["type"] in ("dump", "outcome") and pid not in done, event
            if event["type"] == "dump":
                assert pid not in texts, "a second text"
                texts[pid] = event, gzip.decompress(payload).decode()
            else:
                done[pid] = Dumped(event, *texts.get(pid, (None, "")))

    def dump(self, program: Program | Event, owners: bool = False) -> Dumped:
        self.begin_dump(program, owners=owners)
        (dumped,) = self.dumped().values()
        return dumped

    def follow(self, word: str, native: bool = False) -> None:
        """Have it name what appears with this word in its command line."""
        self.send("follow", selector={"kind": "text", "text": word}, native=native)

    def appeared(self) -> list[Event]:
        """The processes that it names next."""
        before = len(self._so_far.appeared)
        return self.collect(until=["appeared"]).appeared[before:]

    def outcome(self, pid: int) -> Event:
        """The final outcome of a process, which may have come already."""
        while pid not in self._so_far.outcomes:
            self.collect(until=["outcome"])
        return self._so_far.outcomes[pid]

    def join(self, *programs: Program | Event) -> None:
        self.send("join", processes=self.request(programs, {})["processes"])

    def stop(self) -> Result:
        self.send("stop")
        return self.collect()

    # Leftovers

    def leftovers(self) -> list[Event]:
        """The list of a cleanup's dry run."""
        self.send("clean", dry=True)
        return list(self.expect("leftovers")["entries"])

    def clean(self, keeping: bool = True) -> dict[str, list[Any]]:
        """Clean up. The paths or pids by what was done to them, and all that failed.

        With `keeping` another agent runs from this one's cache, which therefore stays.
        """
        keeper = Agent(self._command, self._env) if keeping else None
        if keeper:
            keeper.hello()
        self.send("clean")
        event = self.expect("leftovers")
        if keeper:
            keeper.end()
        done: dict[str, list[Any]] = {
            result: [entry["pid"] or entry["path"] for entry in event["entries"] if entry["result"] == result]
            for result in ("removed", "emptied", "stopped", "ended")
        }
        failed = [entry for entry in event["entries"] if entry["result"] == "failed"]
        return {**done, "failed": [*failed, *event["failed"]]}

    # The end

    def wait(self, timeout: float = procs.PATIENCE) -> int:
        """Its exit code; all its output has been read by then."""
        code = self.process.wait(timeout)
        for thread in self._threads:
            thread.join(timeout)
        return code

    def bye(self) -> int:
        self.send("bye")
        return self.wait()

    def kill(self) -> None:
        self.process.kill()
        self.wait()

    def stderr(self) -> str:
        return b"".join(self._errors).decode("utf-8", "replace")

    def end(self) -> None:
        """End it if it still runs."""
        self.close_stdin()
        try:
            self.wait()
        except subprocess.TimeoutExpired:
            self.kill()
        for pipe in (self.process.stdout, self.process.stderr):
            assert pipe is not None
            pipe.close()

    def folders(self) -> list[str]:
        """What is beside JVMs for the time of its session only."""
        return [path for path in leftovers(held=True) if f"/.hprofiler-run-{self.process.pid}-" in path]


def of_pid(entries: Sequence[Event], pid: int) -> dict[str, Event]:
    """The leftovers of a process, by their kinds."""
    return {entry["kind"]: entry for entry in entries if entry["pid"] == pid}


def at(entries: Sequence[Event], path: object) -> Event:
    """The leftover at a path."""
    (entry,) = [entry for entry in entries if entry["path"] == str(path)]
    return entry


def leftovers(held: bool = False) -> list[str]:
    """What agents leave beside JVMs on this machine's own file system.

    Folders that a live session holds (of this test or of somebody else) count only with `held`.
    """
    ours = (f".hprofiler-{kind}-*" for kind in ("run", "ap", "map", "names"))
    patterns = (*ours, ".attach_pid*")
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


BURNT = {"hot": 0.70, "warm": 0.20, "cool": 0.10}
"""The shares of a burner's CPU time that its works have."""


def as_burnt(profile: bytes) -> bool:
    """That the burner's works have their shares of a profile's samples; AssertionError has their samples."""
    works = dict.fromkeys(BURNT, 0)
    for line in Profile.from_bytes(profile).to_folded(0, False).decode().splitlines():
        stack, _, samples = line.rpartition(" ")
        kind = next((name for name in ("warm", "cool") if f"Burner.{name}" in stack), None)
        if kind:
            works[kind] += int(samples)
        elif "Burner.work" in stack or "Burner.hot" in stack:
            works["hot"] += int(samples)
    total = sum(works.values())
    assert total >= LEAST, f"{works}: too few to tell"
    assert all(near(works[name] / total, share, total) for name, share in BURNT.items()), works
    return True


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
