"""What a hostile user plants where the agent, or a JVM, will look: it is neither used nor obeyed."""

from __future__ import annotations

import os
import shutil
import socket
from pathlib import Path

import pytest

from tests.contract.agent_driver import good
from tests.contract.cleaning import clean, listed, of_pid
from tests.contract.conftest import OTHER_USER, found, open_classes
from tests.contract.test_agent_namespaces import burn_contained  # noqa: F401

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: JVMs and files of other users"),
]
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


@pytest.fixture(params=[True, False], ids=["musl", "glibc"])
def of_its_c_library(request):
    """What of a JVM's environment has it taken for one on musl. All of musl is a library of its name."""
    if not request.param:
        return {}
    mapped = Path("/proc/self/maps").read_text().split()
    some = next(path for path in mapped if path.endswith(".so.6") and "/libm" in path)
    preloaded = open_classes() / "ld-musl-x86_64.so.1"
    shutil.copy(some, preloaded)
    return {"LD_PRELOAD": str(preloaded)}


@pytest.fixture
def audited(start_agent):
    agent = start_agent()
    agent.send("hello", protocol=2, lease_seconds=30, exclude=None, audit=True)
    agent.expect("hello")
    return agent


def plant_library(folder):
    """An attacker's, where one was that a JVM has loaded."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o755)
    planted = folder / "libasyncProfiler.so"
    planted.write_bytes(b"hostile")
    for path in (folder, planted):
        path.chmod(0o755)
        os.chown(path, ATTACKER, ATTACKER)


def named(agent, folder):
    """What JVMs were told of a folder's library, once the agent has ended."""
    assert agent.bye() == 0
    told = [act["detail"] for act in agent.acts if act["what"] == "attach"]
    return [detail for detail in told if f" {folder}/" in detail]


def test_a_library_that_replaces_a_loaded_one_is_not_named_to_the_jvm(
    agent, library, audited, library_file, burn, of_its_c_library
):
    """musl would load it: it looks for the file, and not for the name."""
    burner = burn(user=OTHER_USER, env=of_its_c_library)
    assert good(record(agent, library, burner))
    folder = Path(f"/tmp/.hprofiler-ap-{library[:16]}-{OTHER_USER}")
    plant_library(folder)
    try:
        assert not of_pid(listed(audited), burner.outer.pid), "it is idle"
        assert not clean(audited, kept=True)["failed"]
        again = record(audited, audited.put(library_file.read_bytes()), burner)
        assert good(again), again
        assert named(audited, folder) == []
        assert (folder / "libasyncProfiler.so").read_bytes() == b"hostile"
    finally:
        shutil.rmtree(folder)
        clean(agent, kept=True)


def test_one_that_replaces_another_tools_is_not_named_to_the_jvm(
    audited, library_file, burn, of_its_c_library
):
    folder = Path(f"/tmp/hprofiler-theirs-{os.getpid()}")
    folder.mkdir(mode=0o755)
    theirs = Path(shutil.copy(library_file, folder / "libasyncProfiler.so"))
    try:
        burner = burn(user=OTHER_USER, env=of_its_c_library, options=[f"-agentpath:{theirs}"])
        plant_library(folder)
        library = audited.put(library_file.read_bytes())
        # It is idle, as far as can be seen from outside.
        assert good(record(audited, library, burner))
        assert not clean(audited, kept=True)["failed"]
        assert named(audited, folder) == []
    finally:
        shutil.rmtree(folder)


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
    assert not clean(agent)["stopped"]
    living.send("stop")
    assert good(living.collect().outcomes[burner.outer.pid])
