"""What a hostile user plants where the agent, or a JVM, will look: it is neither used nor obeyed."""

from __future__ import annotations

import os
import shutil
import socket
from pathlib import Path

import pytest

from tests.contract.agent_driver import good
from tests.contract.cleaning import listed, of_pid, remove
from tests.contract.conftest import OTHER_USER, found
from tests.contract.test_agent_namespaces import burn_contained  # noqa: F401

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: JVMs and files of other users")
ATTACKER = OTHER_USER + 1


def record(agent, library, burner):
    ready, refused = agent.prepare(library, found(agent, burner), duration=1)
    assert ready, refused
    agent.start()
    return agent.collect().outcomes[burner.outer.pid]


@pytest.mark.parametrize(
    ("owner", "why"), [(ATTACKER, "not permitted"), (OTHER_USER, "is that of process")], ids=["other", "same"]
)
def test_a_socket_of_another_process_is_told_nothing(agent, library, burn, owner, why):
    """Of another user it is not even connected to."""
    burner = burn(user=OTHER_USER)
    path = Path(f"/tmp/.java_pid{burner.outer.pid}")
    with socket.socket(socket.AF_UNIX) as planted:
        planted.bind(str(path))
        planted.listen()
        os.chown(path, owner, owner)
        try:
            ready, refused = agent.prepare(library, found(agent, burner))
            assert not ready and why in refused[burner.outer.pid]["reason"], refused
            planted.setblocking(False)
            if owner == ATTACKER:
                with pytest.raises(BlockingIOError):
                    planted.accept()
            else:
                assert planted.accept()[0].recv(100) == b""
        finally:
            path.unlink()
    assert not any("Full thread dump" in line for line in burner.other_lines), "it was not signalled"


@pytest.mark.parametrize("owner", [ATTACKER, OTHER_USER], ids=["other", "same"])
def test_a_library_that_was_there_before_is_not_loaded(agent, library, burn, owner):
    burner = burn(user=OTHER_USER)
    folder = Path(f"/tmp/.hprofiler-ap-{library[:16]}-{OTHER_USER}")
    folder.mkdir(mode=0o700)
    planted = folder / "libasyncProfiler.so"
    planted.write_bytes(b"hostile")
    for path in (folder, planted):
        os.chown(path, owner, owner)
    try:
        assert good(record(agent, library, burner))
        mapped = {line.split()[-1] for line in burner_maps(burner) if "libasyncProfiler" in line}
        assert owner == OTHER_USER or not any(path.startswith("/tmp/") for path in mapped), mapped
        # The user's own is replaced, by renaming; the attacker's stays as it is.
        assert not planted.exists() or (owner == ATTACKER and planted.read_bytes() == b"hostile")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def burner_maps(burner):
    return [
        line.removesuffix(" (deleted)")
        for line in Path(f"/proc/{burner.outer.pid}/maps").read_text().splitlines()
    ]


def plant_folders(folder, kind):
    """More folders of an attacker's than are looked into, called as those of sessions are."""
    for number in range(10_001):
        path = folder / f".hprofiler-run-{kind}-{number}-{OTHER_USER}"
        path.mkdir(mode=0o700)
        os.chown(path, ATTACKER, ATTACKER)


def test_folders_hide_no_session_from_who_cleans_up(
    start_agent,
    agent,
    library_file,
    burn_contained,  # noqa: F811
):
    """Made before and after its own, so that they come first in whatever order a folder is read."""
    burner, living = burn_contained(user=OTHER_USER), start_agent()
    tmp = Path(f"/proc/{burner.outer.pid}/root/tmp")
    living.hello()
    library = living.put(library_file.read_bytes())
    plant_folders(tmp, "before")
    ready, refused = living.prepare(library, found(living, burner), duration=60)
    assert ready, refused
    living.start()
    plant_folders(tmp, "after")
    profiler = of_pid(listed(agent), burner.outer.pid)["profiler"]
    assert profiler["state"] == "used", profiler
    assert not remove(agent, profiler)["stopped"]
    living.send("stop")
    assert good(living.collect().outcomes[burner.outer.pid])
