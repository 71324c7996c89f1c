"""Time beyond the sampling itself, and the coordinator's memory: three lab hosts, then up to fifty."""

from __future__ import annotations

import shutil
import statistics
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.bench.commands import COMMAND, Measured, measure
from tests.bench.table import Row
from tests.burners.burner import Burner
from tests.lab.hosts import Host, Lab, Plan, default_plans

SECONDS = 3
ROUNDS = 3
SMALL = ["-Xmx24m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
LOOPBACK_PORT = 2222
MARK = "bench-job"


def three_hosts() -> list[Row]:
    with _lab(default_plans(3)) as lab, _one_jvm_each(lab, load=0.2):
        names = list(lab.hosts)[1:]
        run(lab, names)  # the first run pushes the agent
        extra = statistics.median(run(lab, names).seconds - SECONDS for _ in range(ROUNDS))
        asked = statistics.median(ask(lab, names).seconds for _ in range(ROUNDS))
    measured = f"{extra:.2f} s (median of {ROUNDS})"
    return [
        Row("beyond the sampling time, 3 hosts, second run", measured, "under 2 s", extra < 2),
        Row("`hprofiler doctor`, 3 hosts", f"{asked:.2f} s (median of {ROUNDS})", "under 3 s", asked < 3),
    ]


def fifty_hosts() -> list[Row]:
    """Time for fifty hosts, and memory for five, twenty-five and fifty."""
    with _lab(_loopback_plans(50)) as lab, _one_jvm_each(lab, load=0.01, options=SMALL):
        names = list(lab.hosts)[1:]
        run(lab, names)
        runs: dict[int, list[Measured]] = {count: [] for count in (5, 25, 50)}
        for _ in range(ROUNDS):
            for count, measured in runs.items():
                measured.append(run(lab, names[:count]))
    extra = {count: statistics.median(one.seconds for one in runs[count]) - SECONDS for count in runs}
    peak = {count: statistics.median(one.peak_bytes for one in runs[count]) / 2**20 for count in runs}
    growth = peak[50] / peak[5]
    return [
        Row(
            "beyond the sampling time, 50 hosts, second run",
            f"{extra[50]:.2f} s (25 hosts: {extra[25]:.2f} s, 5 hosts: {extra[5]:.2f} s)",
            "under 10 s",
            extra[50] < 10,
        ),
        Row(
            "coordinator's peak memory, 5 / 25 / 50 hosts",
            f"{peak[5]:.0f} / {peak[25]:.0f} / {peak[50]:.0f} MiB ({growth:.2f} ×)",
            "flat (50 hosts under 1.5 × 5 hosts)",
            growth < 1.5,
        ),
    ]


def run(lab: Lab, names: Sequence[str]) -> Measured:
    """One run of the main job over these hosts."""
    command = [*COMMAND, "-f", "99", "-t", str(SECONDS), "-j", MARK, "-h", ",".join(names), "--user", "root"]
    return measure(lab.coordinator(command), {"HOME": str(lab.home())})


def ask(lab: Lab, names: Sequence[str]) -> Measured:
    """One doctor over these hosts, for all that a run may ask for."""
    events = ["-e", "cpu,alloc,lock,wall"]
    command = [*COMMAND, "doctor", *events, "-j", MARK, "-h", ",".join(names), "--user", "root"]
    return measure(lab.coordinator(command), {"HOME": str(lab.home())})


def _loopback_plans(count: int) -> list[Plan]:
    """Hosts that share the coordinator's network: each its own sshd on a loopback address."""
    shared = [Plan(f"n{n:02}", f"127.0.1.{n}", LOOPBACK_PORT, "coord") for n in range(1, count + 1)]
    return [Plan("coord", "10.77.0.10"), *shared]


@contextmanager
def _lab(plans: Sequence[Plan]) -> Iterator[Lab]:
    folder = Path(tempfile.mkdtemp(prefix="hprofiler-bench-"))
    lab = Lab(folder, plans, tied=True)
    try:
        yield lab.up()
    finally:
        lab.down()
        shutil.rmtree(folder)


@contextmanager
def _one_jvm_each(lab: Lab, load: float, options: Sequence[str] = ()) -> Iterator[None]:
    hosts = list(lab.hosts.values())[1:]
    with ExitStack() as stack:
        with ThreadPoolExecutor(4) as pool:
            for burner in pool.map(lambda host: _burner(host, load, options), hosts):
                stack.callback(burner.kill)
        yield


def _burner(host: Host, load: float, options: Sequence[str]) -> Burner:
    return Burner(wrap=lambda argv: host.command(argv, "yarn"), load=load, options=options, extra=[MARK])
