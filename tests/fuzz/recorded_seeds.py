"""Where fuzzing of the core starts: golden texts, and what our writers and this machine's tools write."""

from __future__ import annotations

import gzip
import shutil
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from hprofiler._flamegraph import Profile
from tests.fuzz import kept, perf_streams

CHECKOUT = Path(__file__).resolve().parents[2]
Seed = tuple[str, str, bytes]
"""Of which target, a name, the bytes."""


def by_hand() -> Iterator[Seed]:
    for path in sorted((CHECKOUT / "tests/golden/flamegraph").glob("*.folded")):
        yield from written(path.stem, path.read_bytes())
    yield from written("small", SMALL)
    yield "folded", "two-counts", b"a;b 1 2\na 3 4\n"
    yield from perf_script_texts()
    yield "perf_live", "asked", perf_streams.with_what_is_asked()
    yield from maps_of_code()
    for number, recording in enumerate(kept.read(Path(__file__).with_name("made"), "jfr")):
        yield "jfr", f"made-{number}", recording
        yield "recording", f"made-{number}", recording
    yield "symbols", "kallsyms", b"ffffffff81000000 T _text\nffffffff81000040 t start_64\tm [a]\n"
    yield "symbols", "map", b"7f10 20 Interpreter\n7f18 30 over\n7f30 10 int a.B.c(int)\n"
    yield "mangled", "names", NAMES
    yield "rules", "ours", (CHECKOUT / "flamegraph/src/ops/names.rules").read_bytes()
    yield "rules", "growing", b"[names]\n" + b"() => aaaa\n" * 20
    yield "rules", "colours", b"a.B.c_[j]->rgb(1,2,3)\nb->c->rgb(4, 5, 6)\n"


def by_tools() -> Iterator[Seed]:
    """What programs of this machine write."""
    yield from packed_by_zstd()
    with tempfile.TemporaryDirectory() as folder:
        yield from perf_recordings(Path(folder))
        yield from files_of_symbols(Path(folder))
        yield from jfr_recordings(Path(folder))


SMALL = b"main;a.B.c_[j];read_[k] 3\nmain;a.B.c_[0] 4\n"
NAMES = b"""\
_ZNK2ns1VltERKS0_
_ZThn8_N2ns1V3getEi
_ZN1bIiJEE1fEv
_ZN1aILm256ELj8ELln5EE1fEv
_ZN12_GLOBAL__N_13hotIdEElT_RSt3mapINSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEES1_EE
_Z1fI1pIiiES0_IS1_S1_ES0_IS2_S2_EEvv
_ZN3std2rt10lang_start28_$u7b$$u7b$closure$u7d$$u7d$17h0123456789abcdefE
_RNvC1m4spin.cold
_RINvNtC3std3mem8align_ofNtNtC3std3mem12DiscriminantE
_ZNE
"""


def written(name: str, text: bytes) -> Iterator[Seed]:
    profile = Profile.from_bytes(text, "folded").with_labels({"host": "h"})
    yield "folded", name, text
    yield "pprof", name, gzip.decompress(profile.to_pprof())
    yield "detected", f"{name}.pb.gz", profile.to_pprof()
    for target, suffix in (("speedscope", ".speedscope.json"), ("compact", ".hpt")):
        with tempfile.NamedTemporaryFile(suffix=suffix) as file:
            profile.write(file.name)
            content = Path(file.name).read_bytes()
        yield target, name, content
        yield "detected", f"{name}{suffix}", content


def packed_by_zstd() -> Iterator[Seed]:
    zstd = shutil.which("zstd")
    if zstd:
        packed = subprocess.run([zstd, "-c"], input=SMALL, check=True, capture_output=True).stdout
        yield "detected", "small.zst", packed


def perf_script_texts() -> Iterator[Seed]:
    from textwrap import dedent

    from tests.exact.test_perf_script_golden import CASES

    for number, case in enumerate(CASES):
        yield "perf_script", f"case-{number}", dedent(case.text).lstrip("\n").encode()


def perf_recordings(folder: Path) -> Iterator[Seed]:
    perf = shutil.which("perf")
    if perf is None:
        print("no perf on this machine: no seeds of perf.data", file=sys.stderr)
        return
    shapes: dict[str, list[str]] = {
        "plain": ["-g"],
        "events": ["-g", "-e", "cpu-clock,page-faults"],
        "addresses": ["-d", "--sample-cpu"],
    }
    work = ["sh", "-c", "i=0; while [ $i -lt 9000 ]; do i=$((i+1)); done"]
    for name, options in shapes.items():
        path = folder / f"{name}.data"
        command = [perf, "record", "-q", "-F", "500", *options, "-o", str(path), "--", *work]
        if subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0:
            yield "perf_data", name, path.read_bytes()
    piped = subprocess.run([perf, "record", "-q", "-g", "-o", "-", "--", *work], capture_output=True)
    if piped.returncode == 0:
        yield "perf_data", "pipe", piped.stdout
        yield "perf_live", "pipe", piped.stdout
    switches = ["-e", "context-switches/period=1/", "--switch-events"]
    waits = subprocess.run(
        [perf, "record", "-q", "-g", *switches, "-o", "-", "--", "sleep", "0.1"], capture_output=True
    )
    if waits.returncode == 0:
        yield "perf_live", "waits", waits.stdout


def files_of_symbols(folder: Path) -> Iterator[Seed]:
    """A small program, with and without its full table."""
    compiler = shutil.which("cc")
    if compiler is None:
        print("no C compiler on this machine: no seeds of ELF", file=sys.stderr)
        return
    source = folder / "seed.c"
    source.write_text('#include <stdio.h>\nint main(void) { return puts(""); }\n')
    for name, options in {"program": [], "stripped": ["-s"], "relocatable": ["-c"]}.items():
        path = folder / name
        subprocess.run([compiler, *options, "-o", str(path), str(source)], check=True)
        yield "symbols", name, path.read_bytes()


def maps_of_code() -> Iterator[Seed]:
    """A small map of each kind; `agents/perfmap/FORMAT.md`."""
    yield "jit_map", "text", b"7f10 20 Interpreter\n7f30 10 int a.B.c(int)\n"
    records = [
        (1, b"a/B.c"),
        (1, b"a/B.d"),
        (2, struct.pack("<QIIIIHHIIHHI", 64, 32, 0, 2, 8, 0, 1, 0, 16, 1, 1, 1)),
    ]
    records += [
        (3, struct.pack("<QII", 128, 16, 1)),
        (4, struct.pack("<Q", 256)),
        (5, struct.pack("<5Q", 2, 1, 1, 1, 0)),
    ]
    body = b"".join(struct.pack("<II", kind, len(content)) + content for kind, content in records)
    yield "jit_map", "binary", b"HPROFMAP" + struct.pack("<II", 1, 62) + body


def jfr_recordings(folder: Path) -> Iterator[Seed]:
    java = shutil.which("java")
    if java is None:
        print("no java on this machine: no seeds of JFR", file=sys.stderr)
        return
    sampling = ["jdk.ExecutionSample#enabled=true", "jdk.ExecutionSample#period=10ms"]
    path = folder / "jdk.jfr"
    recording = ",".join(["settings=none", *(f"+{setting}" for setting in sampling), f"filename={path}"])
    command = [java, f"-XX:StartFlightRecording:{recording}", "-version"]
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    if path.exists():
        for target in ("jfr", "recording"):
            yield target, "jdk", path.read_bytes()
