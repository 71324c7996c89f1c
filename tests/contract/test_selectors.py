"""Every shipped selector, asked of the real agent: it finds its own JVMs, labels them, and claims no others.

The JVMs are real ones; their classes are stubs with the real names, started as the real launch scripts do.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from hprofiler.app.demo.jdk import find_jdk
from hprofiler.selectors.selection import load_selectors
from tests.contract.agent_driver import ready
from tests.lab import cache

ROOT = Path(__file__).resolve().parent.parent.parent
SMALL = ("-Xmx16m", "-Xss256k", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
AT_ONCE = 12


@dataclass(frozen=True)
class Case:
    """One entry of selector_cases.yaml: a JVM of the class `main`, or a native `program`."""

    desc: str
    selector: str | None
    main: str = ""
    program: str = ""
    options: str = ""
    arguments: str = ""
    environment: dict[str, str] = field(default_factory=dict)
    in_shell: bool = False
    label: str = ""
    labels: dict[str, str] = field(default_factory=dict)

    @property
    def expected_label(self) -> str:
        return self.label or self.program or self.main.rsplit(".", 1)[-1]

    @property
    def found_by(self) -> set[str]:
        """The selectors that mean it: its own, and `java` or `python` where it is one."""
        language = "java" if self.main else "python" if self.program.startswith("python") else None
        return {name for name in (self.selector, language) if name}


CASES = [
    Case(**entry) for entry in yaml.safe_load(Path(__file__).with_name("selector_cases.yaml").read_bytes())
]


def test_every_shipped_selector_has_a_case() -> None:
    assert {case.selector for case in CASES} - {None} == set(shipped()) - {"java", "pyspark-program"}


def test_a_python_worker_is_labelled_with_its_executor(agent, tmp_path):
    program = tmp_path / "python3"
    shutil.copy(stubs() / "program", program)
    command = f"{program} -m pyspark.daemon pyspark.worker; exit $?"
    executor = ["--driver-url", "spark://h:1", "--executor-id", "7", "--app-id", "app-1", "--password", "x"]
    with ready(["bash", "-c", command, "executor", *executor]) as shell:
        found = agent.find(**shipped()["pyspark-worker"])["processes"]
    (worker,) = [one for one in found if one["ppid"] == shell.pid]
    assert (worker["label"], worker["labels"]["application"]) == ("python of executor 7", "app-1")


@pytest.mark.parametrize(
    ("selector", "name", "parent", "worker", "label"),
    [
        (
            "dask-worker",
            "python3",
            "/opt/bin/dask worker tcp://h:1",
            "{} -c 'from multiprocessing.spawn import x'",
            "dask worker",
        ),
        ("ray-worker", "/opt/ray/raylet", "--x", "(exec -a ray::resize {})", "ray worker"),
        (
            "pyspark-program",
            "java",
            "org.apache.spark.deploy.SparkSubmit etl.py",
            "{} /opt/etl.py",
            "python etl.py",
        ),
    ],
)
def test_processes_are_known_by_their_parents(agent, tmp_path, selector, name, parent, worker, label):
    program = tmp_path / "python3"
    shutil.copy(stubs() / "program", program)
    command = shlex.quote(f"{worker.format(program)}; exit $?")
    with ready(["bash", "-c", f"exec -a {name} bash -c {command} x {parent}"]) as shell:
        found = agent.find(**shipped()[selector])["processes"]
    assert [one["label"] for one in found if one["ppid"] == shell.pid] == [label]


def test_each_process_is_found_by_its_own_selector_and_java_alone(agent, tmp_path):
    for start in range(0, len(CASES), AT_ONCE):
        with ExitStack() as stack:
            batch = CASES[start : start + AT_ONCE]
            with ThreadPoolExecutor(os.cpu_count()) as pool:
                jvms = list(pool.map(stack.enter_context, [running(tmp_path, case) for case in batch]))
            found = {name: agent.find(**query)["processes"] for name, query in shipped().items()}
            problems = [
                p for case, jvm in zip(batch, jvms, strict=False) for p in problems_of(case, jvm.pid, found)
            ]
        assert not problems, "\n".join(problems)


def shipped() -> dict[str, Any]:
    return {name: selector.query for name, selector in load_selectors([ROOT / "selectors"]).items()}


def problems_of(case: Case, started: int, found: dict[str, list[dict[str, Any]]]) -> list[str]:
    """What is wrong with what the selectors found of this case; `started` is a shell's pid for `in_shell`."""
    own = {
        name: [p for p in seen if p["ppid" if case.in_shell else "pid"] == started]
        for name, seen in found.items()
    }
    claimed: set[str] = {name for name, seen in own.items() if seen}
    problems = []
    if claimed != case.found_by:
        problems.append(f"{case.desc}: claimed by {sorted(claimed)}")
    if case.in_shell and any(p["pid"] == started for seen in found.values() for p in seen):
        problems.append(f"{case.desc}: the shell is taken for the JVM")
    for process in own.get(case.selector or "java", []):
        if (process["jvm"] is None) != bool(case.program):
            problems.append(f"{case.desc}: its JVM is {process['jvm']}")
        if process["label"] != case.expected_label:
            problems.append(f"{case.desc}: label {process['label']!r}, not {case.expected_label!r}")
        if not case.labels.items() <= process["labels"].items():
            problems.append(f"{case.desc}: labels {process['labels']} lack some of {case.labels}")
    return problems


def stubs() -> Path:
    """A folder with a class for each `main`, and a program, which do nothing."""
    names = sorted({case.main for case in CASES if case.main})

    def make(folder: Path) -> None:
        sources = []
        for name in names:
            package, simple = name.rsplit(".", 1)
            source = folder.joinpath("src", *name.split(".")).with_suffix(".java")
            source.parent.mkdir(parents=True, exist_ok=True)
            source.write_text(JAVA.format(package, simple))
            sources.append(str(source))
        javac = [str(find_jdk() / "bin" / "javac"), "-proc:none", "--release", "8", "-Xlint:-options"]
        subprocess.run([*javac, "-d", str(folder), *sources], check=True)
        subprocess.run(["cc", "-x", "c", "-o", str(folder / "program"), "-"], input=C.encode(), check=True)

    return cache.made(cache.folder("burners"), "stubs", "\n".join([*names, JAVA, C]).encode(), make)


JAVA = """package {}; public class {} {{ public static void main(String[] arguments) throws Exception {{
    System.out.println("ready"); while (System.in.read() >= 0) {{}} }} }}"""
C = """#include <stdio.h>
int main(void) { puts("ready"); fflush(stdout); return getchar() > 0; }"""


def running(folder: Path, case: Case) -> AbstractContextManager[subprocess.Popen[bytes]]:
    """The case's process, ready: a JVM, or a program of that name that does nothing."""
    if case.main:
        return running_jvm(case)
    program = folder / "bin" / case.program
    program.parent.mkdir(exist_ok=True)
    shutil.copy(stubs() / "program", program)
    return ready([str(program), *case.arguments.split()], {**os.environ, **case.environment})


def running_jvm(case: Case) -> AbstractContextManager[subprocess.Popen[bytes]]:
    command = [
        str(find_jdk() / "bin" / "java"),
        *SMALL,
        *case.options.split(),
        "-cp",
        str(stubs()),
        case.main,
    ]
    command += shlex.split(case.arguments)
    if case.in_shell:
        # The exit keeps the shell from replacing itself with its last command.
        command = ["/bin/bash", "-c", f"{shlex.join(command)}; exit $?"]
    environment = {**{k: v for k, v in os.environ.items() if k != "CONTAINER_ID"}, **case.environment}
    return ready(command, environment)
