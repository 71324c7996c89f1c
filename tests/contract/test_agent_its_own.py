"""Root's agent, while it works beside a user's JVM as that user, is not that user's to stop or to end."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.contract.agent_driver import good
from tests.contract.conftest import OTHER_USER, ROOT, as_user
from tests.lab import jdks, procs

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: JVMs of other users"),
]

STRIKES = """
import json, os, resource, signal, sys
pid, user, rounds = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
hit, worked = set(), set()
def strike(what, act):
    try:
        act()
        worked.add(what)
    except PermissionError:
        pass
    except (OSError, ValueError):  # the thread has ended
        pass
def is_mine(tid):
    try:
        with open(f"/proc/{pid}/task/{tid}/status") as status:
            return any(line.startswith("Uid:") and user in line.split() for line in status)
    except OSError:
        return False
def threads():
    try:
        return [int(tid) for tid in os.listdir(f"/proc/{pid}/task") if is_mine(tid)]
    except OSError:  # the agent has ended
        return None
print("ready", flush=True)
for _ in range(rounds):
    mine = threads()
    if worked or mine is None:
        break
    for tid in mine:
        hit.add(tid)
        strike("limits", lambda: resource.prlimit(tid, resource.RLIMIT_NOFILE, (3, 3)))
        strike("memory", lambda: open(f"/proc/{pid}/task/{tid}/mem", "rb"))
        strike("oom", lambda: open(f"/proc/{pid}/task/{tid}/oom_score_adj", "w"))
        for number in (signal.SIGSTOP, signal.SIGTERM, signal.SIGKILL):
            strike(number.name, lambda: os.kill(tid, number))
print(json.dumps([sorted(hit), sorted(worked)]))
"""


class Striker:
    """The JVM's user, who tries to hit every thread of the agent that works as him."""

    def __init__(self, agent: int, rounds: int = 1) -> None:
        words = [sys.executable, "-c", STRIKES, str(agent), str(OTHER_USER), str(rounds)]
        self._process = subprocess.Popen([*as_user(OTHER_USER), *words], stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "ready\n"

    def result(self):
        """Threads that he tried to hit, and by what he hit one."""
        assert self._process.stdout is not None
        said = self._process.stdout.readline()
        assert self._process.wait(procs.PATIENCE) == 0
        return json.loads(said)


OF_A_CONTAINER = ["setpriv", "--bounding-set=-setpcap,-sys_admin"]
"""Root as containers have it."""
FORBID = """
import os, sys
sys.path.insert(0, sys.argv[1])
from tests.contract.without_perf_events import forbid
forbid(439)
os.execvp(sys.argv[2], sys.argv[2:])
"""
BEFORE_5_8 = [sys.executable, "-c", FORBID, str(ROOT)]
"""Without faccessat2, which has this number on every processor."""


@pytest.mark.parametrize("root", [[], OF_A_CONTAINER, BEFORE_5_8], ids=["root", "container", "old kernel"])
def test_nothing_of_the_user_hits_it_while_it_records(new_agent, burn, root):
    agent, burner = new_agent(by=root), burn(user=OTHER_USER, load=0.5)
    agent.begin(burner, duration=60)
    hit, worked = Striker(agent.process.pid).result()
    assert hit and not worked
    assert good(agent.stop().of(burner).outcome)


def test_nothing_of_the_user_hits_it_while_it_finds_and_attaches(agent, burn):
    burner = burn(user=OTHER_USER, load=0.2)
    striker = Striker(agent.process.pid, rounds=1_000_000)
    for _ in range(20):
        agent.found(burner)
    assert good(agent.record(burner).outcome)
    agent.close_stdin()
    assert agent.wait() == 0
    hit, worked = striker.result()
    assert hit and not worked


@pytest.mark.parametrize("jdk", [8, 17, 25])
def test_jvms_accept_it_as_their_user(agent, burn_contained, jdk):
    """JDK 8 answers its own user alone: not even root. The JDK may lie in a folder of root's."""
    home = jdks.home(jdk)
    hidden = "mount -t tmpfs -o mode=755 tmpfs /root" if Path("/root") in home.parents else "true"
    show = f"mount --bind {home} /mnt && {hidden} && mkdir -p {home} && mount --move /mnt {home}"
    burner = burn_contained(show, user=OTHER_USER, java=str(home / "bin/java"), load=0.5)
    assert good(agent.record(burner).outcome)
