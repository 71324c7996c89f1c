"""Fixtures of the agent's contract tests: the built binary, async-profiler's library, JVMs to record."""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import functools
import hashlib
import itertools
import os
import platform
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.burners import build
from tests.burners.burner import Burner
from tests.contract.agent_driver import Agent, leftovers
from tests.contract.sshd import Site
from tests.lab import attach, jdks, procs
from tests.lab.procs import wait_for
from tests.needed import lacking

ROOT = Path(__file__).resolve().parents[2]
OTHER_USER = 12345
"""A uid without an entry in /etc/passwd."""

EACH_ENGINE_ONCE = pytest.mark.parametrize(
    ("jdk", "engine"),
    [
        (17, "async-profiler"),
        (25, "perf"),
        *(
            pytest.param(jdk, engine, marks=pytest.mark.nightly)
            for jdk, engine in ((8, "async-profiler"), (8, "perf"), (17, "perf"), (25, "async-profiler"))
        ),
    ],
)
LATER_JDK = pytest.param(25, marks=pytest.mark.nightly)
"""For what differs little between the daily JDKs."""

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
def new_agent(private: Path) -> Iterator[StartAgent]:
    """Starts agents as coordinators do without sudo, and greets them; all are ended.

    `user` and `rights` (words of setpriv) say as whom, `by` are words of a command before the agent's own,
    `perf` is a file in the place of the host's perf.
    """
    agents: list[Agent] = []

    def start(
        user: int | None = None,
        by: Sequence[object] = (),
        rights: Sequence[str] = (),
        perf: Path | None = None,
        env: dict[str, str] | None = None,
        **hello: Any,
    ) -> Agent:
        command = [*(with_perf(perf) if perf else []), *by]
        if user is not None:
            os.chown(private.parent, user, user)
            os.chown(private, user, user)
            command += [*as_user(user), *rights]
        agents.append(Agent([*command, private, "--any-library"], env))
        agents[-1].hello(**hello)
        return agents[-1]

    yield start
    for agent in agents:
        agent.end()


def with_perf(perf: Path) -> list[object]:
    """The words before a command for which this file stands in the place of the host's perf."""
    there = Path(shutil.which("perf") or lacking("perf is not installed")).resolve()
    script = 'mount --bind "$1" "$2" && shift 2 && exec "$@"'
    return ["unshare", "-m", "sh", "-c", script, "sh", perf, there]


def executable(path: Path, text: str, mode: int = 0o755) -> Path:
    path.write_text(text)
    path.chmod(mode)
    return path


@pytest.fixture
def agent(new_agent: StartAgent) -> Agent:
    return new_agent()


@pytest.fixture
def burn(tmp_path: Path, keep_program: Callable[[Burner], Burner]) -> Burn:
    """Starts burners on a JDK (`jdk=17`) as a user (`user=12345`), with environment (`env`), in a
    folder (`cwd`), by a command (`prefix`)."""
    launchers = itertools.count()

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
        java = str(jdks.home(jdk) / "bin" / "java") if jdk else "java"
        launcher = tmp_path / f"launch-{next(launchers)}" / "java"
        launcher.parent.mkdir()
        launcher.write_text(f'#!/bin/sh\ncd {cwd} && exec {" ".join(words)} {java} "$@"\n')
        launcher.chmod(0o755)
        return keep_program(Burner(java=str(launcher), options=options, **more))

    return start


