"""What a hostile user can do to root's agent by a process that looks like Python: lose its recording."""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from tempfile import mkdtemp

import pytest

from tests.burners.counting import SHARES, Counting, Python
from tests.contract.agent_driver import Agent, Event, good
from tests.contract.conftest import OTHER_USER, as_user
from tests.lab import procs

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: a process of another user")

MAPPER = """
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>
static char much[4096];
int main(int argc, char **argv) {
    if (argc > 1) mmap(0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, open(argv[1], O_RDONLY), 0);
    puts("ready");
    fflush(stdout);
    for (volatile long n = 0;; n++) much[n & 4095]++;
}
"""
CHANGING = """
import mmap, os, sys
path = sys.argv[1]
size = os.path.getsize(path)
whole = open(path, "rb").read()
with open(path, "r+b") as file:
    mapped = mmap.mmap(file.fileno(), size, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC)
    print("ready", flush=True)
    while True:
        file.truncate(4096)
        file.truncate(size)
        os.pwrite(file.fileno(), whole, 0)
"""
"""A program that takes away the ends of the library that it maps."""
FORKING = """
import os, sys
print("ready", flush=True)
while True:
    for _ in range(20):
        if not os.fork():
            for _ in range(20000): pass
            os._exit(0)
    while True:
        try:
            if not os.waitpid(-1, os.WNOHANG)[0]: break
        except ChildProcessError:
            break
"""
MAPPING = """
import mmap
all = []
try:
    for number in range(60000):
        protection = mmap.PROT_READ | (mmap.PROT_EXEC if number % 2 else 0)
        all.append(mmap.mmap(-1, 4096, mmap.MAP_PRIVATE, protection))
except OSError:
    pass
print("ready", flush=True)
while True: pass
"""
AS_ANOTHER = """
import os, sys, time
def worker():
    while True: pass
def parent():
    while True: pass
if not os.fork():
    os.setgroups([])
    os.setresgid(*[int(sys.argv[1])] * 3)
    os.setresuid(*[int(sys.argv[1])] * 3)
    time.sleep(1)
    worker()
print("ready", flush=True)
parent()
"""
SYMBOLS, LONG = 30_000, 36 << 10
NOBITS, SYMTAB, STRTAB, DYNSYM = 8, 2, 3, 11
IN_OPEN, IN_NONBLOCK = 0x20, 0o4000
"""Of inotify."""


@pytest.fixture
def folder() -> Iterator[Path]:
    """That user's own, where it can be reached."""
    made = Path(mkdtemp(prefix="hprofiler-fence-", dir="/tmp"))
    made.chmod(0o755)
    yield made
    shutil.rmtree(made)


@pytest.fixture
def program(folder: Path) -> Path:
    """A busy program of C that is called as Python."""
    source = folder / "mapper.c"
    source.write_text(MAPPER)
    built = folder / "python3.11"
    subprocess.run(["gcc", "-O1", "-o", built, source], check=True)
    return built


@pytest.fixture
def run(program: Path) -> Iterator[Callable[..., Event]]:
    """Starts it as another user."""
    running: list[subprocess.Popen[bytes]] = []

    def start(*arguments: object, by: Sequence[object] = (), user: int = OTHER_USER) -> Event:
        command = [*as_user(user), *map(str, [*(by or [program]), *arguments])]
        running.append(subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True))
        out = running[-1].stdout
        assert out and out.readline() == b"ready\n"
        pid = running[-1].pid
        stat = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return {"pid": pid, "start_time": int(stat[19]), "label": "hostile", "labels": {}}

    yield start
    for process in running:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def sections(elf: bytes) -> Iterator[tuple[int, list[int]]]:
    """Of a file of 64 bits: the place of each header, and its ten numbers."""
    begin, size, count = (*struct.unpack_from("<Q", elf, 40), *struct.unpack_from("<HH", elf, 58))
    for place in range(begin, begin + size * count, size):
        yield place, list(struct.unpack_from("<IIQQQQIIQQ", elf, place))


