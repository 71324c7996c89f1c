"""Hosts that are pods or run pods: containers without a JVM or a shell, and those nobody named."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hprofiler.agent import CheckedProcess
from hprofiler.app.run import RunRequest, run
from hprofiler.cli.commands import ps
from hprofiler.cli.commands.doctor import verdict
from hprofiler.cli.commands.run import exit_code
from hprofiler.cli.options import objects as chosen
from hprofiler.cli.options.parser import parse
from hprofiler.cli.terminal.exit_codes import Exit
from hprofiler.collect import HostChecked, Reach, check_only, find_only
from hprofiler.kubernetes import Access, connect
from hprofiler.model import PROCESS, Host, Outcome, Selector, Status, Target
from hprofiler.resolve import Located
from hprofiler.transport import Channel, ExecConnector, NoShell
from tests.unit.kubernetes_server import serving, status
from tests.unit.stand_in import SAMPLING, Fleet, Named, StandIns
from tests.viewer.made_profile import made_profile

ALL = Selector("k8s:x", "containers", {})
MAIN, SIDE, OTHER, LAST = ("a" * 64, "b" * 64, "c" * 64, "d" * 64)


def known(pod: str, container: str, **more: str) -> dict[str, str]:
    return {"namespace": "ns", "pod": pod, "container": container, **more}


FINDS = f"""
hello(); read()
say("found", searched=9, processes=[process(5, labels=dict(container={OTHER!r}))], ignored=[])
read()
"""
NAMED = {
    MAIN: known("one", "main", **{PROCESS: "one/main"}),
    SIDE: known("one", "proxy", **{PROCESS: "one/proxy"}),
    OTHER: known("two", "main", **{PROCESS: "shop/two"}),
    LAST: known("etl-exec-3", "main", role="executor", **{PROCESS: "executor 3 (etl-exec-3)"}),
}


def test_by_ssh_a_pod_counts_as_found_by_any_of_its_containers(stand_ins: StandIns) -> None:
    fleet = Fleet(stand_ins, 60.0, {"node": FINDS, "lost": "sys.exit(7)"})
    hosts = [replace(host, containers=NAMED) for host in fleet.hosts]
    found, lost = find_only(hosts, ALL, fleet.reach)
    assert [line.reason for line in found.outcomes] == [
        "no JVM of one was found",
        "no JVM of executor 3 (etl-exec-3) was found",
    ]
    (line,) = lost.outcomes
    assert line.reason.endswith("; one, shop/two, executor 3 (etl-exec-3) are missing"), line


def test_a_pipe_needs_nothing_of_the_image(stand_ins: StandIns, tmp_path: Path) -> None:
    """The container has no grep: the list is filtered here."""
    body = f"""hello(); read()
