"""Folders and files that are left over are listed and removed; traps are not."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest

from tests.contract.agent_driver import at
from tests.contract.conftest import OTHER_USER

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: files of other users")

HASH = "0123456789abcdef"


@pytest.fixture
def plant():
    """Makes folders in /tmp with names of ours; all are removed."""
    made = []

    def folder(name, user=0, mode=0o700):
        path = Path("/tmp") / name
        path.mkdir()
        made.append(path)
        os.chown(path, user, user)
        path.chmod(mode)
        return path

    folder.also = made.append
    yield folder
    for path in made:
        if path.is_symlink() or path.is_file():
            path.unlink()
        elif path.exists():
            subprocess.run(["rm", "-rf", str(path)], check=True)  # Python goes no deeper than its stack


def write(path, user=0, text="x"):
    path.write_text(text)
    os.chown(path, user, user)
    return path


def run_folder(number, user=0):
    return f".hprofiler-run-{number}-{os.getpid()}-{user}"


def test_files_that_a_power_cut_left(agent, plant):
    folders = [
        plant(run_folder(77)),
        plant(run_folder(78, OTHER_USER), OTHER_USER),
        plant(f".hprofiler-ap-{HASH}-{OTHER_USER}", OTHER_USER),
        plant(f".hprofiler-map-{HASH}-{OTHER_USER}", OTHER_USER),
    ]
    write(folders[0] / "4026531836-7-12345.jfr")
    write(folders[1] / "7.log", OTHER_USER)
    write(folders[2] / "libasyncProfiler.so", OTHER_USER)
    write(folders[3] / ".new-libhprofilerPerfmap.so-7", OTHER_USER)
    sent = write(Path(f"/tmp/.hprofiler-once-0-{HASH}"))
    plant.also(sent)
    assert at(agent.leftovers(), sent)["state"] == "used", "it may be on its way"
    os.utime(sent, (0, time.time() - 3600))
    entries = agent.leftovers()
    left = [at(entries, path) for path in (*folders, sent)]
    assert [entry["state"] for entry in left] == ["left"] * 5, left
    assert left[-1]["kind"] == "file" and left[-1]["seconds"] >= 3600
    cleaned = agent.clean()
    assert set(cleaned["removed"]) >= {str(path) for path in (*folders, sent)}, cleaned
    assert not any(path.exists() for path in (*folders, sent))


def trap_link(plant, path, user):
    victim = plant(f"hprofiler-contract-victim-{os.getpid()}")
    path.symlink_to(victim)
    plant.also(path)
    return write(victim / "7.log")


def trap_pipe(plant, path, user):
    os.mkfifo(plant(path.name, user) / "7.log")
    return path / "7.log"


def trap_device(plant, path, user):
    os.mknod(plant(path.name, user) / "7.log", 0o600 | 0o020000, os.makedev(1, 3))
    return path / "7.log"


def trap_deep_folder(plant, path, user):
    here = os.getcwd()
    try:
        os.chdir(plant(path.name, user))
        for _ in range(800):  # far longer than any path may be
            os.mkdir("7.log")
            os.chdir("7.log")
    finally:
        os.chdir(here)
    return path / "7.log"


def trap_other_file(plant, path, user):
    return write(plant(path.name, user) / "thesis\n\x1b[31m.tex", user)


def trap_open_to_all(plant, path, user):
    return write(plant(path.name, user, mode=0o777) / "7.log", user)


def trap_file_of_another_user(plant, path, user):
    return write(plant(path.name, user) / "7.log", OTHER_USER + 1)


def trap_mount(plant, path, user):
    precious = write(plant(f"hprofiler-contract-mounted-{os.getpid()}") / "7.log")
    subprocess.run(["mount", "--bind", str(precious.parent), str(plant(path.name, user))], check=True)
    return precious


TRAPS = [value for name, value in globals().items() if name.startswith("trap_")]


@pytest.mark.parametrize("user", [0, OTHER_USER])
def test_traps_are_listed_and_nothing_in_them_is_touched(agent, plant, user):
    """Root sees to every user's folders, as that user."""
    paths = {trap: Path("/tmp") / run_folder(number, user) for number, trap in enumerate(TRAPS)}
    try:
        kept = [trap(plant, path, user) for trap, path in paths.items()]
        entries = agent.leftovers()
        for trap, path in paths.items():
            entry = at(entries, path)
            assert entry["state"] == "foreign" and entry["reason"], (trap.__name__, entry)
        cleaned = agent.clean()
        assert not {str(path) for path in paths.values()} & {*cleaned["removed"], *cleaned["emptied"]}, (
            cleaned
        )
        assert all(os.path.lexists(path) for path in kept)
    finally:
        subprocess.run(["umount", str(paths[trap_mount])], check=True)


def test_something_else_in_our_folder_stays_with_it(agent, plant):
    path = plant(run_folder(9))
    ours, theirs = write(path / "7.log"), write(path / "thesis.tex")
    entry = at(agent.leftovers(), path)
    assert entry["state"] == "left" and "thesis.tex" in entry["reason"]
    cleaned = agent.clean()
    assert (str(path) in cleaned["emptied"], cleaned["failed"]) == (True, [])
    assert (ours.exists(), theirs.exists()) == (False, True)
    assert at(agent.leftovers(), path)["state"] == "foreign"


def test_a_user_cleans_up_after_itself_alone(new_agent, plant):
    theirs, own = plant(run_folder(12)), plant(run_folder(13, OTHER_USER), OTHER_USER)
    agent = new_agent(user=OTHER_USER)
    entries = agent.leftovers()
    assert (at(entries, theirs)["state"], at(entries, own)["state"]) == ("foreign", "left")
    assert "clean up as that user (--user root, or --become sudo)" in at(entries, theirs)["reason"]
    assert at(entries, theirs)["bytes"] is None, "who may not look into a folder cannot say"
    assert agent.clean()["removed"] == [str(own)]
    assert theirs.exists()


def test_the_agents_own_cache_is_removed_and_other_users_stay(agent, private, plant):
    user = OTHER_USER + 2
    cache = plant(f".hprofiler-{user}", user)
    write(cache / (HASH * 4), user)
    agent.put(b"some bytes")
    entry = at(agent.leftovers(), cache)
    assert entry["state"] == "foreign" and "clean up as that user" in entry["reason"]
    removed = agent.clean(keeping=False)["removed"]
    assert str(private.parent) in removed and not private.parent.exists()
    assert str(cache) not in removed and cache.exists()
    private.parent.mkdir()  # the fixture removes it
