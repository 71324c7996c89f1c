"""What a hostile user plants where the agent, or a JVM, will look: it is neither used nor obeyed."""

from __future__ import annotations

import os
import shutil
import socket
from pathlib import Path

import pytest

from tests.contract.agent_driver import good, of_pid, shipped
from tests.contract.conftest import OTHER_USER, a_library, open_classes

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: JVMs and files of other users"),
]
ATTACKER = OTHER_USER + 1


@pytest.mark.parametrize(
    ("owner", "why"), [(ATTACKER, "not permitted"), (OTHER_USER, "belongs to process")], ids=["other", "same"]
)
def test_nothing_is_sent_to_a_socket_of_another_process(agent, burn, owner, why):
    """Of another user it is not even connected to."""
    burner = burn(user=OTHER_USER)
    path = Path(f"/tmp/.java_pid{burner.outer.pid}")
    with socket.socket(socket.AF_UNIX) as planted:
        planted.bind(str(path))
        planted.listen()
        os.chown(path, owner, owner)
        try:
            assert why in agent.refuse(burner)["reason"]
            planted.setblocking(False)
            if owner == ATTACKER:
                with pytest.raises(BlockingIOError):
                    planted.accept()
            else:
                assert planted.accept()[0].recv(100) == b""
        finally:
            path.unlink()
    assert not any("Full thread dump" in line for line in burner.other_lines), "it was not signalled"


def plant_library(folder, owner=ATTACKER):
    """A hostile one, in the place of a folder that may have been there."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o700)
    (folder / "libasyncProfiler.so").write_bytes(b"hostile")
    for path in (folder, folder / "libasyncProfiler.so"):
        os.chown(path, owner, owner)


def staged(agent):
    return Path(f"/tmp/.hprofiler-ap-{agent.library()[:16]}-{OTHER_USER}")


@pytest.mark.parametrize("owner", [ATTACKER, OTHER_USER], ids=["other", "same"])
def test_a_library_that_was_there_before_is_not_loaded(agent, burn, owner):
    """The user's own is replaced, by renaming; the attacker's stays as it is, and another folder is taken."""
    burner, folder = burn(user=OTHER_USER), staged(agent)
    plant_library(folder, owner)
    try:
        assert good(agent.record(burner).outcome)
        lines = Path(f"/proc/{burner.outer.pid}/maps").read_text().splitlines()
        mapped = {line.removesuffix(" (deleted)").split()[-1] for line in lines if "libasyncProfiler" in line}
        assert owner == OTHER_USER or not any(path.startswith("/tmp/") for path in mapped), mapped
        planted = folder / "libasyncProfiler.so"
        assert not planted.exists() or (owner == ATTACKER and planted.read_bytes() == b"hostile")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.parametrize("whose", ["ours", "another tool's"])
@pytest.mark.parametrize("c_library", ["musl", "glibc"])
def test_a_library_that_replaces_a_loaded_one_is_not_named_to_the_jvm(new_agent, burn, c_library, whose):
    """musl would load it, for it looks for the file. All of musl here is a library of its name."""
    environment, options, audited = {}, [], new_agent(audit=True)
    if c_library == "musl":
        environment["LD_PRELOAD"] = shutil.copy(a_library(), open_classes() / "ld-musl-x86_64.so.1")
    folder = staged(audited) if whose == "ours" else Path(f"/tmp/hprofiler-theirs-{os.getpid()}")
    if whose != "ours":
        folder.mkdir(mode=0o755)
        options = [f"-agentpath:{shutil.copy(shipped('async-profiler'), folder)}"]
    burner = burn(user=OTHER_USER, env=environment, options=options)
    if whose == "ours":
        assert good(new_agent().record(burner).outcome)
    plant_library(folder)
    folder.chmod(0o755)
    try:
        assert not of_pid(audited.leftovers(), burner.outer.pid), "it is idle"
        assert not audited.clean()["failed"]
        assert good(audited.record(burner).outcome)
        assert audited.bye() == 0
        told = [act["detail"] for act in audited.acts if act["what"] == "attach"]
        assert not [detail for detail in told if f" {folder}/" in detail]
        assert (folder / "libasyncProfiler.so").read_bytes() == b"hostile"
    finally:
        shutil.rmtree(folder)
        new_agent().clean()


def test_many_planted_folders_hide_no_live_session_from_cleanup(new_agent, agent, burn_contained):
    """More than are looked into, made before and after its own: so they come first in whatever order."""
    burner, living = burn_contained(user=OTHER_USER), new_agent()
    tmp = Path(f"/proc/{burner.outer.pid}/root/tmp")

    def plant_folders(kind):
        for number in range(10_001):
            path = tmp / f".hprofiler-run-{kind}-{number}-{OTHER_USER}"
            path.mkdir(mode=0o700)
            os.chown(path, ATTACKER, ATTACKER)

    plant_folders("before")
    living.begin(burner, duration=60)
    plant_folders("after")
    assert of_pid(agent.leftovers(), burner.outer.pid)["profiler"]["state"] == "used"
    assert not agent.clean()["stopped"]
    assert good(living.stop().of(burner).outcome)