@functools.cache
def open_classes() -> Path:
    """The burner's classes where every user can read them."""
    folder = Path(tempfile.mkdtemp(prefix="hprofiler-contract-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    folder.chmod(0o755)
    return Path(shutil.copytree(build.classes(), folder / "classes"))


def as_user(user: int) -> list[str]:
    return ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"]


@pytest.fixture(scope="session")
def untouched() -> Iterator[Burner]:
    """A JVM in which nothing is ever loaded, for all that is refused."""
    made = Burner(load=0.1)
    yield made
    made.kill()


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    """No test may leave anything beside a JVM."""
    before = set(leftovers())
    yield
    # Sessions of somebody else on this machine may be about to delete theirs.
    wait_for("nothing left behind", lambda: set(leftovers()) <= before)


def perf_of(agent: Agent) -> procs.Identity | None:
    """The perf that an agent has running."""
    perfs = (pid for pid in procs.children(agent.process.pid) if procs.name(pid).startswith("perf"))
    return next(map(procs.Identity.of, perfs), None)


def perf_at_work(agent: Agent) -> procs.Identity:
    """The perf that records for an agent; the kernel may leave it out while another child ends."""
    return procs.wait_for("perf", lambda: perf_of(agent))


def is_profiled(pid: int) -> bool:
    """Whether any async-profiler in this JVM is recording, by its own word."""
    libraries = [path for path in attach.profiler_libraries(pid) if "syncProfiler" in path]
    return any("not active" not in attach.profiling_status(pid, library) for library in libraries)


OWN_TMP = "mount -t tmpfs -o mode=1777 tmpfs /tmp"


def contained(
    setup: str = OWN_TMP, user: int | None = None, mapped: bool = False
) -> Callable[[Sequence[str]], list[str]]:
    """What starts a command in a mount and pid namespace of its own, after `setup` there.

    It runs as `user`; with `mapped` as root of a user namespace that this user made.
    """
    become = as_user(user) if user is not None else []
    inner, outer = ([], [*become, "unshare", "--user", "--map-root-user"]) if mapped else (become, [])
    classes = str(build.classes())
    script = f'cp -r {open_classes()} /run/classes && {setup} && exec {" ".join(inner)} "$@"'
    inside = ["sh", "-c", f"mount -t tmpfs tmpfs /run && {script}", "sh"]
    enter = [*outer, "unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
    return lambda argv: [*enter, *inside, *(word.replace(classes, "/run/classes") for word in argv)]


@pytest.fixture
def burn_contained(keep_program: Callable[[Burner], Burner]) -> Burn:
    """Starts burners in namespaces of their own, as `contained` has them."""

    def start(setup: str = OWN_TMP, user: int | None = None, mapped: bool = False, **more: Any) -> Burner:
        return keep_program(Burner(wrap=contained(setup, user, mapped), **more))

    return start


def a_library() -> Path:
    """Some shared library of this machine, to be given another name."""
    mapped = Path("/proc/self/maps").read_text().split()
    return Path(next(path for path in mapped if path.endswith(".so.6") and "/libm" in path))


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


_LIBC = ctypes.CDLL(None, use_errno=True)
_LIBC.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
_LIBC.ptrace.restype = ctypes.c_long
_SEIZE, _INTERRUPT, _DETACH = 0x4206, 0x4207, 17
_ALL = 0x40000000  # __WALL: of threads as well


@contextlib.contextmanager
def still(pid: int, thread: str) -> Iterator[None]:
    """The threads called so stand still until the end, which has to come on the same thread of ours."""
    held = _called(pid, thread)
    assert held, f"process {pid} has no thread called {thread}"
    seized: list[int] = []
    try:
        for tid in held:
            _ptrace(_SEIZE, tid)
            seized.append(tid)
            _ptrace(_INTERRUPT, tid)
            os.waitpid(tid, _ALL)
        yield
    finally:
        for tid in seized:
            with contextlib.suppress(OSError):  # it has ended
                _ptrace(_DETACH, tid)


def _called(pid: int, thread: str) -> list[int]:
    found = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(OSError):  # it has ended by now
            if (task / "comm").read_text().strip() == thread:
                found.append(int(task.name))
    return found


def _ptrace(request: int, tid: int) -> None:
    if _LIBC.ptrace(request, tid, None, None) < 0:
        error = ctypes.get_errno()
        raise OSError(error, f"ptrace {request:#x} of thread {tid}: {os.strerror(error)}")
