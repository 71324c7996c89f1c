"""The lines of docs/sudo.md, with the real sudo: the agent becomes root by them, and nothing else does."""

from __future__ import annotations

import os
import platform
import re
import shlex
import shutil
import subprocess
from contextlib import closing
from pathlib import Path

import pytest

from hprofiler.agent import AgentSession
from hprofiler.base import resources
from hprofiler.base.errors import HostError
from hprofiler.transport import LocalTransport
from tests.contract import real
from tests.contract.agent_driver import Agent, good, shipped
from tests.unit.stand_in import HERE

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="users and mount namespaces need root"),
    pytest.mark.skipif(shutil.which("sudo") is None, reason="sudo is not installed"),
    pytest.mark.skipif(bool(real.why_not()), reason=str(real.why_not())),
]
DOCS = Path(__file__).resolve().parents[2] / "docs" / "sudo.md"
UID = 12399
USUAL = "Defaults env_reset, use_pty\nroot ALL=(ALL:ALL) ALL\n"


def lines_of_the_docs() -> str:
    """For a user `prof` of our number, and this release's agent."""
    (block,) = re.findall(r"```sudoers\n(.*?)```", DOCS.read_text(), re.S)
    sha256 = resources.agents()[platform.machine()].sha256
    return block.replace("1234", str(UID)).replace("SHA256", sha256)  # a hash may hold 1234


class Prof:
    """A user of this machine, which has /tmp, passwd and sudoers of its own (a mount namespace)."""

    def __init__(self, folder: Path, sudoers: str) -> None:
        passwd = folder / "passwd"
        passwd.write_text(Path("/etc/passwd").read_text() + f"prof:*:{UID}:{UID}::/nowhere:/bin/sh\n")
        allowed = folder / "sudoers"
        allowed.write_text(USUAL + sudoers)
        allowed.chmod(0o440)
        binds = [f"mount --bind {name} /etc/{name}" for name in ("passwd", "sudoers")]
        script = " && ".join([*binds, "mount -t tmpfs -o mode=1777 none /tmp", "echo ready", "exec cat"])
        self._process = subprocess.Popen(
            ["unshare", "--mount", "sh", "-c", script],
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout.readline() == "ready\n"

    def wrapped(self, command: str) -> str:
        enter = f"nsenter --mount=/proc/{self._process.pid}/ns/mnt"
        become = f"setpriv --reuid {UID} --regid {UID} --clear-groups env -i HOME=/nowhere PATH=/usr/bin:/bin"
        return f"exec {enter} {become} sh -c {shlex.quote('cd /; ' + command)}"

    def sh(self, command: str) -> subprocess.CompletedProcess[str]:
        command = self.wrapped(command)
        return subprocess.run(command, shell=True, capture_output=True, text=True, timeout=60)  # noqa: S602

    def session(self) -> AgentSession:
        prof = self

        class Inside(LocalTransport):
            def open(self, command):
                return super().open(prof.wrapped(command))

        return AgentSession.open(Inside(HERE, "sudo"), real.binaries())

    def agent(self) -> str:
        """The path of the agent, which a session has put there."""
        with closing(self.session()) as session:
            assert session.hello.host.uid == 0
            session.bye()
        return self.sh(f"echo /tmp/.hprofiler-{UID}/agent-*").stdout.strip()

    def refuses(self, command: str) -> None:
        """sudo does not run it."""
        done = self.sh(f"sudo -n {command} </dev/null")
        assert done.returncode == 1 and "sudo:" in done.stderr and not done.stdout, (command, done)

    def close(self) -> None:
        self._process.stdin.close()
        self._process.wait(60)
        self._process.stdout.close()


@pytest.fixture
def prof(tmp_path):
    made = Prof(tmp_path, lines_of_the_docs())
    yield made
    made.close()


def test_the_agent_becomes_root_and_nothing_else_does(prof):
    agent = prof.agent()
    assert prof.sh(f"sudo -n {agent} </dev/null").returncode == 0
    others = ("/usr/bin/id", "/bin/sh -c id", f"{agent} --version", f"{agent} --once {agent}")
    for command in (*others, f"-u daemon {agent}"):
        prof.refuses(command)


@pytest.mark.parametrize(
    "swap",
    [
        "cp /usr/bin/id {agent}",
        "mv {agent} /tmp/x; ln -s /usr/bin/id {agent}",
        "cd /tmp; mv .hprofiler-* y; mkdir .hprofiler-{uid}; cp /usr/bin/id {agent}",
    ],
)
def test_another_file_in_its_place_is_refused(prof, swap):
    """Its owner is the user, who may do that."""
    agent = prof.agent()
    assert prof.sh(swap.format(agent=agent, uid=UID)).returncode == 0
    prof.refuses(agent)


@pytest.fixture
def spoken_to(prof):
    """The agent that sudo runs, as `prof` may talk to it without a coordinator."""
    agent = Agent(["sh", "-c", prof.wrapped(f"exec sudo -n {prof.agent()}")])
    assert agent.hello()["host"]["uid"] == 0
    yield agent
    agent.end()


def test_a_library_of_his_own_is_loaded_into_no_jvm(spoken_to, untouched):
    """It would do there what it likes, with the rights of the JVM's user: root."""
    sent = spoken_to.put(shipped("async-profiler").read_bytes() + b"and more")
    spoken_to.send("prepare", **spoken_to.request([untouched], {}), blobs={"async-profiler": sent})
    assert "not the one of the package" in spoken_to.error()
    assert "libasyncProfiler" not in Path(f"/proc/{untouched.outer.pid}/maps").read_text()


def test_the_packages_library_is_loaded_into_any(spoken_to, burn):
    assert good(spoken_to.record(burn()).outcome)


@pytest.mark.skipif(shutil.which("perf") is None, reason="perf is not installed")
@pytest.mark.parametrize("event", ["tmp/mine.c:u", "tmp/mine.o//", "software/../tmp/mine.o//"])
def test_no_program_of_his_own_is_loaded_into_the_kernel(prof, spoken_to, untouched, event):
    """perf before 6.5 takes a file of such a name for one, in an event's place."""
    assert prof.sh("for end in obj c o; do echo x >/tmp/mine.$end; done").returncode == 0
    outcome = spoken_to.refuse(untouched, engine="perf", events=[event])
    assert re.search(f"(no event|cannot count) {re.escape(event)}", outcome["reason"]), outcome


def test_without_the_lines_it_is_told_what_sudo_says(tmp_path):
    made = Prof(tmp_path, "")
    try:
        with pytest.raises(HostError, match="sudo refused to run the agent"):
            made.session()
    finally:
        made.close()
