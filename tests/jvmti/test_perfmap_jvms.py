"""Maps of real JVMs, JDK 8 to 25, are correct, and a failed map leaves the JVM unchanged."""

from __future__ import annotations

import os
import re
import resource
import shutil
import subprocess
import tempfile
import time
from collections import Counter
from pathlib import Path

import pytest

from hprofiler.base import resources
from tests.jvmti import library, map_file
from tests.jvmti.program import Holdings, JavaProgram
from tests.lab import attach, procs

INLINING = [
    "-XX:CompileCommand=quiet",
    *(f"-XX:CompileCommand=inline,Inlined.{method}" for method in ("left", "right", "middle")),
    "-XX:CompileCommand=dontinline,Inlined.hot",
]
DEBUG = ["-XX:+UnlockDiagnosticVMOptions", "-XX:+DebugNonSafepoints"]
FIRST = "-XX:TieredStopAtLevel=1"
LEFT = ("Inlined.hot", "Inlined.middle", "Inlined.left")
RIGHT = ("Inlined.hot", "Inlined.right")
NOBODY = 65534


@pytest.mark.parametrize("compiler", [[], [FIRST]], ids=["C2", "C1"])
def test_samples_fall_on_the_methods_that_burn(java, compiler, start, take, tmp_path):
    """perf's addresses, looked up in the map, give the program's known shares."""
    program = start(java, "Inlined", [*INLINING, *DEBUG, *compiler])
    wait_until_compiled(program, take)
    sampled: list[int] = []
    while len(sampled) < 150:  # a busy machine gives it little time
        # One alone may beat with the loop of the program.
        for frequency in (999, 613):
            sampled += sample(program.pid, tmp_path / "perf.data", frequency)
    found = take(program.pid)
    stacks = Counter(found.at(address) for address in sampled)
    burning = stacks[LEFT] + stacks[RIGHT]
    assert burning > 0.9 * len(sampled), stacks
    chance = 4.5 * (0.7 * 0.3 / burning) ** 0.5
    assert stacks[LEFT] / burning == pytest.approx(0.7, abs=0.03 + chance), stacks


def wait_until_compiled(program: JavaProgram, take) -> None:
    def compiled() -> bool:
        stacks = take(program.pid).stacks()
        return LEFT in stacks and RIGHT in stacks

    procs.wait_for("hot compiled with what is inlined into it", compiled)


def sample(pid: int, path: Path, frequency: int = 999) -> list[int]:
    """User addresses of a second and a half."""
    event = ["-e", "cpu-clock:u", "-F", str(frequency)]
    record = ["perf", "record", "--quiet", *event, "-o", str(path), "-p", str(pid), "--", "sleep", "1.5"]
    subprocess.run(record, check=True, capture_output=True)
    script = ["perf", "script", "-i", str(path), "-F", "ip"]
    printed = subprocess.run(script, check=True, capture_output=True, text=True).stdout
    return [int(word, 16) for word in printed.split()]


def test_stubs_have_their_names(java, start, take):
    program = start(java, "Inlined")
    stubs = {code.name for code in take(program.pid).codes if code.stub}
    assert "Interpreter" in stubs
    assert stubs & {"call_stub", "StubRoutines (1)", "StubRoutines (initial stubs)"}
    assert len(stubs) > 100


def test_names_are_those_of_async_profiler(java, start, take, tmp_path):
    """All its compiled methods are in the map under the same names, also those of lambda classes."""
    program = start(
        java, "Lambdas", ["-XX:CompileCommand=quiet", "-XX:CompileCommand=dontinline,*.applyAsLong"]
    )
    procs.wait_for("a compiled lambda", lambda: lambdas(names_in(take(program.pid))))
    collapsed = tmp_path / "collapsed"
    profiler = str(resources.async_profiler_libraries()["x86_64"].path)
    attach.execute(program.pid, "load", profiler, "true", "start,event=ctimer,interval=1ms")
    sample(program.pid, tmp_path / "perf.data")  # serves as a pause
    stop = f"stop,collapsed,ann,file={collapsed}"
    attach.execute(program.pid, "load", profiler, "true", stop)
    frames = {
        frame for line in collapsed.read_text().splitlines() for frame in line.rpartition(" ")[0].split(";")
    }
    compiled = {frame[:-4] for frame in frames if frame.endswith(("_[j]", "_[i]"))}
    assert lambdas(compiled)
    assert compiled <= names_in(take(program.pid))


