"""The profile core beside its peers: merging a cluster, folded text, one picture, the wire, and readers.

Sizes are those of the promises; HPROFILER_BENCH_HOSTS (20) and HPROFILER_BENCH_ROUNDS (3) make it smaller or
more certain. Times are of whole commands, start-up included; memory is the largest process's peak. "Core" is
the work alone, inside a process that runs already: ours in Python's, jfr-converter in a JVM that has done it.
"""

from __future__ import annotations

import io
import os
import random
import shlex
import statistics
import subprocess
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from hprofiler._flamegraph import Profile
from tests.bench import core_cluster, core_recordings
from tests.bench.commands import COMMAND, Measured, in_turns
from tests.bench.core_cluster import STACKS
from tests.bench.table import Row
from tests.exact import jfr_recordings
from tests.exact.peers import inferno
from tests.timed_profile import BUCKET, timed_profile
from tests.timed_profile import Row as TimedRow

HOSTS = int(os.environ.get("HPROFILER_BENCH_HOSTS", "20"))
ROUNDS = int(os.environ.get("HPROFILER_BENCH_ROUNDS", "3"))
MANY = 5
SECONDS = 60
SAMPLES = 300 * 8 * SECONDS
"""Of eight busy processors at 300 Hz."""
NANOSECONDS_A_SAMPLE = 10_012_345.678
FLAMEGRAPH_PL = Path("/usr/share/perl5/Devel/NYTProf/flamegraph.pl")
PROGRAM = [COMMAND[0], "-m", "tests.bench.core_program"]
WARM_UPS = 10
Command = Sequence[str]


def compare(
    what: str, ours: Command, peers: Mapping[str, tuple[Command, float]]
) -> tuple[Row, Measured, list[Measured]]:
    """A row: ours beside peers, each of which must take at least so many times as long."""
    commands = {"ours": ours, **{name: command for name, (command, _) in peers.items()}}
    runs = in_turns(commands, ROUNDS)
    mine, theirs = runs.pop("ours"), list(runs.values())
    ratios = {name: run.seconds / mine.seconds for name, run in runs.items()}
    parts = [
        f"{name} {run.seconds:.2f} s: {ratios[name]:.1f} × "
        f"({run.cpu_seconds / mine.cpu_seconds:.1f} × the CPU time)"
        for name, run in runs.items()
    ]
    promised = ", ".join(f"{least:g} × faster than {name}" for name, (_, least) in peers.items())
    holds = all(ratios[name] >= least for name, (_, least) in peers.items())
    return Row(what, f"{mine.seconds:.2f} s; {', '.join(parts)}", promised, holds), mine, theirs


def merge() -> list[Row]:
    """Hosts' pprof files to a cluster's picture, profile and page, beside their text through inferno."""
    profiles, texts = core_cluster.messages(HOSTS), core_cluster.texts(HOSTS)
    what = f"{HOSTS} hosts' pprof → cluster SVG + pprof + viewer data"
    with tempfile.TemporaryDirectory() as folder:
        peers = {"cat and inferno-flamegraph": (_piped(texts), 10)}
        row, ours, (peer,) = compare(what, [*PROGRAM, "report", folder, *map(str, profiles)], peers)
    memory = ours.peak_bytes / peer.peak_bytes
    return [row, Row("the same: memory", f"{memory:.2f} × inferno's", "a quarter", memory <= 0.25)]


