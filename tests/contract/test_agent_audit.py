"""The record of what an agent did, beside every call by which it could have done anything (strace)."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.contract.agent_driver import Agent
from tests.contract.asking import chosen, sampling
from tests.contract.conftest import OTHER_USER, as_user
from tests.contract.perf_engine import FRAME_POINTERS, perfmap, processes
from tests.lab import procs

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: JVMs of other users"),
]

OWNER = OTHER_USER + 6
"""Whose private folder no other test removes."""
CALLS = (
    "open,openat,openat2,creat,mkdir,mkdirat,rmdir,unlink,unlinkat,rename,renameat,renameat2,link,linkat,"
    "symlink,symlinkat,mknod,mknodat,truncate,chmod,fchmodat,chown,lchown,fchownat,"
    "setxattr,lsetxattr,utimensat,bind,kill,tkill,tgkill,pidfd_send_signal,execve,execveat,mount,ptrace"
)
_LINE = re.compile(r"^(?P<pid>\d+) +(?P<call>\w+)\((?P<words>.*)\) += (?P<result>-?\d+|\?)")
_TEXT = re.compile(r'(?:(?P<at>AT_FDCWD|\d+)(?:<(?P<dir>[^>]*)>)?, )?"(?P<name>(?:[^"\\]|\\.)*)"')
_THROUGH = re.compile(r"^/proc/self/fd/\d+")


class Seen(NamedTuple):
    """What the kernel was asked for, and did: paths as the process that they are of sees them."""

    made: set[str]
    folders: set[str]
    removed: list[str]
    signals: list[str]
    programs: list[str]
    other: list[str]


def paths(words: str) -> list[str]:
    """The paths that a call names; one through a descriptor of a process's root is that process's own."""
    found = []
    for one in _TEXT.finditer(words):
        name = _THROUGH.sub("", one["name"]) or "/"
        found.append(name if name.startswith("/") else os.path.join(one["dir"] or "", name))
    return found


def seen_by_the_kernel(trace: Path) -> Seen:
    seen = Seen(set(), set(), [], [], [], [])
    for line in whole_lines(trace.read_text(errors="replace")):
        call = _LINE.match(line)
        if call and not call["result"].startswith("-"):
            take(seen, call["call"], call["words"], call["pid"])
    return seen


def whole_lines(text: str) -> Iterator[str]:
    """Calls that another thread's came between are put together again."""
    begun: dict[str, str] = {}
    for line in text.splitlines():
        pid = line.split(" ", 1)[0]
        if line.endswith(" <unfinished ...>"):
            begun[pid] = line[: -len(" <unfinished ...>")]
        elif " resumed>" in line:
            yield begun.pop(pid, pid) + line.split(" resumed>", 1)[1]
        else:
            yield line


def take(seen: Seen, call: str, words: str, pid: str) -> None:
    names = paths(words)
    if call in ("open", "openat", "openat2", "creat"):
        if re.search(r"O_WRONLY|O_RDWR|O_CREAT|O_TRUNC|O_APPEND", words) and "O_TMPFILE" not in words:
            seen.made.add(names[0])
    elif call in ("mkdir", "mkdirat"):
        seen.folders.add(names[0])
    elif call in ("rmdir", "unlink", "unlinkat"):
        seen.removed.append(names[0])
    elif call.startswith("rename"):  # whole or not at all: what was written is known by its last name
        seen.made.discard(names[0])
        seen.made.add(names[1])
    elif call in ("kill", "tkill", "tgkill", "pidfd_send_signal"):
        seen.signals.append(words)
    elif call in ("execve", "execveat"):
        seen.programs.append(names[0])
    elif touched := re.fullmatch(r"\d+<([^>]*)>, NULL, .*UTIME_NOW.*", words):
        seen.folders.add(touched[1])  # a cache that is used
    elif not (call == "bind" and "sun_path=@" in words):  # no file, gone with the process
        seen.other.append(f"{call}({words})")


def is_told(path: str) -> bool:
    """`/proc` holds no files, and devices keep nothing."""
    return not path.startswith(("/proc/", "/dev/null", "/sys/"))


