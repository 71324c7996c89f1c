"""Putting the agent on a host: which folder, when it is pushed, and what a host may lack.

Each test's host is this machine with a /tmp, /var/tmp, /dev/shm and home of its own (a mount namespace).
"""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from hprofiler.agent import bootstrap
from hprofiler.base.errors import HostError
from tests.contract import real
from tests.contract.machine import Machine
from tests.lab.procs import wait_for

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="mount namespaces need root"),
    pytest.mark.skipif(bool(real.why_not()), reason=str(real.why_not())),
]
FOLDER = f".hprofiler-{os.geteuid()}"
SHELLS = [shell for shell in ("dash", "bash", "busybox") if shutil.which(shell)]
NEEDED = ("sh", "uname", "mkdir", "cat", "chmod", "ls", "mv", "rm", "wc")


class Bare(Machine):
    """A machine whose folders are empty: stored files of this machine's own users stay out of sight."""

    def __init__(self) -> None:
        folders = "for d in /tmp /var/tmp /dev/shm; do mount -t tmpfs -o mode=1777 none $d; done"
        super().__init__(f"{folders}; mkdir /dev/shm/home", "env HOME=/dev/shm/home")

    def start(self, before: str = "", path: str = "$PATH", sudo=None, become: str = "") -> tuple[bool, int]:
        """(pushed, commands opened) of one session that ends well."""
        with closing(self.session(sudo, f"PATH={path}; {before}", become)) as session:
            assert not sudo or session.hello.host.user == "root"
            session.bye()
        return session.pushed, self.opened

    def script(self, name: str, body: str) -> str:
        """An executable under /dev/shm, alone in a folder; what makes it the first of its name."""
        text, folder = shlex.quote(f"#!/bin/sh\n{body}\n"), f"/dev/shm/{name}.d"
        self.sh(f"mkdir {folder} && cd {folder} && printf %s {text} >{name} && chmod +x {name}")
        return f"{folder}:$PATH"

    def stored(self, folder: str) -> list[str]:
        return self.sh(f"ls {folder} 2>/dev/null || true").split()

    def few_tools(self) -> str:
        """A PATH with what the bootstrap needs and nothing else."""
        tools = " ".join(f"$(command -v {tool})" for tool in NEEDED)
        self.sh(f"mkdir -p /dev/shm/bin; ln -sf {tools} /dev/shm/bin/")
        return "/dev/shm/bin"


@pytest.fixture
def machine():
    made = Bare()
    yield made
    made.close()


def test_the_second_start_is_one_command_and_pushes_nothing(machine):
    assert machine.start() == (True, 3)
    assert machine.start() == (False, 1)
    (agent,) = machine.stored(f"/tmp/{FOLDER}")
    assert agent.startswith("agent-")
    assert machine.sh(f"stat -c %a /tmp/{FOLDER} /tmp/{FOLDER}/{agent}").split() == ["700", "700"]


@pytest.mark.parametrize(
    ("tools", "damage"),
    [
        ("all", "printf damaged | dd of={agent} bs=1 seek=5000 conv=notrunc 2>/dev/null"),
        ("few", "truncate -s 1000 {agent}"),
    ],
    ids=["a few bytes", "truncated, without sha256sum"],
)
def test_a_damaged_agent_is_pushed_again_and_never_run(machine, tools, damage):
    path = machine.few_tools() if tools == "few" else "$PATH"
    machine.start(path=path)
    machine.sh(damage.format(agent=f"$(echo /tmp/{FOLDER}/agent-*)"))
    assert machine.start(path=path) == (True, 3)
    assert machine.start(path=path) == (False, 1)


SPOILT = {
    "noexec": "mount -o remount,noexec /tmp",
    "read-only": "mount -o remount,ro /tmp",
    "symlink": f"mkdir /tmp/elsewhere; ln -s /tmp/elsewhere /tmp/{FOLDER}",
    "of another user": f"mkdir -m 777 /tmp/{FOLDER}; chown 12345 /tmp/{FOLDER}",
    "a file": f"echo >/tmp/{FOLDER}",
    "open to all": f"mkdir -m 777 /tmp/{FOLDER}",
    "open to a group": f"mkdir -m 770 /tmp/{FOLDER}",
}


@pytest.mark.parametrize("how", SPOILT)
def test_an_unusable_folder_is_passed_over(machine, how):
    machine.sh(SPOILT[how])
    assert machine.start() == (True, 3)
    assert machine.start() == (False, 1)
    assert len(machine.stored(f"/var/tmp/{FOLDER}")) == 1
    assert not machine.stored("/tmp/elsewhere")


def test_all_folders_in_their_order(machine):
    for folder, spoil in [
        (f"/tmp/{FOLDER}", "mount -o remount,noexec /tmp"),
        (f"/var/tmp/{FOLDER}", "mount -o remount,ro /var/tmp"),
        ("/dev/shm/home/.cache/hprofiler", "rm -r /dev/shm/home; echo >/dev/shm/home"),
        (f"/dev/shm/{FOLDER}", "mount -o remount,noexec /dev/shm"),
    ]:
        assert machine.start() == (True, 3)
        assert len(machine.stored(folder)) == 1
        machine.sh(spoil)
    with pytest.raises(HostError, match="no folder on the host can keep the agent") as caught:
        machine.start()
    assert caught.value.stage == "push" and "noexec" in caught.value.remedy


