"""Categories of work beside the truth: a program that says how much CPU time each kind of its work had."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest

from hprofiler.runfolder.metrics_file import read_metrics
from tests.contract.agent_driver import running
from tests.lab.spark import logs
from tests.lab.yarn import software
from tests.lab.yarn.cluster import OPENED

pytestmark = [pytest.mark.nightly, pytest.mark.timeout(600)]

SOURCE = Path(__file__).parent / "categories" / "CategoryBurner.java"
TURNS = SOURCE.with_name("Turns.java")
SECONDS = 20
POINTS = 0.03
OF_JVM = ("gc", "jit", "kernel-memory", "kernel-files", "kernel-scheduling", "kernel-network", "kernel-other")
"""What the program's work causes, but does not do itself."""


BY_LIBRARIES = {
    "data": ["scan", "records", "xml", "json", "serialization"],
    "bytes": ["compression", "hashes", "crypto", "copies", "sort"],
    "text": ["strings", "dates", "formatting", "logging", "regex-compile"],
    "others": ["network", "big-numbers", "stack-traces", "application"],
}


def test_shares_are_those_of_the_program() -> None:
    made = software.software()
    jar = software.compiled("categories", [SOURCE, TURNS], made.spark)
    check_shares([str(made.java_home / "bin" / "java"), "-cp", f"{jar}:{made.spark}/*", "CategoryBurner"])


@pytest.mark.parametrize("kinds", BY_LIBRARIES.values(), ids=BY_LIBRARIES)
def test_shares_of_libraries_are_those_of_the_program(kinds: list[str]) -> None:
    made, jars = software.software(), logs.spark_3().home / "jars"
    jar = software.compiled("library-burner", [SOURCE.with_name("LibraryBurner.java"), TURNS], jars)
    java = [str(made.java_home / "bin" / "java"), *OPENED]
    check_shares([*java, "-cp", f"{jar}:{jars}/*", "LibraryBurner", *kinds])


def check_shares(command: list[str]) -> None:
    """The shares of a program that does its work in turns, and says how long each kind took."""
    java, *rest = command
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with running(java, "-Xmx300m", "-XX:+UseSerialGC", *rest, **pipes) as burner:
        assert burner.stdout.readline() == "ready\n"
        before = spent(burner)
        found = categories(burner.pid)
        truth = spent(burner) - before
    whole = sum(count for name, count in found.items() if name not in OF_JVM)
    found["scan"] += found.pop("write", 0)  # Parquet is written and read
    shares = {name: (found[name] / whole, time / truth.total()) for name, time in truth.items()}
    print({name: f"{share:.1%} of {true:.1%}" for name, (share, true) in shares.items()}, found)
    for name, (share, true) in shares.items():
        assert share == pytest.approx(true, abs=POINTS), (name, found)


THREADS_OF = {"gc": ("VM Thread",), "jit": ("C1 Compiler", "C2 Compiler")}
"""With the serial collector, whose work the VM's thread does itself."""


