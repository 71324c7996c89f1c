"""Hosts that are pods or run pods: containers without a JVM or a shell."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from hprofiler.agent.messages import CheckedProcess
from hprofiler.cli.commands import ps
from hprofiler.cli.commands.doctor import verdict
from hprofiler.cli.options import objects as chosen
from hprofiler.cli.options.parser import parse
from hprofiler.cli.terminal.exit_codes import Exit
from hprofiler.collect.checking import HostChecked, check_only, find_only
from hprofiler.collect.containers import Contained
from hprofiler.model import PROCESS, Host, Outcome, Process, Selector, Status
from hprofiler.transport.base import Channel, NoShell
from tests.unit.conftest import MakeFleet
from tests.unit.stand_in import SAMPLING, Named

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


def test_a_process_whose_container_has_its_name_is_in_its_pod() -> None:
    """As at the end of a recording, when all is known of its processes."""
    there = Contained(Host("node", "node", containers=NAMED))
    found = Process("node", 5, 1, 0, "root", "App", labels={"container": OTHER})
    for process in (found, there.known(found)):
        assert [line.reason for line in there.empty([process])] == [
            "no JVM of one was found",
            "no JVM of executor 3 (etl-exec-3) was found",
        ]


def test_over_ssh_any_container_of_a_pod_is_enough(fleet: MakeFleet) -> None:
    hosts = fleet(node=FINDS, lost="sys.exit(7)")
    found, lost = find_only([replace(host, containers=NAMED) for host in hosts.hosts], ALL, hosts.reach)
    assert [line.reason for line in found.outcomes] == [
        "no JVM of one was found",
        "no JVM of executor 3 (etl-exec-3) was found",
    ]
    (line,) = lost.outcomes
    assert line.reason.endswith("; one, shop/two, executor 3 (etl-exec-3) are missing"), line


class Shut(Named):
    """A container without a shell."""

    def open(self, command: str) -> Channel:
        raise NoShell("connect", "there is no sh")


FINE = HostChecked(
    Host("one", ""),
    verdicts=(CheckedProcess(1, Status.OK, "record", engine="perf"),),
)
SHUT = [
    # The transport, whether the container is optional, the status of its line.
    (Shut, True, Status.DEGRADED),
    (Shut, False, Status.FAILED),
    (Named, True, Status.FAILED),
]


@pytest.mark.parametrize(("transport", "optional", "becomes"), SHUT)
def test_an_optional_container_may_lack_a_shell(
    fleet: MakeFleet, transport: Any, optional: bool, becomes: Status
) -> None:
    hosts = fleet(pod="sys.exit(7)")
    reach = replace(hosts.reach, transport_for=transport)
    host = replace(hosts.hosts[0], optional=optional)
    (result,) = find_only([host], ALL, reach)
    assert [line.status for line in result.outcomes] == [becomes]
    (checked,) = check_only([host], ALL, SAMPLING, reach)
    assert [line.status for line in checked.outcomes] == [becomes]
    assert verdict([FINE, checked]) is (Exit.OK if becomes is Status.DEGRADED else Exit.PARTIAL)


@pytest.mark.parametrize(
    ("absent", "code"), [(None, Exit.OK), (Status.IDLE, Exit.OK), (Status.FAILED, Exit.PARTIAL)]
)
def test_ps(
    fleet: MakeFleet, monkeypatch: pytest.MonkeyPatch, capsys: Any, absent: Status | None, code: Exit
) -> None:
    lines = (Outcome("other", absent, "find", "the pod is Pending"),) if absent else ()
    for words in (["ps", "-j", "java"], ["ps", "-j", "java", "--json"]):
        hosts = fleet(**{"web-1": "hello(); found(7); read()"})
        located = hosts.located(absent=lines)
        monkeypatch.setattr(chosen, "target", lambda options, located=located: located)
        monkeypatch.setattr(chosen, "reach", lambda options, located, hosts=hosts: hosts.reach)
        assert ps.command(parse(words)) is code
        out = capsys.readouterr().out
        if "--json" not in words:
            heads, row = out.splitlines()
            assert heads.split() == ["HOST", "PID", "USER", "JVM", "PROCESS", "COMMAND"]
            assert row.split()[:3] == ["web-1", "7", "root"]
            continue
        first, *others = json.loads(out)
        assert (first["host"], first["processes"][0]["pid"]) == ("web-1", 7)
        assert [one["outcomes"][0]["reason"] for one in others] == [line.reason for line in lines]
