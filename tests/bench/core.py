"""The profile core beside its peers: merging a cluster, folded text, one picture, the size on the wire.

Sizes are those of the promises; HPROFILER_BENCH_HOSTS (20) and HPROFILER_BENCH_ROUNDS (3) make it smaller or
more certain. Times are of whole commands, start-up included; memory is the largest process's peak.
"""

from __future__ import annotations

import io
import os
import shlex
import statistics
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.bench import core_cluster
from tests.bench.commands import COMMAND, Measured, measure
from tests.bench.core_cluster import STACKS
from tests.bench.table import Row
from tests.exact.peers import inferno

HOSTS = int(os.environ.get("HPROFILER_BENCH_HOSTS", "20"))
ROUNDS = int(os.environ.get("HPROFILER_BENCH_ROUNDS", "3"))
MANY = 5
NANOSECONDS_A_SAMPLE = 10_012_345.678
FLAMEGRAPH_PL = Path("/usr/share/perl5/Devel/NYTProf/flamegraph.pl")
PROGRAM = [COMMAND[0], "-m", "tests.bench.core_program"]


def merge() -> list[Row]:
    """Hosts' pprof files to a cluster's picture, profile and page, beside their text through inferno."""
    profiles, texts = core_cluster.messages(HOSTS), core_cluster.texts(HOSTS)
    with tempfile.TemporaryDirectory() as folder:
        runs = in_turns({"ours": [*PROGRAM, folder, *map(str, profiles)], "inferno": _piped(texts)})
    ours, peer = runs["ours"], runs["inferno"]
    memory = ours.peak_bytes / peer.peak_bytes
    return [
        Row(
            f"{HOSTS} hosts' pprof → cluster SVG + pprof + viewer data",
            beside(ours, {"cat and inferno-flamegraph": peer}),
            "10 × faster",
            peer.seconds / ours.seconds >= 10,
        ),
        Row("the same: memory", f"{memory:.2f} × inferno's", "a quarter", memory <= 0.25),
    ]