@pytest.fixture
def traced(private: Path, tmp_path: Path) -> Iterator[Any]:
    """Starts an agent under strace that tells what it does, optionally as a user; all are ended."""
    if not shutil.which("strace"):
        pytest.fail("strace is missing (apt install strace)", pytrace=False)
    agents: list[Agent] = []
    trace = tmp_path / "trace"

    def start(*words: str) -> Agent:
        strace = ["strace", "-f", "-y", "-s", "1000", "-e", f"trace={CALLS}", "-e", "signal=none"]
        agent = Agent([*strace, "-o", str(trace), *words, str(private), "--any-library"])
        agents.append(agent)
        agent.send("hello", protocol=2, lease_seconds=30, exclude=None, audit=True)
        agent.expect("hello")
        agent.trace = trace  # type: ignore[attr-defined]
        return agent

    yield start
    for agent in agents:
        agent.end()


def finished(agent: Any) -> Seen:
    """What was seen of an agent that has said all; `acts` has what it told."""
    agent.send("bye")
    assert agent.next()[0]["type"] == "(end of output)"
    assert agent.wait() == 0
    return seen_by_the_kernel(agent.trace)


def compare(agent: Any, seen: Seen, own: Path) -> None:
    told: dict[str, set[str]] = {}
    for act in agent.acts:
        told.setdefault(act["what"], set()).add(act["detail"])
    assert {path for path in seen.made if is_told(path)} == told.get("file", set())
    assert seen.folders == told.get("folder", set())
    removed = [act["detail"] for act in agent.acts if act["what"] == "removed"]
    assert sorted(seen.removed) == sorted(removed), "each once"
    compare_programs(sorted(told.get("program", set())), seen.programs, own)
    assert not seen.other


def compare_programs(told: list[str], seen: list[str], own: Path) -> None:
    """What a program starts itself stands in its arguments."""
    own_and_before = seen[: seen.index(str(own)) + 1]
    seen = seen[len(own_and_before) :]
    begun = {line.split(" ")[0] for line in told}
    assert {path for path in seen if path in begun} == begun
    words = {os.path.basename(word) for line in told for word in line.split(" ")}
    assert {os.path.basename(path) for path in seen} <= words, (seen, told)


def record(agent: Any, engine: str, library_file: Path, *burners: Any) -> None:
    found = processes(agent, *burners)
    blobs = {"async-profiler": agent.put(library_file.read_bytes()), "perfmap": agent.put(perfmap())}
    agent.send("prepare", sampling=sampling(engine=engine, duration=1), blobs=blobs, processes=chosen(found))
    while agent.next()[0]["type"] != "ready":
        pass
    agent.start()
    outcomes = agent.collect().outcomes
    assert all(one["status"] != "failed" for one in outcomes.values()), outcomes


def signals_told(agent: Any) -> list[str]:
    return [act["detail"] for act in agent.acts if act["what"] == "signal"]


def as_called(told: str) -> str:
    """What is told of a signal as the system call has it; a process's descriptor has no number."""
    name, to = told.split(" to ", 1)
    if name == "SIGQUIT":
        return name
    return f"{'-' if 'group' in to else ''}{to.rsplit(' ', 1)[1]}, {name}"


def test_all_that_async_profilers_engine_does_is_told(traced, private, library_file, burn):
    burners = [burn(load=0.2), burn(load=0.2, user=OTHER_USER)]
    agent = traced()
    record(agent, "async-profiler", library_file, *burners)
    seen = finished(agent)
    compare(agent, seen, private)
    assert set(signals_told(agent)) == {f"SIGQUIT to {burner.outer.pid}" for burner in burners}
    assert len(seen.signals) == 2 and all("SIGQUIT" in words for words in seen.signals)


def test_files_of_a_folder_that_jvms_share_are_told_as_their_own(traced, library_file, burn):
    """The last of them to leave the run's folder removes what all have in it."""
    burners = [burn(load=0.2) for _ in range(3)]
    identities = [procs.Identity.of(burner.outer.pid) for burner in burners]
    began = {one.start_time: one.pid for one in identities if one}
    agent = traced()
    record(agent, "async-profiler", library_file, *burners)
    finished(agent)
    named = re.compile(r".*/\.hprofiler-run-[^/]*/\d+-\d+-(?P<began>\d+)\.[^/]*")
    removed = [act for act in agent.acts if act["what"] == "removed"]
    files = [(act["pid"], one["began"]) for act in removed if (one := named.fullmatch(act["detail"]))]
    assert {pid for pid, _ in files} == set(began.values()), removed
    assert all(began[int(start)] == pid for pid, start in files), removed


