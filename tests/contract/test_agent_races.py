"""A user who swaps what is in his own folders, in a loop, while root works there: records his JVM, cleans up
after it, and keeps what he sends beside the agent that he had sudo run."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.contract.conftest import OTHER_USER, found
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


def state(victim: Path) -> dict[str, tuple[object, ...]]:
    """All that somebody could have changed there."""
    told: dict[str, tuple[object, ...]] = {}
    for path in (victim, *sorted(victim.rglob("*"))):
        there = path.lstat()
        content = path.read_bytes() if stat.S_ISREG(there.st_mode) else b""
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


def everything(agent: Any, library: str, burner: Any) -> bytes:
    """All that the agent says of a recording and a cleaning, whatever comes of them."""
    _, refused = agent.prepare(library, found(agent, burner), duration=0.5)
    agent.send("start")  # which fails where async-profiler's file is swapped as it opens it
    result = agent.collect()
    said = repr((refused, result.outcomes)).encode() + b"".join(result.profiles.values())
    agent.send("clean", kept=True, dry=True)
    listed = agent.expect("leftovers")
    agent.send("clean", kept=True)
    return said + repr((listed, agent.expect("leftovers"))).encode()


def test_nothing_is_gained(agent, library, burn, victim, swapped):
    burner = burn(user=SWAPPING_USER, load=0.2)
    before = state(victim)
    said = b"".join(everything(agent, library, burner) for _ in range(4))
    procs.wait_for("something that was swapped", lambda: swapped.stat().st_size)
    assert state(victim) == before
    assert SECRET not in said
    assert os.path.isdir(f"/proc/{burner.outer.pid}")
    hit = swapped.read_text()
    assert "/.attach_pid" in hit or "/.hprofiler-" in hit


TAKER = """
import os, sys
user, name, links, inode = int(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4])
os.setgroups([]); os.setgid(user); os.setuid(user)
print("ready", flush=True)
for link in (f"{links}/{number}" for number in range(len(os.listdir(links)))):
    while os.stat(link).st_ino == inode:  # until the agent has written over it
        os.rename(link, name)
        try:
            os.rename(name, link)
        except FileNotFoundError:
            break
"""
LINKS = 10_000
PUTS = 2_000


def test_a_file_of_roots_is_not_given_to_who_owns_the_agents_folder(start_agent, private):
    """He puts it where the agent, which is root, has just put what he sent."""
    bytes_sent = secrets.token_bytes(32)
    os.chown(private, SWAPPING_USER, SWAPPING_USER)
    os.chown(private.parent, SWAPPING_USER, SWAPPING_USER)
    links = private.parent / "links"
    links.mkdir()
    os.chown(links, SWAPPING_USER, SWAPPING_USER)
    precious = links / "0"
    precious.write_bytes(SECRET)
    for number in range(1, LINKS):  # as anybody can make them where fs.protected_hardlinks is 0
        os.link(precious, links / str(number))
    held = os.open(precious, os.O_RDONLY)
    agent = start_agent()
    agent.hello()
    kept = private.parent / agent.put(bytes_sent)
    words = [sys.executable, "-c", TAKER, str(SWAPPING_USER), str(kept), str(links)]
    taker = subprocess.Popen([*words, str(os.fstat(held).st_ino)], stdout=subprocess.PIPE)
    assert taker.stdout.readline() == b"ready\n"
    try:
        end = time.monotonic() + procs.PATIENCE
        for _ in range(PUTS):
            agent.put(bytes_sent)
            assert os.fstat(held).st_uid == 0, "root's file was given away"
            if taker.poll() is not None or time.monotonic() > end:
                break
    finally:
        taker.kill()
        taker.wait()
        taker.stdout.close()
        os.close(held)
    agent.put(bytes_sent)
    assert (kept.stat().st_uid, kept.read_bytes()) == (SWAPPING_USER, bytes_sent)