def merge_many() -> list[Row]:
    """The same for five times as many hosts: what grows is what there is more of, distinct stacks."""
    counts = [HOSTS, MANY * HOSTS]
    profiles = core_cluster.messages(counts[-1])
    with tempfile.TemporaryDirectory() as folder:
        runs = in_turns({str(n): [*PROGRAM, folder, *map(str, profiles[:n])] for n in counts})
    few, many = (runs[str(count)] for count in counts)
    stacks = [STACKS // 2 * (1 + count) for count in counts]
    growth, distinct = many.seconds / few.seconds, stacks[1] / stacks[0]
    measured = f"{many.seconds:.2f} s, {growth:.1f} × the time of {HOSTS} for {distinct:.1f} × the stacks"
    memory = f"{many.peak_bytes / 2**20:.0f} MiB ({HOSTS} hosts: {few.peak_bytes / 2**20:.0f} MiB)"
    return [
        Row(
            f"{counts[1]} hosts, the same: time",
            measured,
            "grows with distinct stacks",
            growth < 1.25 * distinct,
        ),
        Row(f"{counts[1]} hosts, the same: memory", memory, "under 1 GB", many.peak_bytes < 10**9),
    ]


def folded() -> list[Row]:
    """Hosts' folded text to one picture."""
    texts = core_cluster.texts(HOSTS)
    size = sum(path.stat().st_size for path in texts)
    runs = in_turns({"ours": _convert(texts), "inferno": _piped(texts)})
    return [
        Row(
            f"{HOSTS} hosts' folded text ({size / 1e9:.1f} GB) → cluster SVG",
            beside(runs["ours"], {"cat and inferno-flamegraph": runs["inferno"]}),
            "2 × faster",
            runs["inferno"].seconds / runs["ours"].seconds >= 2,
        )
    ]


def svg() -> list[Row]:
    """One large text to one picture, its lines in order and shuffled."""
    text = core_cluster.texts(1, 2 * STACKS)[0]
    size = text.stat().st_size
    commands = {
        "ours": _convert([text]),
        "inferno": [str(inferno("inferno-flamegraph")), str(text)],
        "perl": ["perl", str(FLAMEGRAPH_PL), str(text)],
    }
    runs = in_turns(commands)
    ours, peers = runs["ours"], {"inferno-flamegraph": runs["inferno"], "flamegraph.pl": runs["perl"]}
    faster = [peer.seconds / ours.seconds for peer in peers.values()]
    return [
        Row(
            f"one folded file ({size / 1e6:.0f} MB) → SVG",
            beside(ours, peers),
            "1.5 × faster than inferno, 15 × than flamegraph.pl",
            faster[0] >= 1.5 and faster[1] >= 15,
        )
    ]


def wire() -> list[Row]:
    """What crosses the network for one host, beside its folded text compressed."""
    text, pprof = core_cluster.texts(1)[0], core_cluster.messages(1)[0].stat().st_size
    sent = len(_as_sent(text))
    zstd = {level: _zstd(text, level) for level in (3, 19)}
    what = f"compact profile as sent ({STACKS:,} stacks, samples and CPU time), beside folded text (samples)"
    measured = f"{sent / 1e3:.0f} kB, " + ", ".join(
        f"{sent / size:.3f} × zstd -{level} ({size / 1e3:.0f} kB)" for level, size in zstd.items()
    )
    ratio = f"{pprof / 1e3:.0f} kB, {pprof / zstd[3]:.3f} × zstd -3"
    return [
        Row(what, measured, "under a fifth of zstd", sent / zstd[3] < 0.2),
        Row("pprof of the samples", ratio, "", None),
    ]


def _as_sent(text: Path) -> bytes:
    """The bytes the agent sends of these stacks: samples, and what they stand for in nanoseconds.

    The second column is scaled to measured CPU time, as the agent does where a timer took the samples.
    """
    from hprofiler._flamegraph import Profile

    def two_counts(line: bytes) -> bytes:
        stack, _, count = line.rpartition(b" ")
        return b"%s %d %d" % (stack, int(count), round(int(count) * NANOSECONDS_A_SAMPLE))

    lines = text.read_bytes().splitlines()
    profile = Profile.from_bytes(b"\n".join(map(two_counts, lines)))
    labels = {"host": "worker-001.example.com", "pid": "12345", "process": "executor 1"}
    out = io.BytesIO()
    profile.with_labels(labels).write(out, "compact")
    return out.getvalue()


def _zstd(text: Path, level: int) -> int:
    command = ["zstd", f"-{level}", "-c", str(text)]
    return len(subprocess.run(command, check=True, capture_output=True).stdout)


def in_turns(commands: dict[str, Sequence[str]]) -> dict[str, Measured]:
    """Runs commands in turns, once to warm up; the median of each figure."""
    runs: dict[str, list[Measured]] = {name: [] for name in commands}
    for turn in range(ROUNDS + 1):
        for name, command in commands.items():
            measured = measure(command)
            if turn:
                runs[name].append(measured)
    return {name: _median(measured) for name, measured in runs.items()}


def _median(runs: Sequence[Measured]) -> Measured:
    def middle(figure: Callable[[Measured], float]) -> float:
        return statistics.median(map(figure, runs))

    return Measured(
        middle(lambda run: run.seconds),
        int(middle(lambda run: run.peak_bytes)),
        middle(lambda run: run.cpu_seconds),
    )


def _convert(texts: Sequence[Path]) -> list[str]:
    return [*COMMAND, "convert", *map(str, texts), "-o", "picture.svg"]


def _piped(texts: Sequence[Path]) -> list[str]:
    """What a user of inferno types for several files."""
    files = shlex.join(map(str, texts))
    return ["sh", "-c", f"cat {files} | {inferno('inferno-flamegraph')} > picture.svg"]


def beside(ours: Measured, peers: dict[str, Measured]) -> str:
    """Ours, and for each peer how much longer it takes; by CPU time in brackets."""
    parts = [
        f"{name} {peer.seconds:.2f} s: {peer.seconds / ours.seconds:.1f} × "
        f"({peer.cpu_seconds / ours.cpu_seconds:.1f} × the CPU time)"
        for name, peer in peers.items()
    ]
    return f"{ours.seconds:.2f} s; {', '.join(parts)}"
