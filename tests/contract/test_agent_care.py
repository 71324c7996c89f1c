"""What the agent says that it did, compared with what the kernel saw; and recording by one engine only."""

from __future__ import annotations

import ctypes
import os
import select
import struct
import time
from typing import Any

import pytest

from tests.contract.agent_driver import Event
from tests.contract.asking import audited, chosen, sampling
from tests.contract.perf_engine import FRAME_POINTERS, perfmap, processes
from tests.lab import procs

pytestmark = [pytest.mark.nightly, pytest.mark.skipif(os.geteuid() != 0, reason="needs root: kernel events")]

IN_CREATE, IN_DELETE, IN_NONBLOCK = 0x100, 0x200, 0o4000


class Watch:
    """What appears in a folder, and what goes, by the kernel's word (inotify)."""

    def __init__(self, folder: str) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        self._fd = libc.inotify_init1(IN_NONBLOCK)
        self._events: list[tuple[int, str]] = []
        assert libc.inotify_add_watch(self._fd, folder.encode(), IN_CREATE | IN_DELETE) >= 0

    def wait(self, beginning: str) -> None:
        """Until something whose name begins so has appeared."""
        end = time.monotonic() + procs.PATIENCE
        while not any(mask & IN_CREATE and name.startswith(beginning) for mask, name in self._events):
            assert select.select([self._fd], [], [], end - time.monotonic())[0], f"no {beginning}"
            self._take()

    def seen(self, beginning: str) -> tuple[set[str], set[str]]:
        """Names that begin so: of what appeared, and of what went."""
        self._take()
        os.close(self._fd)
        names = [(mask, name) for mask, name in self._events if name.startswith(beginning)]
        came, went = ({name for mask, name in names if mask & what} for what in (IN_CREATE, IN_DELETE))
        return came, went

    def _take(self) -> None:
        data = os.read(self._fd, 1 << 20)
        while data:
            _, mask, _, length = struct.unpack_from("iIII", data)
            self._events.append((mask, data[16 : 16 + length].split(b"\0")[0].decode()))
            data = data[16 + length :]


def record(agent: Any, library: str, found: list[Event], **wanted: Any) -> None:
    blobs = {"async-profiler": library, "perfmap": agent.put(perfmap())}
    agent.send("prepare", sampling=sampling(**wanted), blobs=blobs, processes=chosen(found))
    while agent.next()[0]["type"] != "ready":
        pass
    agent.start()
    agent.collect()


@pytest.fixture
def keeping(start_agent):
    """An agent that keeps what it does."""
    agent = start_agent()
    agent.send("hello", protocol=2, lease_seconds=30, exclude=None, audit=True)
    agent.expect("hello")
    return agent


def test_what_the_agent_did_is_what_the_kernel_saw(keeping, private, library_file, burn):
    burner = burn(load=0.2)
    library = keeping.put(library_file.read_bytes())
    pid = burner.outer.pid
    watch = Watch("/tmp")
    record(keeping, library, processes(keeping, burner), engine="async-profiler")
    entries = audited(keeping)
    session = next(entry["detail"] for entry in entries if ".hprofiler-run-" in entry["detail"])
    session = session.split("/")[2]
    came, went = watch.seen(session)
    assert came == went == {session}
    told = [(entry["what"], entry["detail"]) for entry in entries]
    assert ("folder", f"/tmp/{session}") in told and ("removed", f"/tmp/{session}") in told
    trigger = f"/tmp/.attach_pid{pid}"
    assert [what for what, detail in told if detail == trigger] == ["file", "removed"]
    assert [detail for what, detail in told if what == "signal"] == [f"SIGQUIT to {pid}"]
    attaches = [detail for what, detail in told if what == "attach"]
    for word in ("status,file=", "start,event=cpu-clock", "stop,log="):
        assert any(word in detail for detail in attaches), attaches
    assert {entry["pid"] for entry in entries if entry["what"] in ("attach", "signal")} == {pid}
    folders = {entry["detail"]: entry["pid"] for entry in entries if entry["what"] == "folder"}
    # The agent's own folder is not a process's: that it was recorded with shows by its time.
    assert folders.pop(str(private.parent)) is None
    assert set(folders.values()) == {pid}
    times = [entry["time"] for entry in entries]
    assert times == sorted(times)
    assert audited(keeping) == []


def test_a_process_is_recorded_by_its_engine_or_not_at_all(agent, library, burn):
    """By which one of its kind was recorded alone, whatever `auto` would do."""
    plain = processes(agent, burn(options=[FRAME_POINTERS], load=0.4))[0]
    closed = processes(agent, burn(options=["-XX:+DisableAttachMechanism"]))[0]
    engines = {plain["pid"]: "perf", closed["pid"]: "async-profiler"}
    wanted = [{**one, "engine": engines[one["pid"]]} for one in chosen([plain, closed])]
    blobs = {"async-profiler": library, "perfmap": agent.put(perfmap())}
    agent.send("prepare", sampling=sampling(), blobs=blobs, processes=wanted)
    refused = agent.expect("outcome")
    assert (refused["pid"], refused["status"]) == (closed["pid"], "failed")
    assert "DisableAttachMechanism" in refused["reason"]
    agent.expect("ready")
    agent.send("start")
    result = agent.collect()
    assert result.started[plain["pid"]]["engine"] == "perf"
