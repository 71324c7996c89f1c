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
from tests.contract.cleaning import HASH, at, clean, listed
from tests.contract.conftest import OTHER_USER

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
        assert entry["state"] == "left", entry


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
            assert str(library) in clean(cleaner)["removed"]
    finally:
        shutil.rmtree(library, ignore_errors=True)