def test_all_that_perfs_engine_does_is_told(traced, private, library_file, burn):
    burner = burn(options=[FRAME_POINTERS], load=0.2)
    agent = traced()
    record(agent, "perf", library_file, burner)
    seen = finished(agent)
    compare(agent, seen, private)
    of_perf = ("SIGTERM", "SIGCONT")  # which ends by that what it runs, and that what it runs in turn
    of_agent = [words for words in seen.signals if not words.endswith(of_perf)]
    sent = ["SIGQUIT" if "SIGQUIT" in words else words for words in of_agent]
    assert sorted(sent) == sorted(map(as_called, signals_told(agent)))
    asked = [act["detail"] for act in agent.acts if act["what"] == "attach"]
    assert asked and any("perfmap" in words.lower() for words in asked)


def test_all_that_another_users_agent_does_is_told(traced, private, library_file, burn):
    """It has no rights, and makes a folder of its own."""
    own = Path(f"/tmp/.hprofiler-{OWNER}")
    shutil.rmtree(own, ignore_errors=True)
    os.chmod(private.parent, 0o755)
    burner = burn(load=0.2, user=OWNER)
    try:
        agent = traced(*as_user(OWNER))
        record(agent, "async-profiler", library_file, burner)
        seen = finished(agent)
        assert str(own) in {act["detail"] for act in agent.acts if act["what"] == "folder"}
        compare(agent, seen, private)
    finally:
        shutil.rmtree(own, ignore_errors=True)


def recording_and_killed(agent: Agent, library: bytes, burner: Any) -> str:
    """Kills an agent in the middle of a recording; gives its run folder, which it has told by then."""
    agent.send("hello", protocol=2, lease_seconds=30, exclude=None, audit=True)
    agent.expect("hello")
    found = processes(agent, burner)
    assert agent.prepare(agent.put(library), found, duration=60)[0]
    agent.start()
    agent.process.kill()
    agent.process.wait()
    told = {(act["what"], act["detail"]) for act in agent.acts}
    assert ("signal", f"SIGQUIT to {burner.outer.pid}") in told
    assert any(what == "attach" and "start,event" in detail for what, detail in told), told
    (run,) = (path for what, path in told if what == "folder" and "/.hprofiler-run-" in path)
    return run


def test_an_agent_that_was_killed_has_told_all_and_so_has_the_one_that_cleans(
    traced, start_agent, private, library_file, burn
):
    burner, library = burn(load=0.2), library_file.read_bytes()
    run = recording_and_killed(start_agent(), library, burner)
    assert os.path.isdir(run)
    agent = traced()
    agent.send("clean", kept=True, dry=True)
    listed = [one for one in agent.expect("leftovers")["entries"] if one["state"] == "left"]
    staged = f"/tmp/.hprofiler-ap-{hashlib.sha256(library).hexdigest()[:16]}-0"
    own = [one["id"] for one in listed if one["path"] in (run, staged) or one["pid"] == burner.outer.pid]
    agent.send("clean", kept=True, only=own)
    cleaned = agent.expect("cleaned")
    assert cleaned["stopped"] == [burner.outer.pid] and run in cleaned["removed"], cleaned
    seen = finished(agent)
    compare(agent, seen, private)
    assert any("stop" in act["detail"] for act in agent.acts if act["what"] == "attach")


def test_a_folder_that_somebody_else_uses_is_emptied_and_each_file_is_told_once(traced, private):
    folder = Path(f"/tmp/.hprofiler-run-77-{os.getpid()}-0")
    folder.mkdir(mode=0o700)
    try:
        (folder / "7.log").write_text("ours")
        (folder / "precious").write_text("theirs")
        agent = traced()
        agent.send("clean", kept=True, dry=True)
        listed = agent.expect("leftovers")["entries"]
        own = [one["id"] for one in listed if one["path"] == str(folder)]
        agent.send("clean", kept=True, only=own)
        cleaned = agent.expect("cleaned")
        assert cleaned["removed"] == [f"{folder}/7.log"], cleaned
        compare(agent, finished(agent), private)
        assert os.listdir(folder) == ["precious"]
    finally:
        shutil.rmtree(folder)