def names_in(found: map_file.Map) -> set[str]:
    return {name for frames in found.stacks() for name in frames}


def lambdas(names: set[str]) -> list[str]:
    return [name for name in names if re.fullmatch(r"Lambdas\$\$Lambda\S+\.applyAsLong", name)]


ROOM = ["-Xmx256m", "-XX:CICompilerCount=2", "-XX:TieredStopAtLevel=1", "-XX:ReservedCodeCacheSize=8m"]


@pytest.mark.nightly
def test_fifty_maps_while_classes_come_and_go(java, start, take):
    """Every map is complete, and the JVM holds no more resources than before."""
    program = start(java, "Storm", ROOM)

    def loaded():
        return int(program.ask("loaded").split()[1])

    for _ in range(5):
        take(program.pid)
    before, classes = Holdings.of(program.pid), loaded()
    maps, named, unloaded, end = 0, 0, 0, time.monotonic() + 240
    while maps < 50 or not (named and unloaded and loaded() > classes + 50):
        assert time.monotonic() < end, (maps, named, unloaded, loaded() - classes)
        found = take(program.pid)
        maps, unloaded = maps + 1, unloaded + len(found.unloads)
        named += len(found.methods("Storm$Leaf.twice"))
    after = Holdings.of(program.pid)
    assert after.threads <= before.threads and after.files <= before.files
    assert after.library_pieces == before.library_pieces > 0
    assert program.finish() == 0


@pytest.fixture
def open_folder():
    """A folder that every user may enter, unlike tmp_path."""
    with tempfile.TemporaryDirectory(prefix="hprofiler-perfmap-") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def test_another_users_jvm(java17, start, open_folder):
    shutil.copytree(library.java_classes(), open_folder / "classes")
    agent = Path(shutil.copy(library.path(), open_folder))
    nobody = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    program = start(java17, "Inlined", classes=open_folder / "classes", prefix=nobody)
    path = open_folder / "map"
    path.touch(mode=0o600)
    assert library.load(program.pid, str(path), agent) == 102
    os.chown(path, NOBODY, NOBODY)
    assert library.load(program.pid, str(path), agent) == 0
    assert map_file.read(path).codes


def test_failures_leave_the_jvm_as_it_was(java, start, take, tmp_path, small):
    program = start(java, "Inlined")
    take(program.pid)
    before = Holdings.of(program.pid)
    (tmp_path / "target").touch()
    (tmp_path / "link").symlink_to(tmp_path / "target")
    (small / "map").touch()
    assert library.load(program.pid, f"{tmp_path}/missing") == 102
    assert library.load(program.pid, f"{tmp_path}/link") == 102
    assert library.load(program.pid, "") == 101
    assert library.load(program.pid, f"{small}/map") == 110
    assert "file system is full" in (small / "map").read_text()
    subprocess.run(["mount", "-o", "remount,ro", str(small)], check=True)
    assert library.load(program.pid, f"{small}/map") == 102
    unlimited = resource.prlimit(program.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(program.pid, resource.RLIMIT_FSIZE, (4096, unlimited[1]))
    assert library.load(program.pid, str(tmp_path / "target")) == 110, "not a signal"
    resource.prlimit(program.pid, resource.RLIMIT_FSIZE, unlimited)
    assert Holdings.of(program.pid).files == before.files
    take(program.pid)
    assert program.finish() == 0
