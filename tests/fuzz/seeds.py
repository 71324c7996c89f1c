"""Where fuzzing starts: the corpora in git, files of this repository, and what this machine's tools write."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.fuzz import kept
from tests.fuzz.crates import CHECKOUT

Seed = tuple[str, str, bytes]
"""Target, name, bytes."""


def plant(folder: Path, corpus_of: Mapping[str, Path]) -> None:
    """Writes the seeds of each target into a folder of its own."""
    for target, corpus in corpus_of.items():
        (folder / target).mkdir(parents=True, exist_ok=True)
        for number, data in enumerate(kept.read(corpus, target)):
            (folder / target / f"kept-{number}").write_bytes(data)
    for target, name, data in (*from_repository(), *from_tools()):
        (folder / target / name).write_bytes(data)


def from_repository() -> Iterator[Seed]:
    for path in sorted((CHECKOUT / "selectors").glob("*.yaml")):
        yield "selector_file", path.name, path.read_bytes()
    for path in sorted((CHECKOUT / "tests/golden/flamegraph").glob("*.folded")):
        yield "folded", path.stem, path.read_bytes()
    for path in sorted((CHECKOUT / "flamegraph/src").rglob("*.rules")):
        yield "rules", path.name, path.read_bytes()


def from_tools() -> Iterator[Seed]:
    for name in ("stat", "status", "cgroup"):
        yield "proc_texts", name, Path(f"/proc/self/{name}").read_bytes()[:6000]
    with tempfile.TemporaryDirectory() as folder:
        yield from _by_perf(Path(folder))
        yield from _by_compiler(Path(folder))
        yield from _by_java(Path(folder))


def _missing(*programs: str) -> bool:
    lacking = [program for program in programs if shutil.which(program) is None]
    if lacking:
        print(f"not on this machine, so no seeds of it: {', '.join(lacking)}", file=sys.stderr)
    return bool(lacking)


def _by_perf(folder: Path) -> Iterator[Seed]:
    if _missing("perf"):
        return
    work = ["sh", "-c", "i=0; while [ $i -lt 9000 ]; do i=$((i+1)); done"]
    switches = ["-g", "-e", "context-switches/period=1/", "--switch-events"]
    to_file = {
        "plain": ["-g"],
        "events": ["-g", "-e", "cpu-clock,page-faults"],
        "data": ["-d", "--sample-cpu"],
    }
    for name, options in to_file.items():
        path = folder / f"{name}.data"
        record = ["perf", "record", "-q", "-F", "500", *options, "-o", str(path), "--", *work]
        if subprocess.run(record, capture_output=True).returncode == 0:
            yield "perf_data", name, path.read_bytes()
    for name, options, command in (("pipe", ["-g"], work), ("waits", switches, ["sleep", "0.1"])):
        record = ["perf", "record", "-q", *options, "-o", "-", "--", *command]
        piped = subprocess.run(record, capture_output=True)
        if piped.returncode == 0:
            yield "perf_data", name, piped.stdout
            yield "perf_live", name, piped.stdout
            yield "answers", name, piped.stdout[:5000]


def _by_compiler(folder: Path) -> Iterator[Seed]:
    """A small program with its symbols, without, and with the name of a file that has them."""
    if _missing("cc", "objcopy"):
        return
    source, program = folder / "seed.c", folder / "program"
    source.write_text("int main(void) { return 0; }\n")
    subprocess.run(
        ["cc", "-nostdlib", "-e", "main", "-Wl,--build-id", "-o", str(program), str(source)], check=True
    )
    whole = program.read_bytes()
    subprocess.run(["objcopy", "--strip-all", f"--add-gnu-debuglink={source}", str(program)], check=True)
    for name, data in (("whole", whole), ("stripped", program.read_bytes())):
        yield "symbols", name, data


def _by_java(folder: Path) -> Iterator[Seed]:
    if _missing("java"):
        return
    path = folder / "jdk.jfr"
    settings = "settings=none,+jdk.ExecutionSample#enabled=true,+jdk.ExecutionSample#period=10ms"
    command = ["java", f"-XX:StartFlightRecording:{settings},filename={path}", "-version"]
    subprocess.run(command, capture_output=True)
    if path.exists():
        for target in ("jfr", "recording"):
            yield target, "jdk", path.read_bytes()
