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

from tests.contract import cleaning
from tests.contract.agent_driver import Agent, leftovers
from tests.contract.cleaning import HASH, clean, listed, of_pid
from tests.contract.conftest import OTHER_USER, as_user, found, is_profiled, waits_until_gone
from tests.contract.perf_engine import perf_at_work, prepare, processes
from tests.lab import procs
from tests.lab.procs import wait_for

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: agents and JVMs of other users")
PERF_OF_OLD = {"PATH": "/usr/bin:/bin", "LC_ALL": "C", "PERF_CONFIG": "/dev/null"}
PERF = {**PERF_OF_OLD, "HPROFILER_AGENT": "1"}
"""All that agents give perf."""


def own_folders(entries, agent):
    """The entries of the run folders of an agent's session."""
    own = f"/.hprofiler-run-{agent.process.pid}-"
    return [entry for entry in entries if own in entry["path"]]


@pytest.fixture
def cleaner(agent):
    return agent


@pytest.fixture
def another_version(agent_binary, library_file):
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
            agent = Agent([*(as_user(user) if user else []), str(path)])
            ends.callback(agent.end)
            ends.callback(agent.process.kill)
            agent.hello(lease=lease)
            return agent

        yield start


def begin(agent, library_file, burner, duration=60):
    library = agent.put(library_file.read_bytes())
    ready, refused = agent.prepare(library, found(agent, burner), duration=duration)
    assert ready, refused
    agent.start()
    assert is_profiled(burner.outer.pid)


def test_a_killed_agent_is_listed_by_what_it_left_and_removed_by_that_list(
    start_agent, cleaner, library_file, burn
):
    burner, killed = burn(user=OTHER_USER), start_agent()
    killed.hello()
    begin(killed, library_file, burner)
    live = listed(cleaner)
    assert of_pid(live, killed.process.pid)["agent"]["state"] == "used"
    assert of_pid(live, burner.outer.pid)["profiler"]["state"] == "used"
    assert [entry["state"] for entry in own_folders(live, killed)] == ["used"]
    killed.process.kill()
    killed.wait()
    entries = listed(cleaner)
    profiler, (folder,) = of_pid(entries, burner.outer.pid)["profiler"], own_folders(entries, killed)
    assert (profiler["state"], folder["state"]) == ("left", "left")
    assert folder["user"] == str(OTHER_USER) and folder["bytes"] > 0
    assert is_profiled(burner.outer.pid), "a list touches nothing"
    cleaned = clean(cleaner)
    assert burner.outer.pid in cleaned["stopped"] and folder["path"] in cleaned["removed"], cleaned
    assert not is_profiled(burner.outer.pid)


@pytest.mark.nightly
def test_an_agent_of_another_version_that_is_stopped(another_version, start_agent, library_file, burn):
    """As a user whose agents nobody else ends."""
    burner, cleaner = burn(user=OTHER_USER), start_agent(user=OTHER_USER)
    cleaner.hello()
    agent = another_version(lease=14, user=OTHER_USER)
    begin(agent, library_file, burner)
    agent.process.send_signal(signal.SIGSTOP)
    before = listed(cleaner)
    waiting, (folder,) = of_pid(before, agent.process.pid)["agent"], own_folders(before, agent)
    profiler = of_pid(before, burner.outer.pid)["profiler"]
    assert [entry["state"] for entry in (waiting, folder, profiler)] == ["used"] * 3, before
    assert "lease ends in" in waiting["reason"]

    def is_left():
        return of_pid(listed(cleaner), agent.process.pid)["agent"]["state"] == "left"

    wait_for("the end of its lease", is_left)
    entries = listed(cleaner)
    (folder,) = own_folders(entries, agent)
    assert folder["state"] == "left", folder
    profiler = of_pid(entries, burner.outer.pid)["profiler"]
    assert profiler["state"] == "left", profiler
    cleaned = clean(cleaner)
    assert cleaned["ended"] == [agent.process.pid], cleaned
    assert not cleaned["failed"]
    assert not own_folders(listed(cleaner), agent) and not is_profiled(burner.outer.pid)
    wait_for("nothing of it", lambda: not leftovers())


