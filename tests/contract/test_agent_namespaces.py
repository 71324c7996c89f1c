"""JVMs that live in a mount and pid namespace of their own, as containers' do, with another /tmp."""

from __future__ import annotations

import fcntl
import os
import signal
import tempfile
import time
from pathlib import Path

import pytest

from hprofiler._flamegraph import Profile
from tests.burners import build
from tests.burners.burner import HOT, Burner
from tests.contract.agent_driver import good
from tests.contract.cleaning import clean
from tests.contract.conftest import (
    OTHER_USER,
    as_burnt,
    as_user,
    found,
    is_profiled,
    namespace_tmp,
    open_classes,
)
from tests.lab import attach, procs

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: namespaces")


OWN_TMP = "mount -t tmpfs -o mode=1777 tmpfs /tmp"


def contained(setup=OWN_TMP, user=None, mapped=False):
    """What starts a command in namespaces of its own, after `setup` there.

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
def burn_contained():
    burners = []

    def start(setup=OWN_TMP, user=None, mapped=False, **more):
        burners.append(Burner(wrap=contained(setup, user, mapped), **more))
        return burners[-1]

    yield start
    for burner in burners:
        burner.kill()


def record(agent, library, burner, duration=1):
    ready, refused = agent.prepare(library, found(agent, burner), duration=duration)
    assert ready == [burner.outer.pid], refused
    agent.start()
    return agent.collect()


@pytest.mark.parametrize("user", [None, OTHER_USER])
def test_a_jvm_with_its_own_tmp(agent, library, burn_contained, user):
    burner = burn_contained(user=user)
    (process,) = found(agent, burner)
    assert process["namespace_pid"] == burner.pid != burner.outer.pid
    assert process["uid"] == (user or 0)
    result = record(agent, library, burner)
    assert good(result.outcomes[burner.outer.pid])
    assert as_burnt(result.profiles[burner.outer.pid])
    assert namespace_tmp(burner) == []
    assert not is_profiled(burner.outer.pid)


def test_a_jvm_that_is_root_in_a_user_namespace(agent, library, burn_contained):
    burner = burn_contained(user=OTHER_USER, mapped=True)
    (process,) = found(agent, burner)
    assert process["uid"] == OTHER_USER
    result = record(agent, library, burner)
    assert good(result.outcomes[burner.outer.pid])
    assert as_burnt(result.profiles[burner.outer.pid])
    assert namespace_tmp(burner) == []


def test_an_agent_that_may_not_enter_the_namespace(start_agent, library_file, burn_contained):
    """Of the JVM's own user, but not root: it goes through /proc/PID/root."""
    burner = burn_contained(user=OTHER_USER)
    agent = start_agent(user=OTHER_USER)
    agent.hello()
    result = record(agent, agent.put(library_file.read_bytes()), burner)
    assert good(result.outcomes[burner.outer.pid]) and result.left == []
    assert as_burnt(result.profiles[burner.outer.pid])
    assert namespace_tmp(burner) == []
    assert not is_profiled(burner.outer.pid)


def test_the_library_is_put_where_it_can_be_run(agent, library, burn_contained):
    noexec = "mount -t tmpfs -o mode=1777,noexec tmpfs /tmp && mount -t tmpfs -o mode=1777 tmpfs /var/tmp"
    burner = burn_contained(noexec, user=OTHER_USER)
    ready, refused = agent.prepare(library, found(agent, burner), duration=1)
    assert ready == [burner.outer.pid], refused
    folder = Path(f"/proc/{burner.outer.pid}/root/var/tmp/.hprofiler-ap-{library[:16]}-{OTHER_USER}")
    assert [path.name for path in folder.iterdir()] == ["libasyncProfiler.so"]
    assert folder.stat().st_mode & 0o7777 == 0o700
    agent.start()
    result = agent.collect()
    assert good(result.outcomes[burner.outer.pid]) and result.left == []
    assert not folder.exists()


def test_no_folder_will_do(agent, library, burn_contained):
    mounts = [f"mount -t tmpfs -o mode=1777,noexec tmpfs {path}" for path in ("/tmp", "/var/tmp", "/dev/shm")]
    burner = burn_contained(" && ".join([*mounts, "cd /proc"]), user=OTHER_USER)
    ready, refused = agent.prepare(library, found(agent, burner))
    assert ready == []
    outcome = refused[burner.outer.pid]
    assert "/tmp is mounted noexec" in outcome["reason"] and "noexec" in outcome["remedy"]
    assert namespace_tmp(burner) == []


def test_what_a_container_wrote_is_read_after_its_end(agent, library, burn_contained):
    burner = burn_contained(user=OTHER_USER)
    ready, refused = agent.prepare(library, found(agent, burner), duration=5)
    assert ready == [burner.outer.pid], refused
    agent.start()
    time.sleep(2)  # what is tested is that time is recorded
    burner.outer.kill(signal.SIGTERM)
    result = agent.collect()
    outcome = result.outcomes[burner.outer.pid]
    assert outcome["status"] == "degraded" and "ended after" in outcome["reason"]
    assert as_burnt(result.profiles[burner.outer.pid])
    assert result.left == []