def with_bss(program: Path, size: int) -> None:
    """Say another size of `.bss` than the program's."""
    elf = bytearray(program.read_bytes())
    for place, header in sections(elf):
        if header[1] == NOBITS:
            header[5] = size
            struct.pack_into("<IIQQQQIIQQ", elf, place, *header)
    program.write_bytes(elf)


def with_one_name(folder: Path) -> Path:
    """A library whose symbols all have the ends of one long name."""
    lines = [f".globl s{n}\n.type s{n},@object\ns{n}: nop" for n in range(SYMBOLS)]
    text = ".text\n" + "\n".join([*lines, f".globl {'x' * LONG}", f"{'x' * LONG}: nop", ""])
    (folder / "names.s").write_text(text + '.section .note.GNU-stack,"",@progbits\n.bss\n.space 4096\n')
    library = folder / "libpython3.11.so.1.0"
    subprocess.run(["gcc", "-shared", "-nostdlib", "-o", library, folder / "names.s"], check=True)
    elf = bytearray(library.read_bytes())
    headers = [header for _, header in sections(elf)]
    for header in headers:
        if header[1] in (SYMTAB, DYNSYM):
            names = headers[header[6]]
            long = elf.index(b"x" * LONG, names[4], names[4] + names[5]) - names[4]
            for number, place in enumerate(range(header[4] + 24, header[4] + header[5], 24)):
                struct.pack_into("<I", elf, place, long + number)
    library.write_bytes(elf)
    return library


def holds(agent: Agent, hostile: Event, keep_program: Callable[[Python], Python]) -> Event:
    """The outcome of the hostile process. Another one is recorded meanwhile, and nothing is lost of it."""
    honest = keep_program(Python(sys.executable, load=0.8))
    ready, outcomes = agent.prepare(hostile, honest, engine="pyspy", frequency=99, duration=300)
    assert honest.outer.pid in ready
    agent.start()
    start = honest.counters()["hot"]
    procs.wait_for("work", lambda: honest.counters()["hot"] > start + 3e8)
    result = agent.stop()
    done = result.of(honest)
    assert good(done.outcome) and done.share("hot (shares.py)") > 0.4, done.outcome
    return {**outcomes, **result.outcomes}[hostile["pid"]]


def test_a_size_that_is_a_lie(agent, run, program, keep_program):
    with_bss(program, 1 << 44)
    outcome = holds(agent, run(), keep_program)
    assert (outcome["status"], outcome["code"]) == ("failed", "reader-ended"), outcome
    assert outcome["parameters"]["signal"] == signal.SIGABRT and "--engine perf" in outcome["remedy"], outcome


@pytest.mark.nightly
def test_names_that_take_all_memory(agent, run, folder, keep_program):
    outcome = holds(agent, run(with_one_name(folder)), keep_program)
    assert outcome["code"] == "reader-ended", outcome


@pytest.mark.nightly
def test_names_that_take_all_memory_of_perf(agent, run, folder):
    """perf's symbols of that library are bounded by the size of its file."""
    agent.begin(run(with_one_name(folder)), engine="perf", frequency=99, duration=1)
    result = agent.collect()
    (outcome,) = result.outcomes.values()
    assert outcome["status"] != "failed", outcome
    peak = procs.status(agent.process.pid)["VmHWM"][0]
    assert int(peak) < 400 << 10, "KiB"


@pytest.fixture
def full(folder: Path) -> Iterator[Path]:
    """A file system without room."""
    at = folder / "full"
    at.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m,mode=755", "none", at], check=True)
    yield at
    subprocess.run(["umount", "--lazy", at], check=True)


@pytest.mark.nightly
def test_a_mapped_file_on_a_full_file_system(agent, run, full, keep_program):
    library = full / "libpython3.11.so"
    with library.open("wb") as file:
        # Its table of sections is in a hole.
        header = b"\x7fELF\x02\x01\x01" + bytes(9)
        header += struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, 64, 1 << 24, 0, 64, 56, 1, 64, 4, 0)
        file.write(header.ljust(4096, b"\0"))
        file.truncate(1 << 25)
    with (full / "filler").open("wb") as filler, pytest.raises(OSError):
        filler.write(bytes(2 << 20))
        filler.flush()
    outcome = holds(agent, run(library), keep_program)
    assert outcome["code"] == "reader-ended", outcome
    assert outcome["parameters"]["signal"] == signal.SIGBUS, outcome