@pytest.mark.parametrize(
    "plant",
    ["chown 12345 {agent}", "mv {agent} /dev/shm/theirs; ln -s /dev/shm/theirs {agent}"],
    ids=["of another user", "a link"],
)
@pytest.mark.parametrize("shell", SHELLS)
def test_an_agent_that_another_may_change_is_replaced(machine, plant, shell):
    """Though it has the right content as it is looked at."""
    machine.sh(f"mount --bind {shutil.which(shell)} /bin/sh")
    machine.start()
    agent = machine.sh(f"echo /tmp/{FOLDER}/agent-*").strip()
    machine.sh(plant.format(agent=agent))
    assert machine.start() == (True, 3)
    assert machine.sh(f"stat -c '%F %u' {agent}") == f"regular file {os.geteuid()}\n"
    assert machine.start() == (False, 1)


def test_planted_links_in_an_open_folder_are_not_written_to(machine):
    """By a name that they can guess: numbers of processes."""
    machine.sh(f"mkdir -m 777 /tmp/{FOLDER}; echo root >/dev/shm/valued")
    plant = "import os; [os.symlink('/dev/shm/valued', f'probe-{pid}') for pid in range(65536)]"
    machine.sh(f"cd /tmp/{FOLDER} && {Path(sys.executable).resolve()} -c {shlex.quote(plant)}")
    machine.start()
    assert machine.sh("cat /dev/shm/valued") == "root\n"


def test_no_room_for_the_agent(machine):
    machine.sh("mount -o remount,size=100k /tmp")
    with pytest.raises(HostError, match="could not be stored") as caught:
        machine.start()
    assert caught.value.stage == "push" and "space" in caught.value.reason
    assert not machine.stored(f"/tmp/{FOLDER}")


@pytest.mark.parametrize("tool", ["cat", "sha256sum"])
def test_where_no_more_processes_can_be_started_nothing_is_left(machine, tool):
    """The tool takes the right to start others from the shell that called it, which ends at the next one."""
    user = 61_234
    machine.sh(f"chown {user} /dev/shm/home")
    path = machine.script(tool, f'prlimit --pid $PPID --nproc=1:1; exec /usr/bin/{tool} "$@"')
    with pytest.raises(HostError):
        machine.start(path=path, become=f"exec setpriv --reuid {user} --regid {user} --clear-groups sh -c ")
    homes = ("/tmp", "/var/tmp", "/dev/shm")
    folders = [*(f"{home}/.hprofiler-{user}" for home in homes), "/dev/shm/home/.cache/hprofiler"]
    left = {folder: machine.stored(folder) for folder in folders}
    assert not any(left.values()), left


def test_an_architecture_without_an_agent(machine):
    with pytest.raises(HostError, match="no agent for the architecture 'vax'"):
        machine.start(path=machine.script("uname", "echo vax"))


def test_start_up_files_that_talk(machine):
    machine.start()
    assert machine.start(before="echo Welcome; echo; echo to HPROFILER exec; ") == (False, 1)
    with pytest.raises(HostError, match=r"did not run the start command|too much"):
        machine.start(before="yes; ")
    with pytest.raises(HostError, match="did not run the start command: no logins today") as caught:
        machine.start(before="echo no logins today >&2; exit 1; ")
    assert "login shell" in caught.value.remedy


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("sudo: a password is required", "sudo refused to run the agent: sudo: a password is required"),
        ("sudo: sorry, you must have a tty to run sudo", "you must have a tty"),
        ("sudo: unable to resolve host n2\nsudo: a password is required", "the agent: sudo: a password"),
    ],
)
def test_sudo_that_refuses(machine, text, reason):
    """sudo's own words, said by a script: the real sudo is in test_sudoers.py."""
    with pytest.raises(HostError, match=reason) as caught:
        machine.start(path=machine.script("sudo", f'echo "{text}" >&2; exit 1'), sudo="sudo")
    assert "NOPASSWD" in caught.value.remedy


@pytest.mark.parametrize("ends", ["gone", signal.SIGHUP, signal.SIGTERM])
def test_an_interrupted_push_leaves_no_file(tmp_path, ends):
    """Where nobody reads what the shell says any more, and where the end of the connection ends the shell."""
    script = bootstrap._PUSH.format(folder=f"'{tmp_path}'", sha256="0" * 64, size=10, mark="MARK")
    shell = subprocess.Popen(["sh", "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    shell.stdout.close()
    shell.stdin.write(b"half")
    shell.stdin.flush()
    wait_for("what came so far", lambda: any(path.stat().st_size for path in tmp_path.iterdir()))
    if ends != "gone":
        shell.send_signal(ends)
    shell.stdin.close()
    shell.wait(60)
    assert not list(tmp_path.iterdir())
