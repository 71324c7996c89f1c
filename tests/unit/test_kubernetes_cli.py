"""The command line's part of Kubernetes: what -j k8s: means, its options, and a run."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from hprofiler.base.errors import UsageError
from hprofiler.cli import main
from hprofiler.cli.options import objects as chosen
from hprofiler.cli.options.parser import parse
from hprofiler.cli.options.target import wanted
from hprofiler.transport.pod_exec import Debugging
from tests.unit.kubernetes_server import ApiServer, pod, status, waiting

MEANINGS = [
    # Words, targets of the resolver, kind of the selector.
    (["-j", "k8s:app=x"], ("app=x",), "containers"),
    (["-j", "k8s:"], ("",), "containers"),
    (["-j", "k8s:pod/a", "-j", "k8s: a in (b, c)"], ("pod/a", "a in (b, c)"), "containers"),
    (["-j", "k8s:app=x", "--match", "java"], ("app=x",), "rule"),
    (["-j", "text:pod/a"], None, "text"),
    (["-j", "job/a", "-h", "n1"], None, "text"),
    (["-j", "java"], None, "rule"),
]


@pytest.mark.parametrize(("words", "asked", "kind"), MEANINGS, ids=[" ".join(case[0]) for case in MEANINGS])
def test_what_j_means(words: list[str], asked: tuple[str, ...] | None, kind: str) -> None:
    options = parse(words)
    assert (wanted(options).pods, wanted(options).application) == (asked, None)
    assert chosen.selector(options).kind == kind


@pytest.mark.parametrize(
    "words",
    [
        ["-n", "x"],
        ["-A"],
        ["--via", "ssh"],
        ["--field-selector", "a=b"],
        ["--debug-container", "busybox"],
    ],
)
def test_options_that_want_pods(words: list[str]) -> None:
    with pytest.raises(UsageError, match=r"is for pods, but -j names none"):
        wanted(parse(["-j", "java", *words]))


@pytest.mark.parametrize(
    ("words", "said", "remedy"),
    [
        (["-j", "pod/x"], "needs the prefix k8s:", "-j k8s:pod/x; or -j text:pod/x"),
        (["-j", "app=x", "-A"], "is for pods", "-j k8s:app=x"),
        (["-j", "k8s:pod/x", "--match", "k8s:pod/y"], "--match selects processes", "name pods with -j"),
    ],
)
def test_pods_without_the_prefix(words: list[str], said: str, remedy: str) -> None:
    with pytest.raises(UsageError, match=said) as caught:
        chosen.selector(parse(words))
    assert remedy in caught.value.remedy


def test_how_long_a_debug_container_lives() -> None:
    words = ["-j", "k8s:x", "--debug-container", "busybox:1"]
    assert chosen.debugging(parse([*words, "-t", "60"])) == Debugging("busybox:1", 360)
    assert chosen.debugging(parse(["ps", *words])) == Debugging("busybox:1", 300)
    assert chosen.debugging(parse(["-j", "k8s:x"])) is None


def test_refusals_are_errors_with_a_remedy(server: ApiServer, tmp_path: Path, capsys: Any) -> None:
    server.replies["api/v1/namespaces/data/pods"] = lambda _: (
        403,
        status(403, "Forbidden", "pods is forbidden"),
    )
    config = server.kubeconfig(tmp_path)
    assert main(["ps", "-j", "k8s:x=y", "-n", "data", "--kubeconfig", config]) == 4
    said = capsys.readouterr().err
    assert "forbids to list pods in the namespace data: pods is forbidden" in said
    assert '- {apiGroups: [""], resources: ["pods"], verbs: [list]}' in said
    server.replies["api/v1/namespaces/data/pods"] = lambda _: (
        400,
        status(400, "BadRequest", "unable to parse"),
    )
    assert main(["ps", "-j", "k8s:a b=", "-n", "data", "--kubeconfig", config]) == 2
    assert "hprofiler: a b=: " in (said := capsys.readouterr().err) and "unable to parse" in said
    assert main(["ps", "-j", "k8s:x=y", "--kubeconfig", config, "--context", "absent"]) == 2
    assert "Context 'absent' not found; it has test" in capsys.readouterr().err


def run_of(server: ApiServer, folder: Path, *words: str) -> Any:
    config = server.kubeconfig(folder)
    code = main(["-j", "k8s:x", "-t", "1", "--kubeconfig", config, "-o", str(folder / "out"), *words])
    return code, json.loads((folder / "out" / "run.json").read_text())


def test_unreachable_containers_are_in_the_ledger(server: ApiServer, tmp_path: Path, capsys: Any) -> None:
    """No container has a shell, one pod does not run, and one container is optional."""
    server.exec_status = status(500, "InternalError", 'exec: "sh": executable file not found in $PATH')
    down = pod("down", states={"main": waiting("CrashLoopBackOff", "back-off")})
    server.pods = [pod("alone"), pod("two", containers=["main", "proxy"]), down]
    code, run = run_of(server, tmp_path)
    assert code == 4
    lines = {outcome["host"]: outcome for host in run["hosts"] for outcome in host["outcomes"]}
    assert {name: line["status"] for name, line in lines.items()} == {
        "alone": "failed",
        "two/main": "degraded",
        "two/proxy": "degraded",
        "down": "failed",
    }
    assert "has no sh" in lines["alone"]["reason"] and "--debug-container" in lines["alone"]["remedy"]
    assert run["coverage"]["hosts"] == {"all": 4, "reached": 0, "recorded": 0, "idle": 0, "failed": 2}
    assert run["target"] == {"kind": "kubernetes", "name": "k8s:x"}
    assert re.search(r"down: the container is not running: CrashLoopBackOff", capsys.readouterr().err)
