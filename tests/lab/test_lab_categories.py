"""Categories of work beside the truth: a program that says how much CPU time each kind of its work had."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

import pytest

from tests.contract.agent_driver import running
from tests.lab.cache import Unavailable
from tests.lab.spark import logs
from tests.lab.yarn import software
from tests.needed import lacking

pytestmark = [pytest.mark.nightly, pytest.mark.timeout(600)]

SOURCE = Path(__file__).parent / "categories" / "CategoryBurner.java"
SECONDS = 20
POINTS = 0.03
OF_JVM = ("gc", "jit", "kernel-memory", "kernel-files", "kernel-scheduling", "kernel-network", "kernel-other")
"""What the program's work causes, but does not do itself."""


def test_shares_are_those_of_the_program() -> None:
    try:
        made = software.software()
        jar = software.compiled("categories", [SOURCE], made.spark)
    except Unavailable as why:
        lacking(str(why))
    java = [
        str(made.java_home / "bin" / "java"),
        "-Xmx300m",
        "-XX:+UseSerialGC",
        "-cp",
        f"{jar}:{made.spark}/*",
    ]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with running(*java, "CategoryBurner", **pipes) as burner:
        assert burner.stdout.readline() == "ready\n"
        before = spent(burner)
        found = categories(burner.pid)
        truth = spent(burner) - before
    whole = sum(count for name, count in found.items() if name not in OF_JVM)
    shares = {name: (found[name] / whole, time / truth.total()) for name, time in truth.items()}
    print({name: f"{share:.1%} of {true:.1%}" for name, (share, true) in shares.items()}, found)
    for name, (share, true) in shares.items():
        assert share == pytest.approx(true, abs=POINTS), (name, found)


def test_little_of_sql_is_unknown() -> None:
    """Queries like those of TPC-H, for which no rule was made."""
    try:
        made, jars = software.software(), logs.spark_3().home / "jars"
        jar = software.compiled("sql-burner", [SOURCE.with_name("SqlBurner.java")], jars)
    except Unavailable as why:
        lacking(str(why))
    opened = ("java.lang", "java.lang.invoke", "java.nio", "java.util", "sun.nio.ch", "sun.util.calendar")
    java = [
        str(made.java_home / "bin" / "java"),
        *(f"--add-opens=java.base/{name}=ALL-UNNAMED" for name in opened),
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
        target = ["-j", f"pid:{pid}", "-f", "500", "-t", str(SECONDS), "-o", f"{folder}/run"]
        command = [sys.executable, "-m", "hprofiler", *target, "--json"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    (event,) = json.loads(done.stdout)["events"]
    return Counter(event["work"]["categories"])


def spent(burner) -> Counter[str]:
    """Nanoseconds of CPU time by category, so far."""
    burner.stdin.write("\n")
    burner.stdin.flush()
    words = burner.stdout.readline().split()
    return Counter({name: int(time) for name, time in (word.split("=") for word in words)})
