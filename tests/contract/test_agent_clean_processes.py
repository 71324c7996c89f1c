"""Agents, what they ran and profilers that any version left are listed and ended."""

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

from tests.contract.agent_driver import Agent, at, leftovers, of_pid
from tests.contract.conftest import OTHER_USER, as_user, is_profiled, still
from tests.lab import procs
from tests.lab.procs import wait_for

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: agents and JVMs of other users")
HASH = "0123456789abcdef"
PERF_OF_OLD = {"PATH": "/usr/bin:/bin", "LC_ALL": "C", "PERF_CONFIG": "/dev/null"}
PERF = {**PERF_OF_OLD, "HPROFILER_AGENT": "1"}
"""All that agents give perf."""


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
    cleaner.send("clean", kept=False, dry=True)
    counts = {one["user"]: one["jvms"] for one in cleaner.expect("leftovers")["out_of_reach"]}
    assert counts["root"] >= 1


@contextmanager
def process(*words, env=None, user=None):
    running = subprocess.Popen([*(as_user(user) if user else []), *words], env=env)
    name = Path(shutil.which(words[0])).resolve().name
    try:
        wait_for(name, lambda: Path(f"/proc/{running.pid}/exe").resolve().name == name)
        yield running
    finally:
        running.kill()
        running.wait()


def test_a_process_with_an_agents_name_is_not_an_agent(agent, tmp_path):
    sleeper = Path(shutil.which("sleep")).resolve().read_bytes()
    named, right = (tmp_path / f"agent-{sha}" for sha in (HASH * 4, hashlib.sha256(sleeper).hexdigest()))
    for path in (named, right):
        path.write_bytes(sleeper)
        path.chmod(0o755)
    for folder in (tmp_path, *tmp_path.parents[:2]):
        folder.chmod(0o755)
    started = [
        process(str(named), "600"),
        process(str(right), "600"),
        process(str(right), "600", user=OTHER_USER),
    ]
    with ExitStack() as stack:
        running = [stack.enter_context(one) for one in started]
        for one in running:
            one.send_signal(signal.SIGSTOP)
        entries = agent.leftovers()
        states = [of_pid(entries, one.pid)["agent"] for one in running]
        assert [entry["state"] for entry in states] == ["foreign"] * 3
        assert str(OTHER_USER) in states[2]["reason"]
        assert not agent.clean()["ended"]
        assert [one.poll() for one in running] == [None] * 3


def test_an_orphaned_perf_is_ended(new_agent):
    """All as a user whom nobody else cleans up after."""
    cleaner, environments = new_agent(user=OTHER_USER), (PERF, {**PERF, "HOME": "/root"}, PERF_OF_OLD)
    with ExitStack() as stack:
        started = [process("sleep", "600", env=env, user=OTHER_USER) for env in environments]
        orphan, somebodys, unmarked = (stack.enter_context(one) for one in started)
        entries = cleaner.leftovers()
        assert not of_pid(entries, somebodys.pid)
        assert not of_pid(entries, unmarked.pid), "no perf, and not run by one"
        assert of_pid(entries, orphan.pid)["program"]["state"] == "left"
        assert cleaner.clean()["ended"] == [orphan.pid]
        orphan.wait(procs.PATIENCE)
        assert somebodys.poll() is None


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


@pytest.mark.nightly
def test_the_library_of_a_profiler_that_does_not_answer_stays(new_agent, agent, burn):
    """Without its file a profiler on musl could not be told to stop any more."""
    burner, killed = burn(), new_agent()
    killed.begin(burner, duration=60)
    library = f"/tmp/.hprofiler-ap-{killed.library()[:16]}-0"
    killed.kill()
    with still(burner.outer.pid, "Attach Listener"):
        entry = at(agent.leftovers(), library)
        assert entry["state"] == "used" and "a JVM has its library" in entry["reason"], entry
        agent.clean()
        assert Path(library).is_dir()
    entries = agent.leftovers()
    assert of_pid(entries, burner.outer.pid)["profiler"]["state"] == at(entries, library)["state"] == "left"
    assert not agent.clean()["failed"]
    assert not is_profiled(burner.outer.pid) and not Path(library).exists()
