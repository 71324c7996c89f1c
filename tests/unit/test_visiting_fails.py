"""Starting the agent in a container, and failing on the way: nothing of it may stay there."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from hprofiler.agent import AgentBinaries, AgentSession, visiting
from hprofiler.base.errors import HostError
from hprofiler.kubernetes import Access, connect
from hprofiler.model import Host
from hprofiler.transport import ExecTransport, NoShell
from hprofiler.transport.base import CONTAINER_TOOLS
from tests.unit.kubernetes_server import ID, ApiServer
from tests.unit.stand_in import StandIns

TOKEN = re.compile(r"-\$u-([0-9a-f]{16})")


@pytest.fixture
def binaries(tmp_path: Path) -> AgentBinaries:
    return StandIns(tmp_path).binaries("hello(); read()")


@pytest.fixture
def transport(server: ApiServer, tmp_path: Path) -> Iterator[ExecTransport]:
    made = connect(Access(server.kubeconfig(tmp_path)))
    transport = ExecTransport(Host("pod", "ns/pod/main", containers={ID: {}}), made)
    yield transport
    transport.close()
    made.close()


def holds(server: ApiServer, folder: Path, tools: Sequence[str] = CONTAINER_TOOLS) -> None:
    """The container's image has a shell and these tools."""
    (folder / "bin").mkdir()
    for tool in ("sh", *tools):
        (folder / "bin" / tool).symlink_to(str(shutil.which(tool)))
    server.environment = {"PATH": str(folder / "bin"), "HOME": str(folder)}


def left(server: ApiServer) -> list[Path]:
    """What is left of those whose names were sent to the container."""
    for process in server.running:
        process.wait(60)
    commands = [query["command"][-1] for _, query in server.asked]
    tokens = {token for command in commands for token in TOKEN.findall(command)}
    assert tokens
    assert server.environment
    places = [Path(place) for place in ("/tmp", "/var/tmp", "/dev/shm", server.environment["HOME"])]
    return [path for place in places for token in tokens for path in place.glob(f".hprofiler-once-*-{token}")]


def in_the_middle(monkeypatch: pytest.MonkeyPatch, happens: Callable[[], Any]) -> None:
    """Let something happen when one half of the binary has been sent."""

    def halves(path: Path) -> Iterator[bytes]:
        whole = path.read_bytes()
        yield whole[: len(whole) // 2]
        happens()
        yield whole[len(whole) // 2 :]

    monkeypatch.setattr(visiting, "pieces", halves)


@pytest.mark.parametrize("broken_by", ["the network", "us"])
def test_a_connection_that_ends_while_the_agent_is_sent(
    server: ApiServer,
    transport: ExecTransport,
    binaries: AgentBinaries,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    broken_by: str,
) -> None:
    holds(server, tmp_path)
    in_the_middle(monkeypatch, server.break_connections if broken_by == "the network" else transport.close)
    with pytest.raises(HostError, match="could not be stored"):
        AgentSession.open(transport, binaries)
    assert left(server) == []


def test_an_image_without_the_tools_is_refused_before_anything_is_written(
    server: ApiServer, transport: ExecTransport, binaries: AgentBinaries, tmp_path: Path
) -> None:
    holds(server, tmp_path, ("cat", "head", "uname", "wc"))
    with pytest.raises(NoShell, match="has no chmod, no rm") as caught:
        AgentSession.open(transport, binaries)
    assert "--debug-container" in caught.value.remedy and "--via ssh" in caught.value.remedy
    assert transport.bytes_sent == 0 and left(server) == []
    # Commands are part of the address of a request, of which usual proxies take 8192 bytes.
    commands = [query["command"] for _, query in server.asked]
    assert all(len(urlencode([("command", word) for word in words])) < 2400 for words in commands)
