"""Makes perf recordings for tests, and reads them with perf for comparison."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import NamedTuple

from tests.exact.jfr_recordings import stacks
from tests.exact.peers import needs

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = Path(__file__).parent / "programs"
FIELDS = "comm,pid,tid,time,event,ip,sym,dso"
CLOCK = ["-F", "499", "-e", "cpu-clock"]
GCC = ["gcc", "-O1", "-fno-omit-frame-pointer"]
GXX = ["g++", "-O1", "-fno-omit-frame-pointer"]
RUSTC = ["rustc", "-O", "-C", "force-frame-pointers=yes"]
DD = ["dd", "if=/dev/zero", "of=/dev/null", "bs=64k", "count=100000", "status=none"]
# Seconds for a second of CPU time on a busy machine.
LONGEST = 240


class Sample(NamedTuple):
    """One sample of `perf script`; frames are `address symbol (module)`, leaf first."""

    comm: str
    pid: str
    tid: str
    time: str
    event: str
    frames: Sequence[str]


def record(out: Path, options: Sequence[str], command: Sequence[str], piped: bool = False) -> Path:
    """Records a command with call chains. If `piped`, perf writes its format for pipes."""
    perf = [needs("perf"), "record", "-q", "-g", *options, "-o", "-" if piped else str(out), "--", *command]
    with out.open("wb") if piped else nullcontext(subprocess.DEVNULL) as stdout:
        subprocess.run(perf, check=True, stdout=stdout, timeout=LONGEST)
    return out


def compiled(folder: Path, compiler: Sequence[str], source: str) -> Path:
    """A program of `programs/`, with frame pointers."""
    program = folder / Path(source).stem
    subprocess.run(
        [needs(compiler[0]), *compiler[1:], "-o", str(program), str(PROGRAMS / source)], check=True
    )
    return program


def record_java(
    folder: Path, flag: str = "-XX:+PreserveFramePointer", seconds: int = 3, piped: bool = False
) -> tuple[Path, int]:
    """A recording of a JVM that wrote its perf map to /tmp, and its pid."""
    subprocess.run([needs("javac"), "-d", str(folder), str(PROGRAMS / "Deep.java")], check=True)
    out = folder / "java.data"
    command = [needs("java"), flag, "-cp", str(folder), "Deep"]
    jvm = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert jvm.stdout is not None and jvm.stdout.readline() == b"warm\n"
        record(out, [*CLOCK, "-p", str(jvm.pid)], ["sleep", str(seconds)], piped)
        subprocess.run([needs("jcmd"), str(jvm.pid), "Compiler.perfmap"], check=True, capture_output=True)
    finally:
        jvm.communicate(timeout=60)
    return out, jvm.pid


def remove_perf_maps(samples: Sequence[Sample]) -> None:
    """Remove the perf maps that JVMs left behind."""
    for pid in {sample.pid for sample in samples}:
        Path(f"/tmp/perf-{pid}.map").unlink(missing_ok=True)


def perf_script(recording: Path) -> str:
    """perf's text of a recording, without inlined functions from debug information."""
    script = subprocess.run(
        [needs("perf"), "script", "--no-inline", "-i", str(recording), "-F", FIELDS],
        check=True,
        capture_output=True,
        text=True,
        errors="replace",
    ).stdout
    return without_names_of_stubs(script)


def without_names_of_stubs(script: str) -> str:
    """perf before 6.3 may name stubs wrongly, in the order of their relocations."""
    return re.sub(r"(?m)^(\s+[0-9a-f]+) \S*@plt \(", r"\1 @plt (", script)


def periods(recording: Path) -> list[tuple[str, int]]:
    """The event and the period of each sample; perf prints no period if it is fixed."""
    command = [needs("perf"), "script", "-i", str(recording), "-F", "period,event", "-G"]
    run = subprocess.run(command, check=True, capture_output=True, text=True)
    lines = (line.split() for line in run.stdout.splitlines() if line.strip())
    return [(line[-1].rstrip(":"), int(line[0])) for line in lines]


def live(
    recording: Path, event: str, columns: str, pid: int | None = None
) -> tuple[dict[str, int], dict[str, int]]:
    """The streaming reader's result: stacks with the last value, and the printed statistics."""
    command = ["cargo", "run", "--quiet", "--release", "--package", "flamegraph", "--example", "perf_live"]
    command += ["--", str(recording), event, columns, *([str(pid)] if pid else [])]
    run = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True, errors="replace")
    said = {name: int(number) for name, number in re.findall(r"(\w+):? (\d+)", run.stderr)}
    return stacks(run.stdout.encode()), said


def parsed(script: str) -> list[Sample]:
    """The samples of a script's text."""
    samples: list[Sample] = []
    frames: list[str] | None = None
    for line in script.splitlines():
        if not line.strip():
            frames = None
        elif frames is not None:
            frames.append(line.strip())
        else:
            header = re.match(r"\s*(.*?)\s+(-?\d+)/(-?\d+)\s+(\d+\.\d+):\s+(\S+):\s*(.*)$", line)
            assert header, line
            *fields, single = header.groups()
            frames = [single] if single else []
            samples.append(Sample(*fields, frames))
    return samples