def merge_many() -> list[Row]:
    """The same for five times as many hosts: what grows is what there is more of, distinct stacks."""
    counts = [HOSTS, MANY * HOSTS]
    profiles = core_cluster.messages(counts[-1])
    with tempfile.TemporaryDirectory() as folder:
        commands = {str(n): [*PROGRAM, "report", folder, *map(str, profiles[:n])] for n in counts}
        few, many = in_turns(commands, ROUNDS).values()
    stacks = [STACKS // 2 * (1 + count) for count in counts]
    growth, distinct = many.seconds / few.seconds, stacks[1] / stacks[0]
    measured = f"{many.seconds:.2f} s, {growth:.1f} × the time of {HOSTS} for {distinct:.1f} × the stacks"
    memory = f"{many.peak_bytes / 2**20:.0f} MiB ({HOSTS} hosts: {few.peak_bytes / 2**20:.0f} MiB)"
    what = f"{counts[1]} hosts, the same"
    return [
        Row(f"{what}: time", measured, "grows with distinct stacks", growth < 1.25 * distinct),
        Row(f"{what}: memory", memory, "under 1 GB", many.peak_bytes < 10**9),
    ]


def categories() -> list[Row]:
    """What a cluster's work was, beside the merge of the same: 20 hosts have more than 1,000,000 nodes."""
    profiles = core_cluster.messages(HOSTS)
    command = [*PROGRAM, "work", str(ROUNDS), *map(str, profiles)]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    pairs = [tuple(map(float, line.split())) for line in printed.splitlines()]
    merged, summed = (statistics.median(times) for times in zip(*pairs, strict=True))
    measured = f"{summed:.3f} s, {summed / merged:.2f} × the merge ({merged:.2f} s)"
    return [
        Row(f"{HOSTS} hosts' cluster by category of work", measured, "less than the merge", summed < merged)
    ]


def folded() -> list[Row]:
    """Hosts' folded text to one picture."""
    texts = core_cluster.texts(HOSTS)
    size = sum(path.stat().st_size for path in texts)
    what = f"{HOSTS} hosts' folded text ({size / 1e9:.1f} GB) → cluster SVG"
    peers = {"cat and inferno-flamegraph": (_piped(texts), 2)}
    return [compare(what, _convert(texts, "picture.svg"), peers)[0]]


def svg() -> list[Row]:
    """One large text to one picture."""
    text = core_cluster.texts(1, 2 * STACKS)[0]
    peers: dict[str, tuple[Command, float]] = {
        "inferno-flamegraph": ([str(inferno("inferno-flamegraph")), str(text)], 1.5),
        "flamegraph.pl": (["perl", str(FLAMEGRAPH_PL), str(text)], 15),
    }
    return [compare(f"one folded file ({_megabytes(text)}) → SVG", _convert([text], "picture.svg"), peers)[0]]


def wire() -> list[Row]:
    """What crosses the network for one host, beside its folded text compressed."""
    text, pprof = core_cluster.texts(1)[0], core_cluster.messages(1)[0].stat().st_size

    def two_counts(line: bytes) -> bytes:
        """Samples, and nanoseconds scaled to measured CPU time, as the agent does after a timer."""
        stack, _, count = line.rpartition(b" ")
        return b"%s %d %d" % (stack, int(count), round(int(count) * NANOSECONDS_A_SAMPLE))

    profile = Profile.from_bytes(b"\n".join(map(two_counts, text.read_bytes().splitlines())))
    out = io.BytesIO()
    labels = {"host": "worker-001.example.com", "pid": "12345", "process": "executor 1"}
    profile.with_labels(labels).write(out, "compact")
    sent = len(out.getvalue())
    zstd = {}
    for level in (3, 19):
        command = ["zstd", f"-{level}", "-c", str(text)]
        zstd[level] = len(subprocess.run(command, check=True, capture_output=True).stdout)
    what = f"compact profile as sent ({STACKS:,} stacks, samples and CPU time), beside folded text (samples)"
    measured = f"{sent / 1e3:.0f} kB, " + ", ".join(
        f"{sent / size:.3f} × zstd -{level} ({size / 1e3:.0f} kB)" for level, size in zstd.items()
    )
    return [
        Row(what, measured, "under a fifth of zstd", sent / zstd[3] < 0.2),
        Row("pprof of the samples", f"{pprof / 1e3:.0f} kB, {pprof / zstd[3]:.3f} × zstd -3", "", None),
        _times(text),
    ]


def _times(text: Path) -> Row:
    """What the times of samples add. Real ones come in bursts; these are spread evenly, which is the most."""
    dice = random.Random(SAMPLES)
    pairs = [line.rpartition(" ") for line in text.read_text().splitlines()]
    stacks, weights = [stack for stack, _, _ in pairs], [int(count) for _, _, count in pairs]
    buckets = SECONDS * 1_000_000 // BUCKET
    chosen = dice.choices(stacks, weights, k=SAMPLES)
    rows = Counter((stack, dice.randrange(buckets)) for stack in chosen)
    timed = Profile.from_bytes(
        timed_profile(
            TimedRow(stack.split(";"), bucket, samples, (samples, 3_333_333 * samples))
            for (stack, bucket), samples in rows.items()
        )
    )
    sent = [io.BytesIO(), io.BytesIO()]
    timed.write(sent[0], "compact")
    timed.without_times().write(sent[1], "compact")
    more = (len(sent[0].getvalue()) - len(sent[1].getvalue())) / SAMPLES
    what = f"times of {SAMPLES:,} samples in {SECONDS} s on the wire ({len(set(chosen)):,} stacks)"
    return Row(what, f"{more:.2f} bytes a sample", "2 bytes", more <= 2)


def perf_script() -> list[Row]:
    """The text that `perf script` prints of a recording."""
    script = core_recordings.perf_script(core_recordings.perf_data())
    collapse = ["sh", "-c", f"{inferno('inferno-collapse-perf')} --all {script} > stacks.folded"]
    what, ours = (
        f"perf script text ({_megabytes(script)}) → folded",
        _convert([script], "stacks.folded", "--all"),
    )
    return [compare(what, ours, {"inferno-collapse-perf": (collapse, 1)})[0]]


def perf_data() -> list[Row]:
    """A perf.data file, which the peers can only read as text; what is inlined is looked for, too."""
    recording = core_recordings.perf_data()
    text = core_recordings.perf_script(recording)
    peers = (
        f"perf script -i {recording} 2>/dev/null | {inferno('inferno-collapse-perf')} --all > stacks.folded"
    )
    with text.open("rb") as lines:
        samples = sum(line == b"\n" for line in lines)  # an empty line stands behind each
    what = f"perf.data ({samples:,} Java samples, {_megabytes(recording)}) → folded, command"
    ours, name = (
        _convert([recording], "stacks.folded", "--all"),
        f"perf script ({_megabytes(text)}) and inferno",
    )
    with core_recordings.perf_map(recording):
        row, _, (peer,) = compare(what, ours, {name: (["sh", "-c", peers], 5)})
        core = _inside([*PROGRAM, "read", str(ROUNDS), str(recording), "kernel", "jit"])
    faster = peer.seconds / core
    return [row, Row("the same, core", f"{core:.3f} s: {faster:.1f} ×", "10 × faster", faster >= 10)]


def jfr() -> list[Row]:
    """async-profiler's recording; its converter with a JVM's start, and warm."""
    recording = core_recordings.jfr()
    jar = jfr_recordings.artifact(jfr_recordings.CONVERTER)
    options = ["--cpu", "-o", "collapsed", str(recording)]
    theirs = ["java", "-jar", str(jar), *options, "stacks.folded"]
    what = f"JFR ({_megabytes(recording)}) → folded, cpu, command"
    ours = _convert([recording], "stacks.folded", "--value", "samples")
    row, _, _ = compare(what, ours, {"jfr-converter 4.2": (theirs, 3)})
    core = _inside([*PROGRAM, "read", str(ROUNDS), str(recording)])
    places, rounds = f"{jar}:{core_recordings.classes()}", [str(WARM_UPS), str(ROUNDS)]
    warm = _inside(["java", "-cp", places, "ConvertTimes", *rounds, *options, "/dev/null"])
    measured = (
        f"{core:.3f} s; jfr-converter in a JVM warmed up {WARM_UPS} × {warm:.3f} s: {warm / core:.1f} ×"
    )
    timed = [_inside([*PROGRAM, "read", str(3 * ROUNDS), str(recording), *more]) for more in ([], ["times"])]
    ratio = timed[1] / timed[0]
    return [
        row,
        Row("the same, core", measured, "1.5 × faster", warm / core >= 1.5),
        Row("the same, when samples were taken too", f"{ratio:.2f} × the time", "under 1.15 ×", ratio < 1.15),
    ]


def _convert(sources: Sequence[Path], output: str, *options: str) -> list[str]:
    return [*COMMAND, "convert", *map(str, sources), *options, "-o", output]


def _piped(texts: Sequence[Path]) -> list[str]:
    """What a user of inferno types for several files."""
    files = shlex.join(map(str, texts))
    return ["sh", "-c", f"cat {files} | {inferno('inferno-flamegraph')} > picture.svg"]


def _inside(command: Command) -> float:
    """The median of the seconds that a program prints."""
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return statistics.median(map(float, printed.split()))


def _megabytes(path: Path) -> str:
    return f"{path.stat().st_size / 1e6:.0f} MB"
