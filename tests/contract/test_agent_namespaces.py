"""JVMs that live in a mount and pid namespace of their own, as containers' do, with another /tmp."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import tempfile
from pathlib import Path

import pytest

from tests.burners.burner import HOT
from tests.contract.agent_driver import LEAST, WORK, good
from tests.contract.conftest import OTHER_USER, OWN_TMP, is_profiled, namespace_tmp
from tests.lab import attach, procs

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: namespaces")


@pytest.mark.parametrize(
    ("agent_user", "where"),
    [
        (None, {}),
        (None, {"user": OTHER_USER}),
        (None, {"user": OTHER_USER, "mapped": True}),
        (None, {"setup": f"{OWN_TMP} && mount -o remount,bind,ro /"}),
        (OTHER_USER, {"user": OTHER_USER}),
    ],
    ids=["root", "user", "root of a user namespace", "read-only root", "agent that may not enter"],
)
def test_a_jvm_with_its_own_tmp(new_agent, burn_contained, agent_user, where):
    """An agent that is not root goes through /proc/PID/root."""
    agent, burner = new_agent(user=agent_user), burn_contained(**where)
    (process,) = agent.found(burner)
    assert process["namespace_pid"] == burner.pid != burner.outer.pid
    assert process["uid"] == where.get("user", 0)
    assert agent.record_work(burner).is_good()
    assert namespace_tmp(burner) == []
    assert where.get("mapped") or not is_profiled(burner.outer.pid)  # root cannot write there, and so not ask


def test_the_library_is_put_where_it_can_be_run(agent, burn_contained):
    noexec = "mount -t tmpfs -o mode=1777,noexec tmpfs /tmp && mount -t tmpfs -o mode=1777 tmpfs /var/tmp"
    burner = burn_contained(noexec, user=OTHER_USER)
    ready, refused = agent.prepare(burner)
    assert ready, refused
    folder = Path(f"/proc/{burner.outer.pid}/root/var/tmp/.hprofiler-ap-{agent.library()[:16]}-{OTHER_USER}")
    assert [path.name for path in folder.iterdir()] == ["libasyncProfiler.so"]
    assert folder.stat().st_mode & 0o7777 == 0o700
    agent.start()
    result = agent.collect()
    assert good(result.of(burner).outcome) and result.left == []
    assert not folder.exists()


def test_no_folder_will_do(agent, burn_contained):
    mounts = [f"mount -t tmpfs -o mode=1777,noexec tmpfs {path}" for path in ("/tmp", "/var/tmp", "/dev/shm")]
    burner = burn_contained(" && ".join([*mounts, "cd /proc"]), user=OTHER_USER)
    outcome = agent.refuse(burner)
    assert "/tmp is mounted noexec" in outcome["reason"] and "noexec" in outcome["remedy"]
    assert namespace_tmp(burner) == []


def test_a_recording_is_read_after_the_end_of_its_container(agent, burn_contained):
    burner = burn_contained(user=OTHER_USER)
    agent.begin(burner, duration=120)
    burner.burn(WORK)
    burner.outer.kill(signal.SIGTERM)
    result = agent.collect()
    done = result.of(burner)
    assert done.outcome["status"] == "degraded" and "ended after" in done.outcome["reason"]
    assert done.head()["samples"]["taken"] > LEAST and result.left == []


@pytest.mark.nightly
def test_traps_in_a_shared_tmp(agent, burn):
    """Another user lays links where the agent will write; nothing is written through them."""
    home, victim = Path(tempfile.mkdtemp()), Path(tempfile.mkdtemp())
    os.chown(home, OTHER_USER, OTHER_USER)
    victim.chmod(0o777)
    burner = burn(user=OTHER_USER, cwd=str(home))
    session = procs.Identity.of(agent.process.pid)
    traps = [
        Path(f"/tmp/.hprofiler-ap-{agent.library()[:16]}-{OTHER_USER}"),
        Path(f"/tmp/.hprofiler-run-{session.pid}-{session.start_time}-{OTHER_USER}"),
        Path(f"/tmp/.attach_pid{burner.outer.pid}"),
    ]
    for trap in traps:
        trap.symlink_to(victim)
        os.lchown(trap, OTHER_USER + 1, OTHER_USER + 1)
    try:
        assert good(agent.record(burner).outcome)
        assert not [*victim.iterdir(), *home.iterdir()]
    finally:
        for trap in traps:
            trap.unlink()
        victim.rmdir()
        home.rmdir()


def test_cleaning_reaches_into_containers(new_agent, burn_contained):
    burner, killed = burn_contained(user=OTHER_USER), new_agent()
    killed.begin(burner, duration=60)
    killed.kill()
    assert len(namespace_tmp(burner)) == 2
    assert burner.outer.pid in new_agent().clean()["stopped"]
    assert namespace_tmp(burner) == [] and not is_profiled(burner.outer.pid)


@pytest.mark.nightly
def test_a_folder_that_is_never_let_go(agent, burn):
    """Its user holds it, as a session that deletes it would: another place is taken."""
    burner = burn(user=OTHER_USER)
    held = Path(f"/tmp/.hprofiler-ap-{agent.library()[:16]}-{OTHER_USER}")
    held.mkdir(mode=0o700)
    os.chown(held, OTHER_USER, OTHER_USER)
    descriptor = os.open(held, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        assert good(agent.record(burner).outcome)
    finally:
        os.close(descriptor)
        held.rmdir()


@pytest.mark.nightly
def test_jvms_of_one_number_in_one_tmp(agent, burn_contained, tmp_path):
    """Each is the same number in its own pid namespace; only one can have that number's attach socket."""
    tmp_path.chmod(0o1777)
    share = f"mount --bind {tmp_path} /tmp"
    burners = [burn_contained(share, role=role) for role in ("alpha", "beta")]
    pids = [burner.outer.pid for burner in burners]
    assert len({process["namespace_pid"] for process in agent.found(*burners)}) == 1
    (ready,), refused = agent.prepare(*burners)
    ((pid, outcome),) = refused.items()
    assert all(f"process {number}" in outcome["reason"] for number in pids) and "/tmp" in outcome["remedy"]
    assert not attach.profiler_libraries(pid)
    agent.start()
    done, own = agent.collect().of(ready), burners[pids.index(ready)]
    frames = " ".join(frame for stack, _ in done.stacks() for frame in stack)
    assert [role for role, hot in HOT.items() if hot in frames] == [own.role]
    assert not [path for path in tmp_path.iterdir() if path.name.startswith((".hprofiler", ".attach"))]
    for burner in burners:
        burner.finish()
        assert "Full thread dump" not in "\n".join(burner.other_lines)


@pytest.mark.nightly
def test_clocks_of_another_time_namespace(new_agent, burn):
    """Times since the boot are others there than the JVM's own."""
    enter = ["unshare", "--time", "--fork", "--boottime", "86400", "--monotonic", "86400"]
    if subprocess.run([*enter, "true"], check=False, capture_output=True).returncode:
        pytest.skip("time namespaces cannot be made here")
    head = new_agent(by=enter).record(burn(), duration=2).head()
    assert 1.9 <= head["seconds"] < 30
