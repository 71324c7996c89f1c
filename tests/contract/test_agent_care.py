"""The agent's record of what it did, beside what the kernel saw; and the process that goes before others."""

from __future__ import annotations

import ctypes
import os
import struct
import threading
from typing import Any, Dict, List, Set, Tuple

import pytest

from tests.contract.agent_driver import Event
from tests.contract.perf_engine import FRAME_POINTERS, perfmap, processes
from tests.contract.test_agent_doctor import chosen, sampling
from tests.lab import attach, procs

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: kernel events")

IN_CREATE, IN_DELETE, IN_NONBLOCK = 0x100, 0x200, 0o4000


class Watch:
    """What appears in a folder, and what goes, by the kernel's word (inotify)."""

    def __init__(self, folder: str) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        self._fd = libc.inotify_init1(IN_NONBLOCK)
        assert libc.inotify_add_watch(self._fd, folder.encode(), IN_CREATE | IN_DELETE) >= 0

    def seen(self, beginning: str) -> Tuple[Set[str], Set[str]]:
        """Names that begin so: of what appeared, and of what went."""
        came: Set[str] = set()
        went: Set[str] = set()
        data = os.read(self._fd, 1 << 20)
        while data:
            _, mask, _, length = struct.unpack_from("iIII", data)
            name = data[16 : 16 + length].split(b"\0")[0].decode()
            data = data[16 + length :]
            if name.startswith(beginning):
                (came if mask & IN_CREATE else went).add(name)
        os.close(self._fd)
        return came, went


def record(agent: Any, library: str, found: List[Event], **wanted: Any) -> None:
    blobs = {"async-profiler": library, "perfmap": agent.put(perfmap())}
    agent.send("prepare", sampling=sampling(**wanted), blobs=blobs, processes=chosen(found))
    while agent.next()[0]["type"] != "ready":
        pass
    agent.start()
    agent.collect()


def audited(agent: Any) -> List[Event]:
    agent.send("audit")
    told = agent.expect("audited")
    assert told["dropped"] == 0
    return list(told["entries"])


@pytest.fixture
def keeping(start_agent):
    """An agent that keeps what it does."""
    agent = start_agent()
    agent.send("hello", protocol=2, lease_seconds=30, exclude=None, audit=True)
    agent.expect("hello")
    return agent


def test_what_the_agent_did_is_what_the_kernel_saw(keeping, library_file, burn):
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
    assert {entry["pid"] for entry in entries if entry["what"] in ("attach", "signal", "folder")} == {pid}
    times = [entry["time"] for entry in entries]
    assert times == sorted(times)
    assert audited(keeping) == []


def test_programs_that_are_run_are_kept(keeping, library_file, burn):
    burner = burn(options=[FRAME_POINTERS], load=0.2)
    library = keeping.put(library_file.read_bytes())
    record(keeping, library, processes(keeping, burner), engine="perf")
    programs = [entry["detail"] for entry in audited(keeping) if entry["what"] == "program"]
    assert any("record -o -" in line and f"-p {burner.outer.pid}" in line for line in programs), programs


def test_nothing_is_kept_unless_it_is_asked_for(agent, library, burn):
    record(agent, library, processes(agent, burn(load=0.2)))
    assert audited(agent) == []


def watched(agent: Any, library: str, found: List[Event]) -> Event:
    request: Dict[str, Any] = {"sampling": sampling(engine="async-profiler"), "processes": chosen(found)}
    agent.send("canary", blobs={"async-profiler": library}, **request)
    return dict(agent.expect("watched"))


def test_a_canary_that_goes_on_working(agent, library, burn):
    burner = burn(load=0.4)
    outcome = watched(agent, library, processes(agent, burner))
    assert (outcome["pid"], outcome["status"], outcome["stage"]) == (burner.outer.pid, "ok", "record"), (
        outcome
    )
    libraries = attach.profiler_libraries(burner.outer.pid)
    assert all("not active" in attach.profiling_status(burner.outer.pid, path) for path in libraries)


def when_profiled(burner: Any, act: Any) -> threading.Thread:
    """Does something to a JVM once it is being recorded."""

    def wait_and_act() -> None:
        maps = f"/proc/{burner.outer.pid}/maps"
        procs.wait_for(lambda: "libasyncProfiler" in open(maps).read(), procs.PATIENCE, "the profiler")
        fds = f"/proc/{burner.outer.pid}/fd"

        def records() -> bool:
            return any(os.path.realpath(f"{fds}/{name}").endswith(".jfr") for name in os.listdir(fds))

        procs.wait_for(records, procs.PATIENCE, "its recording")
        act()

    thread = threading.Thread(target=wait_and_act)
    thread.start()
    return thread


def test_a_canary_that_dies(agent, library, burn):
    burner = burn(load=0.4)
    found = processes(agent, burner)
    killer = when_profiled(burner, lambda: burner.outer.kill(9))
    outcome = watched(agent, library, found)
    killer.join()
    assert (outcome["status"], outcome["stage"]) == ("failed", "record"), outcome
    assert "ended while it was recorded" in outcome["reason"] and "--no-canary" in outcome["remedy"]


def test_a_canary_that_is_stopped(agent, library, burn):
    burner = burn(load=0.4)
    found = processes(agent, burner)
    stopper = when_profiled(burner, burner.outer.suspend)
    outcome = watched(agent, library, found)
    stopper.join()
    burner.outer.kill(18)
    assert (outcome["status"], outcome["stage"]) == ("failed", "record"), outcome
    assert "was stopped while it was recorded" in outcome["reason"]


def test_who_watches_a_canary_goes_on_listening_and_leaves_nothing(agent, library, burn):
    burner = burn(load=0.4)
    found = processes(agent, burner)
    watch = Watch("/tmp")
    begin = when_profiled(burner, lambda: None)
    request: Dict[str, Any] = {"sampling": sampling(engine="async-profiler"), "processes": chosen(found)}
    agent.send("canary", blobs={"async-profiler": library}, **request)
    begin.join()
    agent.send("list")
    agent.expect("processes")
    agent.close_stdin()
    assert agent.wait() == 0
    came, went = watch.seen(f".hprofiler-run-{agent.process.pid}-")
    assert came and came == went
    libraries = attach.profiler_libraries(burner.outer.pid)
    assert all("not active" in attach.profiling_status(burner.outer.pid, path) for path in libraries)


def test_a_canary_that_cannot_be_recorded_tells_nothing(agent, library, burn):
    outcome = watched(agent, library, processes(agent, burn(options=["-XX:+DisableAttachMechanism"])))
    assert (outcome["status"], outcome["stage"]) == ("failed", "prepare")