@pytest.mark.nightly
def test_traps_in_a_shared_tmp(agent, library, burn):
    """Another user lays links where the agent will write; nothing is written through them."""
    home, victim = Path(tempfile.mkdtemp()), Path(tempfile.mkdtemp())
    os.chown(home, OTHER_USER, OTHER_USER)
    burner = burn(user=OTHER_USER, cwd=str(home))
    session = procs.Identity.of(agent.process.pid)
    traps = [
        Path(f"/tmp/.hprofiler-ap-{library[:16]}-{OTHER_USER}"),
        Path(f"/tmp/.hprofiler-run-{session.pid}-{session.start_time}-{OTHER_USER}"),
        Path(f"/tmp/.attach_pid{burner.outer.pid}"),
    ]
    victim.chmod(0o777)
    for trap in traps:
        trap.symlink_to(victim)
        os.lchown(trap, OTHER_USER + 1, OTHER_USER + 1)
    try:
        result = record(agent, library, burner, duration=1)
        assert good(result.outcomes[burner.outer.pid])
        assert not [*victim.iterdir(), *home.iterdir()]
    finally:
        for trap in traps:
            trap.unlink()
        victim.rmdir()
        home.rmdir()


def test_cleaning_reaches_into_containers(start_agent, library_file, burn_contained):
    burner = burn_contained(user=OTHER_USER)
    killed = start_agent()
    killed.hello()
    killed.prepare(killed.put(library_file.read_bytes()), found(killed, burner), duration=60)
    killed.start()
    killed.process.kill()
    killed.wait()
    assert len(namespace_tmp(burner)) == 2
    cleaner = start_agent()
    cleaner.hello()
    cleaned = clean(cleaner, kept=True)
    assert burner.outer.pid in cleaned["stopped"]
    assert namespace_tmp(burner) == []
    assert not is_profiled(burner.outer.pid)


@pytest.mark.nightly
def test_a_folder_that_is_never_let_go(agent, library, burn):
    """Its user holds it, as a session that deletes it would: another place is taken."""
    burner = burn(user=OTHER_USER)
    held = Path(f"/tmp/.hprofiler-ap-{library[:16]}-{OTHER_USER}")
    held.mkdir(mode=0o700)
    os.chown(held, OTHER_USER, OTHER_USER)
    descriptor = os.open(held, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        result = record(agent, library, burner, duration=1)
        assert good(result.outcomes[burner.outer.pid]) and result.left == []
    finally:
        os.close(descriptor)
        held.rmdir()


@pytest.mark.nightly
def test_a_frozen_jvm_does_not_hold_up_the_others(agent, library, burn):
    """As `docker pause` does it: it looks alive and never answers."""
    mounts = [line.split() for line in Path("/proc/mounts").read_text().splitlines()]
    cgroups = next((Path(mount[1]) for mount in mounts if mount[2] == "cgroup2"), None)
    if cgroups is None:
        pytest.skip("no cgroup v2 is mounted")
    group = cgroups / "hprofiler-contract"
    group.mkdir()
    frozen, other = burn(), burn(role="beta")
    try:
        (group / "cgroup.procs").write_text(str(frozen.outer.pid))
        (group / "cgroup.freeze").write_text("1")
        procs.wait_for(
            "the freezing", lambda: "frozen 1" in (group / "cgroup.events").read_text(), procs.PATIENCE
        )
        ready, refused = agent.prepare(library, found(agent, frozen, other), duration=1)
        assert ready == [other.outer.pid]
        assert "SIGQUIT" in refused[frozen.outer.pid]["reason"]
        agent.start()
        assert good(agent.collect().outcomes[other.outer.pid])
    finally:
        (group / "cgroup.freeze").write_text("0")
        frozen.kill()
        group.rmdir()


@pytest.mark.nightly
@pytest.mark.parametrize("together", [True, False], ids=["in one session's recording", "one after the other"])
def test_jvms_of_one_number_in_one_tmp(agent, library, burn_contained, tmp_path, together):
    """Each is the same number in its own pid namespace; only one can have that number's attach socket."""
    tmp_path.chmod(0o1777)
    share = f"mount --bind {tmp_path} /tmp"
    burners = {role: burn_contained(share, role=role) for role in ("alpha", "beta")}
    pids = {role: burner.outer.pid for role, burner in burners.items()}
    assert len({process["namespace_pid"] for process in found(agent, *burners.values())}) == 1
    refused, profiles = {}, {}
    for group in [list(burners.values())] if together else [[burner] for burner in burners.values()]:
        _, outcomes = agent.prepare(library, found(agent, *group), duration=1)
        refused.update(outcomes)
        agent.start()
        profiles.update(agent.collect().profiles)
    assert len(profiles) == len(refused) == 1, refused
    for role, pid in pids.items():
        other = pids["beta" if role == "alpha" else "alpha"]
        if pid in profiles:
            folded = Profile.from_bytes(profiles[pid]).to_folded(1, False).decode()
            assert HOT[role] in folded and HOT["beta" if role == "alpha" else "alpha"] not in folded
        else:
            assert all(f"process {number}" in refused[pid]["reason"] for number in (pid, other))
            assert "/tmp" in refused[pid]["remedy"]
            assert not attach.profiler_libraries(pid)
    assert not [path for path in tmp_path.iterdir() if path.name.startswith((".hprofiler", ".attach"))]
    for burner in burners.values():
        burner.finish()
        assert "Full thread dump" not in "\n".join(burner.other_lines)
