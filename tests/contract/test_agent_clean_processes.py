"""Agents and profilers that are left over are listed and ended."""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import subprocess
import tempfile
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.contract.agent_driver import Agent, leftovers, of_pid
from tests.contract.conftest import OTHER_USER, as_user, is_profiled, still
from tests.lab.procs import wait_for

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: agents and JVMs of other users")
HASH = "0123456789abcdef"


def own_folders(entries, agent):
    """The entries of the run folders of an agent's session."""
    own = f"/.hprofiler-run-{agent.process.pid}-"
    return [entry for entry in entries if own in entry["path"]]


@pytest.fixture
def another_version(agent_binary):
    """Starts an agent with another hash, of a private folder of its own, with a lease."""
    with ExitStack() as ends:
        folder = Path(tempfile.mkdtemp(prefix="hprofiler-contract-"))
        ends.callback(shutil.rmtree, folder, ignore_errors=True)

        def start(lease=1.0, user=0):
            binary = agent_binary.read_bytes() + b"another version"
            path = folder / f"agent-{hashlib.sha256(binary).hexdigest()}"
            path.write_bytes(binary)
            path.chmod(0o700)
            for one in (folder, path):
                os.chown(one, user, user)
            agent = Agent([*(as_user(user) if user else []), path])
            ends.callback(agent.end)
            ends.callback(agent.process.kill)
            agent.hello(lease=lease)
            return agent

        yield start


def test_leftovers_of_a_killed_agent_are_listed_and_removed(new_agent, agent, burn):
    burner, killed = burn(user=OTHER_USER), new_agent()
    killed.begin(burner, duration=60)
    live = agent.leftovers()
    assert of_pid(live, killed.process.pid)["agent"]["state"] == "used"
    assert of_pid(live, burner.outer.pid)["profiler"]["state"] == "used"
    assert [entry["state"] for entry in own_folders(live, killed)] == ["used"]
    killed.kill()
    entries = agent.leftovers()
    profiler, (folder,) = of_pid(entries, burner.outer.pid)["profiler"], own_folders(entries, killed)
    assert (profiler["state"], folder["state"]) == ("left", "left")
    assert folder["user"] == str(OTHER_USER) and folder["bytes"] > 0
    assert is_profiled(burner.outer.pid), "a list touches nothing"
    cleaned = agent.clean()
    assert burner.outer.pid in cleaned["stopped"] and folder["path"] in cleaned["removed"], cleaned
    assert not is_profiled(burner.outer.pid)


@pytest.mark.nightly
def test_an_agent_of_another_version_that_is_stopped(another_version, new_agent, burn):
    """As a user whose agents nobody else ends."""
    burner, cleaner = burn(user=OTHER_USER), new_agent(user=OTHER_USER)
    agent = another_version(lease=14, user=OTHER_USER)
    agent.begin(burner, duration=60)
    agent.process.send_signal(signal.SIGSTOP)

    def states():
        entries = cleaner.leftovers()
        (folder,) = own_folders(entries, agent)
        profiler = of_pid(entries, burner.outer.pid)["profiler"]
        return [one["state"] for one in (of_pid(entries, agent.process.pid)["agent"], folder, profiler)]

    assert states() == ["used"] * 3
    wait_for("the end of its lease", lambda: states() == ["left"] * 3)
    cleaned = cleaner.clean()
    assert cleaned["ended"] == [agent.process.pid] and not cleaned["failed"], cleaned
    assert not own_folders(cleaner.leftovers(), agent) and not is_profiled(burner.outer.pid)
    wait_for("nothing of it", lambda: not leftovers())


def test_jvms_without_permission_are_counted(new_agent, burn):
    burn()
    cleaner = new_agent(user=OTHER_USER)
    cleaner.send("clean", dry=True)
    counts = {one["user"]: one["jvms"] for one in cleaner.expect("leftovers")["out_of_reach"]}
    assert counts["root"] >= 1


@contextmanager
def process(*words, user=None):
    running = subprocess.Popen([*(as_user(user) if user else []), *words])
    name = Path(shutil.which(words[0])).resolve().name
    try:
        wait_for(name, lambda: Path(f"/proc/{running.pid}/exe").resolve().name == name)
        yield running
    finally:
        running.kill()
        running.wait()


def test_a_process_with_an_agents_name_is_not_ended(agent, tmp_path):
    named = tmp_path / f"agent-{HASH * 4}"
    named.write_bytes(Path(shutil.which("sleep")).resolve().read_bytes())
    named.chmod(0o755)
    for folder in (tmp_path, *tmp_path.parents[:2]):
        folder.chmod(0o755)
    with process(str(named), "600") as own, process(str(named), "600", user=OTHER_USER) as other:
        entries = agent.leftovers()
        states = [of_pid(entries, one.pid)["agent"] for one in (own, other)]
        assert [entry["state"] for entry in states] == ["used", "foreign"]
        assert str(OTHER_USER) in states[1]["reason"]
        assert not agent.clean()["ended"]
        assert [one.poll() for one in (own, other)] == [None] * 2


# An agent that is killed while the JVM, which stands still, has yet to answer the start command.

READ = ("0", "63")
"""The number of read(2) on x86-64, and on arm64."""


def awaits_an_answer(agent):
    """Whether a thread of the agent reads from a socket: that of the JVM, for it has no other."""
    folder = Path(f"/proc/{agent.process.pid}")
    for task in (folder / "task").iterdir():
        try:
            number, fd, *_ = [*(task / "syscall").read_text().split(), ""]
            if number in READ and os.readlink(folder / "fd" / str(int(fd, 16))).startswith("socket:"):
                return True
        except OSError:  # it has ended, or closed that, by now
            pass
    return False


def start_and_kill(killed):
    killed.send("start")
    wait_for("the start to be sent", lambda: awaits_an_answer(killed))
    killed.kill()


@pytest.mark.nightly
@pytest.mark.parametrize("duration", [60, 1], ids=["cleaned up", "its own limit"])
def test_a_profiler_that_starts_only_when_its_agent_is_gone(new_agent, agent, burn, duration):
    burner, killed = burn(), new_agent()
    pid = burner.outer.pid
    assert killed.prepare(burner, duration=duration)[0]
    with still(pid, "Attach Listener"):
        start_and_kill(killed)
    wait_for("it to start", lambda: is_profiled(pid))
    if duration == 60:
        assert of_pid(agent.leftovers(), pid)["profiler"]["state"] == "left"
        assert agent.clean()["stopped"] == [pid]
        assert not is_profiled(pid)
    wait_for("it to end", lambda: not is_profiled(pid))
    assert not agent.clean()["failed"]
