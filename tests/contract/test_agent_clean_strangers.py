"""What a hostile user starts so that things of other users are neither listed nor removed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.contract.agent_driver import Agent
from tests.contract.cleaning import HASH, at, list_event, listed, of_pid, remove
from tests.contract.conftest import OTHER_USER, found, is_profiled

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: processes and files of other users"),
]

AS_STRANGER = f"""
import mmap, os, signal, subprocess, sys
os.setgroups([]), os.setgid({OTHER_USER}), os.setuid({OTHER_USER}), os.umask(0o077)
"""
AGENTS = """
folder, name, depth, count = *sys.argv[1:3], *map(int, sys.argv[3:])
binary = open("/bin/sleep", "rb").read()
os.chdir(folder)
for _ in range(depth):
    os.mkdir("d" * 250)
    os.chdir("d" * 250)
with open(name, "wb") as file:
    os.fchmod(file.fileno(), 0o755)
    file.write(binary)
running = [subprocess.Popen([f"./{name}", "600"]) for _ in range(count)]
print("begun", flush=True)
sys.stdin.read()
for one in running:
    one.kill()
"""
JVMS = """
library, count = sys.argv[1], int(sys.argv[2])
for path in (library, os.path.join(os.path.dirname(library), "libjvm.so")):
    with open(path, "w+b") as file:
        file.truncate(4096)
        globals()[path] = mmap.mmap(file.fileno(), 4096, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC)
signal.signal(signal.SIGQUIT, lambda *_: None)
pids = []
for _ in range(count):
    pids.append(os.fork())
    if not pids[-1]:
        while True:
            signal.pause()
print("begun", flush=True)
sys.stdin.read()
for pid in pids:
    os.kill(pid, signal.SIGKILL)
"""


@pytest.fixture
def strangers():
    """A folder of a hostile user."""
    folder = Path(tempfile.mkdtemp(prefix="hprofiler-contract-", dir="/var/tmp"))
    os.chown(folder, OTHER_USER, OTHER_USER)
    yield folder
    subprocess.run(["rm", "-rf", str(folder)], check=True)  # Python goes no deeper than its stack


@contextmanager
def hostile(program, *words):
    """What a hostile user runs, from when it has begun."""
    script = AS_STRANGER + program
    command = [sys.executable, "-c", script, *map(str, words)]
    running = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert running.stdout.readline() == b"begun\n"
        yield running
    finally:
        running.communicate()


def replace_by_link(folder: Path, to: Path) -> None:
    shutil.rmtree(folder)
    folder.symlink_to(to)
    os.chown(folder, OTHER_USER, OTHER_USER, follow_symlinks=False)


@pytest.fixture
def cleaner(start_agent) -> Agent:
    """One with time for processes that hang."""
    agent = start_agent()
    agent.hello(lease=120)
    return agent


def test_a_cache_is_not_in_use_by_what_is_only_called_an_agent(cleaner, private, strangers):
    folder = strangers / "agents"
    folder.mkdir()
    os.chown(folder, OTHER_USER, OTHER_USER)
    with hostile(AGENTS, folder, f"agent-{HASH * 4}", 0, 1):
        replace_by_link(folder, private.parent)
        entry = at(listed(cleaner), private.parent)
        assert (entry["state"], entry["own"]) == ("left", True), entry


def test_a_library_is_not_needed_by_a_stranger_who_names_it(cleaner, strangers):
    """It is root's; the path by which the stranger has loaded one leads to it by now."""
    name = f".hprofiler-ap-{HASH}-0"
    library, way = Path("/tmp") / name, strangers / "way"
    library.mkdir(mode=0o700)
    for path in (way, way / name):
        path.mkdir()
        os.chown(path, OTHER_USER, OTHER_USER)
    try:
        with hostile(JVMS, way / name / "libasyncProfiler.so", 0):
            replace_by_link(way, library.parent)
            entry = at(listed(cleaner), library)
            assert entry["state"] == "left", entry
            assert remove(cleaner, entry)["removed"] == [str(library)]
    finally:
        shutil.rmtree(library, ignore_errors=True)


def test_a_crowd_of_agents_hides_nothing(cleaner, strangers):
    left = Path("/tmp") / f".hprofiler-run-77-{os.getpid()}-{OTHER_USER + 1}"
    left.mkdir(mode=0o700)
    os.chown(left, OTHER_USER + 1, OTHER_USER + 1)
    try:
        with hostile(AGENTS, strangers, f"agent-{HASH * 4}", 15, 160):
            told = list_event(cleaner)
            assert not [one for one in told["failed"] if one["what"] == "the list"], told["failed"]
            entries = {entry["id"]: entry for entry in told["entries"]}
            crowd = [one for one in entries.values() if one["path"].startswith(f"{strangers}/")]
            assert len(crowd) == 50
            assert crowd[-1]["reason"].endswith("; 110 more of this user's are not listed")
            assert remove(cleaner, at(entries, left))["removed"] == [str(left)]
    finally:
        shutil.rmtree(left, ignore_errors=True)


def test_a_crowd_of_jvms_that_hang_keeps_nobody_else_waiting(
    start_agent, cleaner, library_file, strangers, burn
):
    own = strangers / f".hprofiler-ap-{HASH}-{OTHER_USER}"
    own.mkdir(mode=0o700)
    os.chown(own, OTHER_USER, OTHER_USER)
    with hostile(JVMS, own / "libasyncProfiler.so", 39):
        burner, killed = burn(), start_agent()
        killed.hello()
        ready, refused = killed.prepare(killed.put(library_file.read_bytes()), found(killed, burner))
        assert ready, refused
        killed.start()
        killed.process.kill()
        killed.wait()
        assert is_profiled(burner.outer.pid)
        profiler = of_pid(listed(cleaner), burner.outer.pid)["profiler"]
        assert profiler["state"] == "left", profiler
        assert remove(cleaner, profiler)["stopped"] == [burner.outer.pid]
    cleaner.send("clean", kept=True)
    assert not cleaner.expect("cleaned", 60)["failed"]
    assert not is_profiled(burner.outer.pid)
