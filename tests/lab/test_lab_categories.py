"""Categories of work beside the truth: a program that says how much CPU time each kind of its work had."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.contract.agent_driver import running
from tests.lab.cache import Unavailable
from tests.lab.yarn import software
from tests.needed import lacking

pytestmark = [pytest.mark.nightly, pytest.mark.timeout(600)]

SOURCE = Path(__file__).parent / "categories" / "CategoryBurner.java"
SECONDS = 20
POINTS = 0.03
OF_JVM = ("gc", "jit", "kernel-memory", "kernel-files", "kernel-scheduling", "kernel-network", "kernel-other")
"""What the program's work causes, but does not do itself."""


def test_shares_are_those_of_the_program(tmp_path: Path) -> None:
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
        target = ["-j", f"pid:{burner.pid}", "-f", "500", "-t", str(SECONDS), "-o", str(tmp_path / "run")]
        done = subprocess.run(
            [sys.executable, "-m", "hprofiler", *target, "--json"],
            capture_output=True,
            text=True,
            timeout=300,
        )
        truth = spent(burner) - before
    (event,) = json.loads(done.stdout)["events"]
    found = Counter(event["work"]["categories"])
    whole = sum(count for name, count in found.items() if name not in OF_JVM)
    shares = {name: (found[name] / whole, time / truth.total()) for name, time in truth.items()}
    print({name: f"{share:.1%} of {true:.1%}" for name, (share, true) in shares.items()}, found)
    for name, (share, true) in shares.items():
        assert share == pytest.approx(true, abs=POINTS), (name, found)


def spent(burner) -> Counter[str]:
    """Nanoseconds of CPU time by category, so far."""
    burner.stdin.write("\n")
    burner.stdin.flush()
    words = burner.stdout.readline().split()
    return Counter({name: int(time) for name, time in (word.split("=") for word in words)})
