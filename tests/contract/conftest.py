"""Fixtures of the agent's contract tests: the built binary, async-profiler's library, JVMs to record."""

from __future__ import annotations

import atexit
import functools
import hashlib
import os
import platform
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from hprofiler._flamegraph import Profile
from tests.burners import build
from tests.burners.burner import Burner
from tests.contract.agent_driver import Agent, leftovers, near
from tests.contract.sshd import Site
from tests.lab import attach, jdks, procs
from tests.lab.procs import wait_for
from tests.needed import lacking

ROOT = Path(__file__).resolve().parents[2]
OTHER_USER = 12345
"""A uid without an entry in /etc/passwd."""

StartAgent = Callable[..., Agent]
Burn = Callable[..., Burner]


def built_agent(arch: str) -> Path:
    """The agent's binary for an architecture; fails the test with a plain message where it is not built."""
    target = Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target")
    named = os.environ.get("HPROFILER_TEST_AGENT") if arch == platform.machine() else None
    places = [Path(named)] if named else []
    places.append(target / f"{arch}-unknown-linux-musl" / "agent" / "hprofiler-agent")
    places.append(ROOT / "hprofiler" / "_data" / "agent" / arch / "hprofiler-agent")
    found = next((place for place in places if place.is_file()), None)
    if found is None:
        tried = ", ".join(map(str, places))
        pytest.fail(f"the agent for {arch} is not built (run make build); looked at {tried}", pytrace=False)
    return found


@pytest.fixture(scope="session")
def agent_binary() -> Path:
    return built_agent(platform.machine())


@pytest.fixture(scope="session")
def library_file() -> Path:
    """async-profiler's library for this machine."""
    shipped = ROOT / "hprofiler" / "_data" / "async-profiler" / platform.machine() / "libasyncProfiler.so"
    path = Path(os.environ.get("HPROFILER_ASYNC_PROFILER") or shipped)
    if not path.is_file():
        pytest.fail(f"async-profiler's library is missing (run make build): {path}", pytrace=False)
    return path


@pytest.fixture
def private(agent_binary: Path) -> Iterator[Path]:
    """The agent in a private folder, as a transport puts it there."""
    folder = Path(tempfile.mkdtemp(prefix="hprofiler-contract-"))
    agent = folder / f"agent-{hashlib.sha256(agent_binary.read_bytes()).hexdigest()}"
    shutil.copy(agent_binary, agent)
    agent.chmod(0o700)
    yield agent
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def start_agent(private: Path) -> Iterator[StartAgent]:
    """Starts agents as coordinators do without sudo, optionally as another user; all are ended.

    `rights` are words of setpriv, for that user.
    """
    agents: list[Agent] = []

    def start(
        user: int | None = None, env: dict[str, str] | None = None, rights: Sequence[str] = ()
    ) -> Agent:
        command = [str(private), "--any-library"]
        if user is not None:
            os.chown(private.parent, user, user)
            os.chown(private, user, user)
            command = [*as_user(user), *rights, *command]
        agents.append(Agent(command, env))
        return agents[-1]

    yield start
    for agent in agents:
        agent.end()


@pytest.fixture
def agent_by() -> Iterator[Callable[..., Agent]]:
    """Starts agents by a command, and greets them; all are ended."""
    agents: list[Agent] = []

    def start(*command: object, env: dict[str, str] | None = None) -> Agent:
        agents.append(Agent([str(word) for word in command], env))
        agents[-1].hello()
        return agents[-1]

    yield start
    for agent in agents:
        agent.end()


@pytest.fixture
def agent(start_agent: StartAgent) -> Agent:
    """One that has been greeted."""
    started = start_agent()
    started.hello()
    return started


@pytest.fixture
def library(agent: Agent, library_file: Path) -> str:
    """The hash of the library, which the agent has."""
    return agent.put(library_file.read_bytes())


