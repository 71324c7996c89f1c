"""The lines of docs/sudo.md, with the real sudo: the agent becomes root by them, and nothing else does."""

from __future__ import annotations

import os
import platform
import re
import shutil
from contextlib import closing
from pathlib import Path

import pytest

from hprofiler.base import resources
from hprofiler.base.errors import HostError
from tests.contract import real
from tests.contract.machine import Machine

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


class Prof(Machine):
    """A user of this machine, which has /tmp, passwd and sudoers of its own."""

    def __init__(self, folder: Path, sudoers: str) -> None:
        passwd, allowed = folder / "passwd", folder / "sudoers"
        passwd.write_text(Path("/etc/passwd").read_text() + f"prof:*:{UID}:{UID}::/nowhere:/bin/sh\n")
        allowed.write_text(USUAL + sudoers)
        allowed.chmod(0o440)
        binds = [f"mount --bind {file} /etc/{file.name}" for file in (passwd, allowed)]
        become = f"setpriv --reuid {UID} --regid {UID} --clear-groups env -i HOME=/nowhere PATH=/usr/bin:/bin"
        super().__init__(" && ".join([*binds, "mount -t tmpfs -o mode=1777 none /tmp", "cd /"]), become)

    def agent(self) -> str:
        """The path of the agent, which a session has put there."""
        with closing(self.session("sudo")) as session:
            assert session.hello.host.user == "root"
            session.bye()
        return self.sh(f"echo /tmp/.hprofiler-{UID}/agent-*").strip()

    def refuses(self, command: str) -> None:
        """sudo does not run it."""
        done = self.run(f"sudo -n {command} </dev/null")
        assert done.returncode == 1 and "sudo:" in done.stderr and not done.stdout, (command, done)


@pytest.fixture
def prof(tmp_path):
    made = Prof(tmp_path, lines_of_the_docs())
    yield made
    made.close()


def test_the_agent_becomes_root_and_nothing_else_does(prof):
    agent = prof.agent()
    assert prof.run(f"sudo -n {agent} </dev/null").returncode == 0
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
    assert prof.run(swap.format(agent=agent, uid=UID)).returncode == 0
    prof.refuses(agent)


def test_without_the_lines_sudos_words_are_reported(tmp_path):
    made = Prof(tmp_path, "")
    try:
        with pytest.raises(HostError, match="sudo refused to run the agent"):
            made.session("sudo")
    finally:
        made.close()