@pytest.mark.parametrize(("category", "published"), [("gc", "gc_"), ("jit", "jit_us")])
def test_collectors_and_compilers_are_beside_what_the_jvm_publishes(category: str, published: str) -> None:
    """CPU time by threads is the truth. The JVM publishes how long collections and compilations lasted, which
    is the same only while these threads need not wait for a processor."""
    java = software.software().java_home / "bin" / "java"
    jar = software.compiled("jvm-burner", [SOURCE.with_name("JvmBurner.java")], Path("/"))
    options = ["-Xmx600m", "-XX:+UseSerialGC", "-XX:-UseDynamicNumberOfCompilerThreads", "-Xbatch"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with running(str(java), *options, "-cp", str(jar), "JvmBurner", category, **pipes) as burner:
        assert burner.stdout.readline() == "ready\n"
        begin, before = time.monotonic(), scheduled(burner.pid)
        with tempfile.TemporaryDirectory() as folder:
            event = recorded(burner.pid, folder)
            (file,) = Path(folder).glob("run/hosts/*/metrics.json.gz")
            metrics = read_metrics(file)
        seconds, after = time.monotonic() - begin, scheduled(burner.pid)
    taken = {name: (cpu - before[name][0], wait - before[name][1]) for name, (cpu, wait) in after.items()}
    of_threads = [times for name, times in taken.items() if name.startswith(THREADS_OF[category])]
    whole = sum(cpu for cpu, _ in taken.values())
    cpu, waited = (sum(times) for times in zip(*of_threads, strict=True))
    share = event["work"]["categories"][category] / sum(event["work"]["categories"].values())
    assert share == pytest.approx(cpu / whole, abs=POINTS), taken
    micros = sum(
        sum(one.values[1:]) for one in metrics.series if one.of == "jvm" and one.name.startswith(published)
    )
    lasted = micros / sum(metrics.time[1:]) * seconds
    text = (
        f"{category} {share:.1%}, threads {cpu / whole:.1%}, published {lasted:.1f} s, waited {waited:.1f} s"
    )
    print(f"{text}, CPU {whole:.1f} s")
    if waited < 0.01 * seconds:
        assert share == pytest.approx(lasted / whole, abs=POINTS), taken


def scheduled(pid: int) -> dict[str, tuple[float, float]]:
    """Seconds of CPU time, and of waiting for a processor, by name of its threads. The attach listener is not
    there: it works for hprofiler."""
    found: dict[str, tuple[float, float]] = defaultdict(lambda: (0.0, 0.0))
    for task in Path(f"/proc/{pid}/task").iterdir():
        name = (task / "comm").read_text().strip()
        cpu, wait, _ = (int(number) / 1e9 for number in (task / "schedstat").read_text().split())
        if name != "Attach Listener":
            found[name] = (found[name][0] + cpu, found[name][1] + wait)
    return found


def test_little_of_sql_is_unknown() -> None:
    """Queries like those of TPC-H, for which no rule was made."""
    made, jars = software.software(), logs.spark_3().home / "jars"
    jar = software.compiled("sql-burner", [SOURCE.with_name("SqlBurner.java")], jars)
    java = [
        str(made.java_home / "bin" / "java"),
        *OPENED,
        *("-Xmx1g", "-cp", f"{jar}:{jars}/*", "SqlBurner"),
    ]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
    with running(*java, **pipes) as burner:
        assert any(line == "ready\n" for line in burner.stdout)
        found = categories(burner.pid)
    print({name: f"{count / found.total():.1%}" for name, count in found.most_common()})
    assert found["other"] < 0.15 * found.total(), found
    assert found["scan"] > 0 and found["aggregate"] > 0 and found["join"] > 0


def categories(pid: int) -> Counter[str]:
    """Samples of its CPU time by category, in a recording."""
    with tempfile.TemporaryDirectory() as folder:
        return Counter(recorded(pid, folder)["work"]["categories"])


def recorded(pid: int, folder: str) -> dict[str, Any]:
    """The event of a recording, whose run folder is `run` there."""
    target = ["-j", f"pid:{pid}", "-f", "500", "-t", str(SECONDS), "-o", f"{folder}/run"]
    command = [sys.executable, "-m", "hprofiler", *target, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    (event,) = json.loads(done.stdout)["events"]
    return event


def spent(burner) -> Counter[str]:
    """Nanoseconds of CPU time by category, so far."""
    burner.stdin.write("\n")
    burner.stdin.flush()
    words = burner.stdout.readline().split()
    return Counter({name: int(time) for name, time in (word.split("=") for word in words)})


@pytest.mark.parametrize("job", ["lucene", "flink"])
def test_what_is_unknown_of_jobs_that_no_rule_was_made_for(job: str) -> None:
    """docs/categories.md has the figures: they are no aim."""
    jars = software.fetched("unknown-jobs", SOURCE.with_name("unknown.xml"))
    jar = software.compiled("unknown-jobs-burner", [SOURCE.with_name("UnknownJobs.java")], jars)
    java = software.software().java_home / "bin" / "java"
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
    with running(
        str(java), *OPENED, "-Xmx700m", "-cp", f"{jar}:{jars}/*", "UnknownJobs", job, **pipes
    ) as burner:
        assert any(line == "ready\n" for line in burner.stdout)
        found = categories(burner.pid)
    print(job, {name: f"{count / found.total():.1%}" for name, count in found.most_common()})
    assert found["other"] < found.total()
