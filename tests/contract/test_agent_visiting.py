"""Starting the agent where nothing may stay, under shells with next to no tools; what it does there."""

from __future__ import annotations

import os
import shlex
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hprofiler.agent import AgentBinaries, AgentSession
from hprofiler.base.errors import HostError
from hprofiler.model import Host
from hprofiler.transport import Channel, LocalTransport
from hprofiler.transport.base import CONTAINER_TOOLS
from tests.contract.agent_driver import Agent
from tests.contract.cleaning import clean
from tests.contract.conftest import as_user
from tests.unit.stand_in import blob

pytestmark = pytest.mark.nightly

ID = "0123456789abcdef" * 4
SHELLS = [shell for shell in ("dash", "bash", "busybox") if shutil.which(shell)]


class Bare(LocalTransport):
    """This machine as a container: a shell, few programs, and nothing that may stay."""

    def __init__(self, folder: Path, shell: str) -> None:
        super().__init__(Host("bare", "localhost"))
        self.leaves_nothing = True
        self._shell = shutil.which(shell)
        self._home = folder
        self._bin = folder / "bin"
        self._bin.mkdir()
        (self._bin / "sh").symlink_to(str(self._shell))
        for tool in CONTAINER_TOOLS:
            (self._bin / tool).symlink_to(str(shutil.which(tool)))

    def open(self, command: str) -> Channel:
        environment = f"env -i PATH={self._bin} HOME={self._home}"
        return super().open(f"exec {environment} {self._bin}/sh -c {shlex.quote(command)}")


@pytest.fixture
def binaries(agent_binary: Path) -> AgentBinaries:
    return AgentBinaries({os.uname().machine: blob(agent_binary)}, {})


@pytest.fixture
def bare(tmp_path: Path) -> Iterator[Callable[..., Bare]]:
    made: list[Bare] = []

    def start(*arguments: Any, **options: Any) -> Bare:
        made.append(Bare(tmp_path, *arguments, **options))
        return made[-1]

    yield start
    for transport in made:
        transport.close()


def agents() -> set[Path]:
    places = [Path("/tmp"), Path("/var/tmp"), Path("/dev/shm")]
    return {path for place in places for path in place.glob(".hprofiler-once-*")}


OTHERS = agents()
"""Of whoever came before: each has a name of its own."""


def left() -> list[Path]:
    return sorted(agents() - OTHERS)


@pytest.mark.parametrize("shell", SHELLS)
def test_it_runs_with_what_there_is(
    bare: Callable[..., Bare],
    binaries: AgentBinaries,
    burn: Callable[..., Any],
    shell: str,
) -> None:
    burner = burn()
    with AgentSession.open(bare(shell), binaries) as session:
        assert session.hello.facts.user
        assert burner.outer.pid in {process.pid for process in session.list().processes}
        assert left() == []
        session.bye()
    assert left() == []


def test_nothing_stays_when_the_connection_breaks_while_it_is_sent(
    bare: Callable[..., Bare], agent_binary: Path, binaries: AgentBinaries, monkeypatch: pytest.MonkeyPatch
) -> None:
    transport = bare("dash")
    opened: list[Channel] = []
    monkeypatch.setattr(
        transport, "open", lambda command: opened.append(Bare.open(transport, command)) or opened[-1]
    )

    def half(path: Path) -> Iterator[bytes]:
        yield path.read_bytes()[:100_000]
        opened[-1].end_input()

    monkeypatch.setattr("hprofiler.agent.visiting.pieces", half)
    with pytest.raises(HostError, match="could not be stored") as caught:
        AgentSession.open(transport, binaries)
    assert caught.value.stage == "push"
    assert left() == []


class Sealed(LocalTransport):
    """A mount namespace in which everything is read-only, but for folders that nothing runs from."""

    def __init__(self, scratch: str) -> None:
        """`scratch` are the mount options of one more folder."""
        super().__init__(Host("sealed", "localhost"))
        self.leaves_nothing = True
        self._scratch = scratch

    def open(self, command: str) -> Channel:
        noexec = "".join(
            f"mount -t tmpfs -o noexec none {place};" for place in ("/tmp", "/var/tmp", "/dev/shm")
        )
        script = (
            "mount --make-rprivate /;"
            'while read -r x d y; do mount -o remount,bind,ro "$d" 2>/dev/null; done </proc/self/mounts;'
            f"{noexec} mount -t tmpfs {self._scratch} none /mnt;"
            f"HOME=/proc exec sh -c {shlex.quote(command)}"
        )
        return super().open("exec unshare -m sh -c " + shlex.quote(script))


@pytest.mark.skipif(os.geteuid() != 0, reason="mount namespaces need root")
def test_folders_that_nothing_runs_from_are_passed_over(binaries: AgentBinaries) -> None:
    with pytest.raises(HostError, match="no writable folder without noexec") as caught:
        AgentSession.open(Sealed("-o noexec"), binaries)
    assert "emptyDir at /tmp" in caught.value.remedy
    with AgentSession.open(Sealed("-o exec"), binaries) as session:
        session.bye()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody who was never here")
def test_once_keeps_nothing_on_disk(tmp_path: Path, agent_binary: Path, library_file: Path) -> None:
    user = 23456
    folder = Path(tempfile.mkdtemp(prefix="hprofiler-contract-"))
    os.chown(folder, user, user)
    own = folder / "agent"
    shutil.copy(agent_binary, own)
    own.chmod(0o755)
    agent = Agent([*as_user(user), str(own), "--once", str(own)])
    try:
        assert agent.hello()["blobs"] == []
        sent = agent.put(library_file.read_bytes())
        with pytest.raises(FileNotFoundError):
            own.stat()
        assert not Path(f"/tmp/.hprofiler-{user}").exists()
        assert clean(agent, kept=False)["removed"] == []
        assert len(sent) == 64
    finally:
        agent.end()
        folder.rmdir()


def test_what_is_in_the_agents_own_container(agent: Agent, burn: Callable[..., Any]) -> None:
    """The burner shares the agent's control groups; nothing of it names the container."""
    burner = burn()
    ask = {"selector": None, "native": False, "containers": [ID]}
    agent.send("find", **ask)
    assert agent.expect("found")["processes"] == []
    agent.send("find", **ask, own=ID)
    found = {process["pid"]: process["labels"] for process in agent.expect("found")["processes"]}
    assert found[burner.outer.pid] == {"container": ID}
    agent.send("find", **ask, own="another")
    assert "own container" in agent.expect("error")["reason"]