say("processes", processes=[process(5), process(6, command="java Other")], ignored=[])
request = read()
assert request["selector"] == dict(kind="pids", pids=[6]), request
say("found", searched=9, processes=[process(6, labels=dict(container={MAIN!r}))], ignored=[]); read()"""
    host = Host("one", "ns/one/main", containers={MAIN: known("one", "main")})
    (tmp_path / "bin").mkdir()
    for tool in ("sh", "cat", "chmod", "head", "rm", "wc", "mv", "mkdir", "uname", "env", "python3"):
        (tmp_path / "bin" / tool).symlink_to(str(shutil.which(tool)))
    with serving() as server:
        server.environment = {"PATH": str(tmp_path / "bin")}
        connector = ExecConnector(connect(Access(server.kubeconfig(tmp_path))))
        reach = Reach(connector.transport, stand_ins.binaries(body))
        pipe = Selector("grep Other", "pipe", {"kind": "pipe", "pipe": "grep Other"})
        (result,) = find_only([host], pipe, reach)
    assert [process.pid for process in result.processes] == [6], result.outcomes


class Shut(Named):
    """A container without a shell."""

    def open(self, command: str) -> Channel:
        raise NoShell("connect", "there is no sh")


FINE = HostChecked(
    Host("one", ""),
    verdicts=(CheckedProcess(1, Status.OK, "record", engine="perf"),),
)
SHUT = [
    # how it is reached, whether somebody named it, what becomes of it
    (Shut, True, Status.DEGRADED),
    (Shut, False, Status.FAILED),
    (Named, True, Status.FAILED),
]


@pytest.mark.parametrize(("transport", "optional", "becomes"), SHUT)
def test_a_shell_is_not_missed_where_nobody_named_the_container(
    stand_ins: StandIns, transport: Any, optional: bool, becomes: Status
) -> None:
    fleet = Fleet(stand_ins, 60.0, {"pod": "sys.exit(7)"})
    reach = replace(fleet.reach, transport_for=transport)
    host = replace(fleet.hosts[0], optional=optional)
    (result,) = find_only([host], ALL, reach)
    assert [line.status for line in result.outcomes] == [becomes]
    (checked,) = check_only([host], ALL, SAMPLING, reach)
    assert [line.status for line in checked.outcomes] == [becomes]
    assert verdict([FINE, checked]) is (Exit.OK if becomes is Status.DEGRADED else Exit.PARTIAL)


@pytest.mark.parametrize(("absent", "code"), [(Status.FAILED, Exit.PARTIAL), (Status.IDLE, Exit.OK)])
def test_ps_says_by_its_exit_code_that_somebody_is_missing(
    stand_ins: StandIns, monkeypatch: pytest.MonkeyPatch, absent: Status, code: Exit
) -> None:
    fleet = Fleet(stand_ins, 60.0, {"pod": "hello(); found(7); read()"})
    line = Outcome("other", absent, "find", "the pod is Pending")
    located = Located(Target("kubernetes", "k8s:x"), fleet.hosts, absent=(line,))
    monkeypatch.setattr(chosen, "target", lambda options: located)
    monkeypatch.setattr(chosen, "reach", lambda options, located: fleet.reach)
    assert ps.command(parse(["ps", "-j", "java"])) is code


RECORDS = """
hello()
read()
say("found", searched=9, processes=[process(5, labels=dict(container=MAIN))], ignored=[])
prepared(5); recording(5); profile(5, SENT); outcome(5); say("done", left=[]); read()
"""


def test_a_sidecar_without_a_shell_is_a_note_and_nothing_more(stand_ins: StandIns, tmp_path: Path) -> None:
    """A whole run by exec on a pod with a JVM and a proxy that is one program only."""
    made_profile("cpu", "main;work 9\n").write(tmp_path / "sent", "compact")
    body = f"MAIN, SENT = {MAIN!r}, {(tmp_path / 'sent').read_bytes()!r}\n{RECORDS}"
    hosts = [
        Host("one/main", "ns/one/main", containers={MAIN: known("one", "main")}, optional=True, inside=True),
        Host(
            "one/proxy", "ns/one/proxy", containers={SIDE: known("one", "proxy")}, optional=True, inside=True
        ),
    ]
    with serving() as server, serving() as shut:
        shut.exec_status = status(500, "InternalError", 'exec: "sh": executable file not found in $PATH')
        ways = {
            host.name: ExecConnector(connect(Access(one.kubeconfig(tmp_path))))
            for host, one in zip(hosts, (server, shut), strict=False)
        }
        reach = Reach(lambda host: ways[host.name].transport(host), stand_ins.binaries(body))
        located = Located(Target("kubernetes", "k8s:x"), hosts)
        request = RunRequest(located, ALL, SAMPLING, tmp_path / "out", False, ("hprofiler",))
        result = run(request, reach, lambda progress: None)
    assert exit_code(result) is Exit.OK
    assert result.report.coverage == "1 of 1 process in 1 of 1 container, 1 without a shell"
    (note,) = result.results[1].outcomes
    assert note.status is Status.DEGRADED and note.reason.startswith("the container has no sh")
    assert "missing" not in note.reason