def test_one_that_lives_goes_on(another_version, cleaner):
    agent = another_version(lease=30)
    entry = of_pid(listed(cleaner), agent.process.pid)["agent"]
    assert entry["state"] == "used"
    assert agent.process.pid not in clean(cleaner)["ended"]
    assert agent.bye() == 0


def test_jvms_that_a_user_may_not_look_into_are_counted(start_agent, burn):
    burn()
    cleaner = start_agent(user=OTHER_USER)
    cleaner.hello()
    counts = {one["user"]: one["jvms"] for one in cleaning.list_event(cleaner)["out_of_reach"]}
    assert counts["root"] >= 1


@contextmanager
def process(*words, env=None, user=None):
    running = subprocess.Popen([*(as_user(user) if user else []), *words], env=env)
    try:
        yield running
    finally:
        running.kill()
        running.wait()


def wait_until_run(running, name):
    wait_for(name, lambda: Path(f"/proc/{running.pid}/exe").resolve().name == name)


def test_what_only_looks_like_ours_is_no_agent(cleaner, tmp_path):
    sleeper = Path(shutil.which("sleep")).resolve().read_bytes()
    named, honest = tmp_path / f"agent-{HASH * 4}", hashlib.sha256(sleeper).hexdigest()
    right = tmp_path / f"agent-{honest}"
    for path in (named, right):
        path.write_bytes(sleeper)
        path.chmod(0o755)
    for folder in (tmp_path, *tmp_path.parents[:2]):
        folder.chmod(0o755)
    with ExitStack() as stack:
        running = [
            stack.enter_context(process(str(path), "600", user=user))
            for path, user in ((named, None), (right, None), (right, OTHER_USER))
        ]
        for one, path in zip(running, (named, right, right), strict=False):
            wait_until_run(one, path.name)
            one.send_signal(signal.SIGSTOP)
        entries = listed(cleaner)
        states = [of_pid(entries, one.pid)["agent"] for one in running]
        assert [entry["state"] for entry in states] == ["foreign"] * 3
        assert str(OTHER_USER) in states[2]["reason"]
        assert not clean(cleaner)["ended"]
        assert [one.poll() for one in running] == [None] * 3


def test_a_perf_whose_agent_is_gone_is_ended_and_no_other(start_agent):
    """All as a user whom nobody else cleans up after."""
    cleaner, other = start_agent(user=OTHER_USER), {**PERF, "HOME": "/root"}
    cleaner.hello()
    with ExitStack() as stack:
        orphan, somebodys, unmarked = (
            stack.enter_context(process("sleep", "600", env=env, user=OTHER_USER))
            for env in (PERF, other, PERF_OF_OLD)
        )
        for running in (orphan, somebodys, unmarked):
            wait_until_run(running, Path(shutil.which("sleep")).resolve().name)
        entries = listed(cleaner)
        assert not of_pid(entries, somebodys.pid)
        assert not of_pid(entries, unmarked.pid), "no perf, and not run by one"
        program = of_pid(entries, orphan.pid)["program"]
        assert program["state"] == "left" and clean(cleaner)["ended"] == [orphan.pid]
        orphan.wait(procs.PATIENCE)
        assert somebodys.poll() is None


@pytest.mark.nightly
def test_a_perf_ends_with_its_agent_even_if_it_was_stopped(start_agent, cleaner, burn):
    """Told by the kernel: there is nothing for `clean` to do."""
    killed = start_agent()
    killed.hello()
    assert prepare(killed, processes(killed, burn()), duration=60)[0]
    killed.start()
    perf = perf_at_work(killed)
    family = [one for pid in procs.family(perf.pid) if (one := procs.Identity.of(pid))]
    perf.suspend()
    assert not of_pid(listed(cleaner), perf.pid), "what an agent that lives runs is its own"
    killed.process.kill()
    killed.wait()
    for one in (perf, *family):
        waits_until_gone(one)
    assert not [entry for entry in own_folders(listed(cleaner), killed) if entry["state"] != "left"]
    assert not clean(cleaner)["failed"]
    assert not own_folders(listed(cleaner), killed)
