"""A user who swaps what is in his folders, in a loop, while root records his JVM and cleans up after it."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contract.conftest import OTHER_USER
from tests.lab import procs

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: JVMs and files of other users"),
]
SWAPPING_USER = OTHER_USER + 5
"""Nobody else's files are touched."""
PLACES = ("/tmp", "/var/tmp", "/dev/shm")
NAMES = (".hprofiler-*", ".attach_pid*")
SECRET = b"only root may read this"

SWAPPER = """
import os, sys, time
user, victim, aside = int(sys.argv[1]), sys.argv[2], sys.argv[3]
os.setgroups([]); os.setgid(user); os.setuid(user)
mine = lambda path: os.lstat(path).st_uid == user
def swap(path, to, number):
    os.rename(path, f"{aside}/{number}")
    os.symlink(to, path)
    print(path, flush=True)
    time.sleep(0.001)
    os.unlink(path)
    if number % 3:  # most of what is taken away comes back, so that work goes on
        os.rename(f"{aside}/{number}", path)
number = 0
while True:
    for path in [f"{base}/{name}" for base in ("/tmp", "/var/tmp", "/dev/shm") for name in os.listdir(base)]:
        try:
            if not (os.path.basename(path).startswith((".hprofiler-", ".attach_pid")) and mine(path)):
                continue
            number += 1
            if number % 2 and os.path.isdir(path):
                for file in os.listdir(path):
                    number += 1
                    swap(f"{path}/{file}", f"{victim}/precious", number)
            else:
                swap(path, victim if os.path.isdir(path) else f"{victim}/precious", number)
        except OSError:
            pass
    time.sleep(0.004)  # so that work goes on in between
"""


def state(victim):
    """All that somebody could have changed there."""
    told = {}
    for path in (victim, *sorted(victim.rglob("*"))):
        there, content = path.lstat(), path.read_bytes() if path.is_file() else b""
        told[str(path)] = (
            there.st_mode,
            there.st_uid,
            there.st_gid,
            there.st_nlink,
            there.st_mtime_ns,
            content,
        )
    return told


@pytest.fixture
def victim() -> Iterator[Path]:
    """A folder of root's that everybody may look into, with a file that nobody else may read."""
    folder = Path(tempfile.mkdtemp(prefix="hprofiler-victim-", dir="/var/tmp"))
    folder.chmod(0o755)
    (folder / "precious").write_bytes(SECRET)
    (folder / "precious").chmod(0o600)
    (folder / "libasyncProfiler.so").write_bytes(b"root's own")
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def swapped(victim: Path, tmp_path: Path) -> Iterator[Path]:
    """While this is used the user swaps what he can; gives the file that says what he swapped."""
    aside = Path(tempfile.mkdtemp(prefix="hprofiler-aside-", dir="/tmp"))
    os.chown(aside, SWAPPING_USER, SWAPPING_USER)
    said = tmp_path / "swapped"
    with said.open("wb") as out:
        words = [sys.executable, "-c", SWAPPER, str(SWAPPING_USER), str(victim), str(aside)]
        swapper = subprocess.Popen(words, stdout=out)
    yield said
    swapper.kill()
    swapper.wait()
    roots = [path for path in aside.rglob("*") if path.lstat().st_uid != SWAPPING_USER]
    shutil.rmtree(aside)
    sweep()
    assert not roots, "root made nothing that he has now"


def sweep() -> None:
    """Takes away what his agents left. What is others' may go while it is looked at."""
    for path in (path for base in PLACES for name in NAMES for path in Path(base).glob(name)):
        with contextlib.suppress(FileNotFoundError):
            there = path.lstat()
            if there.st_uid == SWAPPING_USER:
                shutil.rmtree(path) if stat.S_ISDIR(there.st_mode) else path.unlink()


def everything(agent, burner):
    """All that the agent says of a recording and a cleaning, whatever comes of them."""
    _, refused = agent.prepare(burner)
    agent.send("start")  # which fails where async-profiler's file is swapped as it opens it
    result = agent.collect()
    payloads = [payload for events in result.events.values() for _, payload in events.values()]
    said = repr((refused, result.outcomes, agent.leftovers(), agent.clean())).encode()
    return said + b"".join(payloads)


def test_swapping_files_gains_nothing(agent, burn, victim, swapped):
    burner = burn(user=SWAPPING_USER, load=0.2)
    before = state(victim)
    said = b"".join(everything(agent, burner) for _ in range(4))
    procs.wait_for("something that was swapped", lambda: swapped.stat().st_size)
    assert state(victim) == before
    assert SECRET not in said
    assert os.path.isdir(f"/proc/{burner.outer.pid}")
    hit = swapped.read_text()
    assert "/.attach_pid" in hit or "/.hprofiler-" in hit