@pytest.mark.nightly
@pytest.mark.parametrize("native", [False, True])
def test_a_link_at_the_place_of_a_mapped_file(agent, run, folder, keep_program, native):
    """Nothing opens what it leads to. Neither does the reader of native code, nor that of perf."""
    secret = folder / "secret"
    secret.write_text("secret")
    secret.chmod(0o600)
    library = folder / ("libother.so" if native else "libpython3.11.so")
    shutil.copy(sys.executable, library)
    hostile = run(library)
    library.unlink()
    library.symlink_to(secret)
    libc = ctypes.CDLL(None)
    watch = libc.inotify_init1(IN_NONBLOCK)
    assert libc.inotify_add_watch(watch, bytes(secret), IN_OPEN) > 0
    outcome = holds(agent, hostile, keep_program)
    assert outcome["code"] == "python-unreadable", outcome
    agent.begin(hostile, engine="perf", frequency=99, duration=1)
    agent.collect()
    with pytest.raises(BlockingIOError):
        os.read(watch, 4096)
    secret.read_text()
    assert os.read(watch, 4096), "it would have been seen"
    os.close(watch)


@pytest.mark.nightly
def test_a_library_that_changes_while_it_is_read(agent, run, folder, keep_program):
    """At a moment at which it is whole, it can be read."""
    library = folder / "libpython3.11.so"
    shutil.copy(sys.executable, library)
    os.chown(library, OTHER_USER, OTHER_USER)
    outcome = holds(agent, run(library, by=["/usr/bin/python3", "-c", CHANGING]), keep_program)
    assert outcome["code"] in ("reader-ended", "python-unreadable", "recorded"), outcome


@pytest.mark.nightly
@pytest.mark.parametrize("text", [FORKING, MAPPING])
def test_a_python_that_forks_all_the_time_or_has_very_many_mappings(agent, run, keep_program, text):
    outcome = holds(agent, run(by=["/usr/bin/python3", "-c", text]), keep_program)
    assert outcome["status"] in ("ok", "degraded"), outcome


def test_a_forked_process_of_another_user_is_not_read(agent, run):
    """It could otherwise make use of the rights of root's child."""
    parent = run(OTHER_USER, by=["/usr/bin/python3", "-c", AS_ANOTHER], user=0)
    agent.begin(parent, engine="pyspy", frequency=99, duration=3)
    done = agent.collect().of(parent["pid"])
    names = {frame.split(" ")[0] for stack, _ in done.stacks() for frame in stack}
    assert "parent" in names and "worker" not in names, (done.outcome, names)


def test_the_child_has_only_the_rights_of_the_process_user(agent, new_agent, folder, keep_program):
    """Cleanup knows it, and it ends with the agent."""
    program = shutil.copy(SHARES, folder)
    burner = keep_program(Counting([*as_user(OTHER_USER), "/usr/bin/python3", program, "0.8"]))
    agent.begin(burner, engine="pyspy", frequency=99, duration=300)
    (child,) = procs.children(agent.process.pid)
    status = procs.status(child)
    assert set(status["Uid"] + status["Gid"]) == {str(OTHER_USER)} and status["NoNewPrivs"] == ["1"], status
    assert {int(status[name][0], 16) for name in ("CapPrm", "CapEff", "CapInh")} == {0}, status
    assert os.readlink(f"/proc/{child}/ns/mnt") != os.readlink("/proc/self/ns/mnt")
    assert os.listdir(f"/proc/{child}/root/proc") == [str(burner.pid)], "its only files"
    (listed,) = [one for one in new_agent().leftovers() if one["pid"] == child]
    assert listed["state"] == "used", listed
    agent.process.kill()
    procs.wait_for("its end", lambda: not Path(f"/proc/{child}").exists())