@pytest.fixture
def burn(tmp_path: Path) -> Iterator[Burn]:
    """Starts burners on a JDK (`jdk=17`) as a user (`user=12345`), with environment (`env`), in a
    folder (`cwd`), by a command (`prefix`); all are killed."""
    burners: list[Burner] = []

    def start(
        jdk: int | None = None,
        user: int | None = None,
        env: dict[str, str] | None = None,
        options: Sequence[str] = (),
        cwd: str = ".",
        prefix: Sequence[str] = (),
        **more: Any,
    ) -> Burner:
        words = ["env", *[f"{name}={value}" for name, value in (env or {}).items()]]
        if user is not None:
            options = [f"-Xbootclasspath/a:{open_classes()}", *options]
            words += as_user(user)
        words += prefix
        java = str(java_home(jdk) / "bin" / "java") if jdk else "java"
        launcher = tmp_path / f"launch-{len(burners)}" / "java"
        launcher.parent.mkdir()
        launcher.write_text(f'#!/bin/sh\ncd {cwd} && exec {" ".join(words)} {java} "$@"\n')
        launcher.chmod(0o755)
        burners.append(Burner(java=str(launcher), options=options, **more))
        return burners[-1]

    yield start
    for burner in burners:
        burner.outer.kill(18)  # one that is stopped goes on first
        burner.kill()


def java_home(version: int) -> Path:
    try:
        return jdks.home(version)
    except jdks.Unavailable as why:
        lacking(str(why))


@functools.cache
def open_classes() -> Path:
    """The burner's classes where every user can read them."""
    folder = Path(tempfile.mkdtemp(prefix="hprofiler-contract-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    folder.chmod(0o755)
    return Path(shutil.copytree(build.classes(), folder / "classes"))


def as_user(user: int) -> list[str]:
    return ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"]


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    """No test may leave anything beside a JVM."""
    before = set(leftovers())
    yield
    # Sessions of somebody else on this machine may be about to delete theirs.
    wait_for("nothing left behind", lambda: set(leftovers()) <= before)


def found(agent: Agent, *burners: Burner) -> list[dict[str, Any]]:
    """What the agent finds of these burners."""
    processes = agent.find(kind="pids", pids=[burner.outer.pid for burner in burners])["processes"]
    assert len(processes) == len(burners), processes
    return list(processes)


BURNT = {"hot": 0.70, "warm": 0.20, "cool": 0.10}
"""The shares of a burner's CPU time that its works have."""


def as_burnt(profile: bytes) -> bool:
    """That the burner's works have their shares of a profile's samples; AssertionError has their samples."""
    works = dict.fromkeys(BURNT, 0)
    for line in Profile.from_bytes(profile).to_folded(0, False).decode().splitlines():
        stack, _, samples = line.rpartition(" ")
        if "Burner.work" in stack:
            kind = next((name for name in ("warm", "cool") if f"Burner.{name}" in stack), "hot")
            works[kind] += int(samples)
    total = sum(works.values())
    assert total >= LEAST, f"{works}: too few to tell"
    assert all(near(works[name] / total, share, total) for name, share in BURNT.items()), works
    return True


LEAST = 40
"""Samples in which a method of 70 % cannot be missed."""


def is_profiled(pid: int) -> bool:
    """Whether any async-profiler in this JVM is recording, by its own word."""
    libraries = attach.profiler_libraries(pid)
    return any("not active" not in attach.profiling_status(pid, library) for library in libraries)


def namespace_tmp(burner: Burner) -> list[str]:
    """What agents left in the /tmp that a JVM sees."""
    tmp = Path(f"/proc/{burner.outer.pid}/root/tmp")
    return sorted(path.name for path in tmp.iterdir() if path.name.startswith((".hprofiler", ".attach")))


def waits_until_gone(identity: procs.Identity, timeout: float = procs.PATIENCE) -> None:
    procs.wait_for("the end of the process", lambda: not identity.alive(), timeout)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    made = Site(tmp_path)
    yield made
    made.close()
