"""Starting the agent where nothing may stay, under shells with next to no tools; what it does there."""

from __future__ import annotations

import os
import shlex
import shutil
import tempfile
from contextlib import closing
from pathlib import Path

import pytest

from hprofiler.agent.bootstrap import AgentBinaries
from hprofiler.agent.session import AgentSession
from hprofiler.base.errors import HostError
from hprofiler.model import Host
from hprofiler.transport.base import CONTAINER_TOOLS
from hprofiler.transport.local import LocalTransport
from tests.contract.agent_driver import Agent
from tests.contract.conftest import as_user
from tests.unit.stand_in import blob

pytestmark = pytest.mark.nightly

ID = "0123456789abcdef" * 4
SHELLS = [shell for shell in ("dash", "bash", "busybox") if shutil.which(shell)]


class Visited(LocalTransport):
    """This machine as a container in which nothing may stay."""

    def __init__(self, wrap):
        super().__init__(Host("visited", "localhost"))
        self.leaves_nothing = True
        self._wrap = wrap
        self.opened = []

    def open(self, command):
        self.opened.append(super().open(self._wrap(command)))
        return self.opened[-1]


@pytest.fixture
def bare(tmp_path):
    """A place with a shell and few programs."""

    def enter(shell):
        folder = tmp_path / "bin"
        folder.mkdir()
        for name in ("sh", *CONTAINER_TOOLS):
            (folder / name).symlink_to(shutil.which(shell if name == "sh" else name))
        environment = f"env -i PATH={folder} HOME={tmp_path}"
        return Visited(lambda command: f"exec {environment} {folder}/sh -c {shlex.quote(command)}")

    return enter


@pytest.fixture
def binaries(agent_binary):
    return AgentBinaries({os.uname().machine: blob(agent_binary)}, {})


def agents():
    places = [Path("/tmp"), Path("/var/tmp"), Path("/dev/shm")]
    return {path for place in places for path in place.glob(".hprofiler-once-*")}


@pytest.mark.parametrize("shell", SHELLS)
def test_it_runs_with_few_programs(bare, binaries, burn, shell):
    burner, before = burn(), agents()
    with closing(AgentSession.open(bare(shell), binaries)) as session:
        assert session.hello.host.user
        assert burner.outer.pid in {process.pid for process in session.list().processes}
        assert agents() <= before
        session.bye()
    assert agents() <= before


def test_nothing_stays_when_the_connection_breaks_while_it_is_sent(bare, binaries, monkeypatch):
    transport, before = bare("dash"), agents()

    def half(path):
        yield path.read_bytes()[:100_000]
        transport.opened[-1].end_input()

    monkeypatch.setattr("hprofiler.agent.visiting.pieces", half)
    with pytest.raises(HostError, match="could not be stored") as caught:
        AgentSession.open(transport, binaries)
    assert caught.value.stage == "push" and agents() <= before


@pytest.mark.skipif(os.geteuid() != 0, reason="mount namespaces need root")
def test_folders_that_nothing_runs_from_are_passed_over(binaries):
    """Everything is read-only, but for folders that nothing runs from, and one more."""

    def sealed(options):
        places = ("/tmp", "/var/tmp", "/dev/shm")
        noexec = "".join(f"mount -t tmpfs -o noexec none {place};" for place in places)
        script = (
            "mount --make-rprivate /;"
            'while read -r x d y; do mount -o remount,bind,ro "$d" 2>/dev/null; done </proc/self/mounts;'
            f"{noexec} mount -t tmpfs {options} none /mnt; HOME=/proc exec sh -c "
        )
        return Visited(lambda command: f"exec unshare -m sh -c {shlex.quote(script + shlex.quote(command))}")

    with pytest.raises(HostError, match="no writable folder without noexec") as caught:
        AgentSession.open(sealed("-o noexec"), binaries)
    assert "emptyDir at /tmp" in caught.value.remedy
    with closing(AgentSession.open(sealed("-o exec"), binaries)) as session:
        session.bye()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody who was never here")
def test_once_keeps_nothing_on_disk(agent_binary):
    user = 23456
    folder = Path(tempfile.mkdtemp(prefix="hprofiler-contract-"))
    os.chown(folder, user, user)
    own = Path(shutil.copy(agent_binary, folder / "agent"))
    own.chmod(0o755)
    agent = Agent([*as_user(user), own, "--once", own])
    try:
        assert agent.hello()["blobs"] == []
        assert len(agent.library()) == 64
        assert not own.exists() and not Path(f"/tmp/.hprofiler-{user}").exists()
        assert agent.clean(keeping=False)["removed"] == []
    finally:
        agent.end()
        folder.rmdir()


def test_processes_of_the_agents_own_container(agent, burn):
    """The burner shares the agent's control groups; nothing of it names the container."""
    burner, ask = burn(), {"selector": None, "native": False, "containers": [ID]}
    agent.send("find", **ask)
    assert agent.expect("found")["processes"] == []
    agent.send("find", **ask, own=ID)
    found = {process["pid"]: process["labels"] for process in agent.expect("found")["processes"]}
    assert found[burner.outer.pid] == {"container": ID}
    agent.send("find", **ask, own="another")
    assert "own container" in agent.error()
