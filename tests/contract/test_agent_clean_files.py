"""Folders and files that any version left are listed and removed; traps are not."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest

from tests.contract.cleaning import HASH, at, clean, listed
from tests.contract.conftest import OTHER_USER
from tests.lab import procs

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: files of other users")


@pytest.fixture
def cleaner(agent):
    return agent


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


def write(path, user, text="x"):
    path.write_text(text)
    os.chown(path, user, user)
    return path


def test_files_that_a_power_cut_left(cleaner, plant):
    folders = [
        plant(f".hprofiler-run-77-{os.getpid()}-0"),
        plant(f".hprofiler-run-78-{os.getpid()}-{OTHER_USER}", OTHER_USER),
        plant(f".hprofiler-ap-{HASH}-{OTHER_USER}", OTHER_USER),
        plant(f".hprofiler-map-{HASH}-{OTHER_USER}", OTHER_USER),
    ]
    write(folders[0] / "4026531836-7-12345.jfr", 0)
    write(folders[1] / "7.log", OTHER_USER)
    write(folders[2] / "libasyncProfiler.so", OTHER_USER)
    write(folders[3] / ".new-libhprofilerPerfmap.so-7", OTHER_USER)
    sent = write(Path(f"/tmp/.hprofiler-once-0-{HASH}"), 0)
    plant.also(sent)
    assert at(listed(cleaner), sent)["state"] == "used", "it may be on its way"
    os.utime(sent, (0, time.time() - 3600))
    entries = listed(cleaner)
    left = [at(entries, path) for path in (*folders, sent)]
    assert [entry["state"] for entry in left] == ["left"] * 5, left
    assert left[-1]["kind"] == "file" and left[-1]["seconds"] >= 3600
    cleaned = clean(cleaner)
    assert set(cleaned["removed"]) >= {str(path) for path in (*folders, sent)}, cleaned
    assert not any(path.exists() for path in (*folders, sent))


def trap_link(plant, path, user):
    victim = plant(f"hprofiler-contract-victim-{os.getpid()}")
    write(victim / "7.log", 0)
    path.symlink_to(victim)
    plant.also(path)
    return victim / "7.log"


def trap_pipe(plant, path, user):
    made = plant(path.name, user)
    os.mkfifo(made / "7.log")
    return made / "7.log"


def trap_device(plant, path, user):
    made = plant(path.name, user)
    os.mknod(made / "7.log", 0o600 | 0o020000, os.makedev(1, 3))
    return made / "7.log"


def trap_hard_link(plant, path, user):
    made, other = plant(path.name, user), write(Path(f"/tmp/hprofiler-contract-{os.getpid()}"), user)
    plant.also(other)
    os.link(other, made / "7.log")
    return made / "7.log"


def trap_folder(plant, path, user):
    deep = plant(path.name, user)
    here = os.getcwd()
    try:
        os.chdir(deep)
        for _ in range(800):  # far longer than any path may be
            os.mkdir("7.log")
            os.chdir("7.log")
    finally:
        os.chdir(here)
    return deep / "7.log"


def trap_thesis(plant, path, user):
    return write(plant(path.name, user) / "thesis\n\x1b[31m.tex", user)


def trap_open(plant, path, user):
    return write(plant(path.name, user, mode=0o777) / "7.log", user)


def trap_others(plant, path, user):
    return write(plant(path.name, user) / "7.log", OTHER_USER + 1)


TRAPS = [
    trap_link,
    trap_pipe,
    trap_device,
    trap_hard_link,
    trap_folder,
    trap_thesis,
    trap_open,
    trap_others,
]


@pytest.mark.parametrize("user", [0, OTHER_USER])
def test_traps_are_told_and_nothing_in_them_is_touched(cleaner, plant, user):
    """Root sees to every user's folders, as that user."""
    paths = [Path(f"/tmp/.hprofiler-run-{n}-{os.getpid()}-{user}") for n in range(len(TRAPS))]
    kept = [trap(plant, path, user) for trap, path in zip(TRAPS, paths, strict=False)]
    began = time.monotonic()
    entries = listed(cleaner)
    for trap, path in zip(TRAPS, paths, strict=False):
        assert at(entries, path)["state"] == "foreign", (trap.__name__, at(entries, path))
        assert at(entries, path)["reason"]
    cleaned = clean(cleaner)
    assert time.monotonic() - began < procs.PATIENCE
    assert not {str(path) for path in paths} & {*cleaned["removed"], *cleaned["emptied"]}, cleaned
    assert all(os.path.lexists(path) for path in kept)


def test_something_else_in_our_folder_stays_with_it(cleaner, plant):
    path = plant(f".hprofiler-run-9-{os.getpid()}-0")
    ours, theirs = write(path / "7.log", 0), write(path / "thesis.tex", 0)
    entry = at(listed(cleaner), path)
    assert entry["state"] == "left" and "thesis.tex" in entry["reason"]
    cleaned = clean(cleaner)
    assert (str(path) in cleaned["emptied"], cleaned["failed"]) == (True, [])
    assert (ours.exists(), theirs.exists()) == (False, True)
    assert at(listed(cleaner), path)["state"] == "foreign"


def test_a_folder_that_an_agent_makes_to_ask_a_jvm_is_none_of_its_own_findings(cleaner, plant):
    own = plant(f".hprofiler-run-clean-{cleaner.process.pid}-1-0")
    other = plant(f".hprofiler-run-clean-{cleaner.process.pid}0-1-0")
    paths = {entry["path"]: entry["state"] for entry in listed(cleaner)}
    assert str(own) not in paths and paths[str(other)] == "left"


def test_a_folder_on_which_something_is_mounted(cleaner, plant):
    path = plant(f".hprofiler-run-10-{os.getpid()}-0")
    victim = plant(f"hprofiler-contract-mounted-{os.getpid()}")
    precious = write(victim / "7.log", 0)
    subprocess.run(["mount", "--bind", str(victim), str(path)], check=True)
    try:
        entry = at(listed(cleaner), path)
        assert (entry["state"], entry["reason"]) == ("foreign", "something is mounted there")
        assert str(path) not in clean(cleaner)["removed"]
        assert precious.exists()
    finally:
        subprocess.run(["umount", str(path)], check=True)


@pytest.mark.nightly
def test_more_files_than_we_ever_make(cleaner, plant):
    path = plant(f".hprofiler-run-11-{os.getpid()}-0")
    for number in range(10_100):
        (path / f"{number}.log").touch()
    entry = at(listed(cleaner), path)
    assert "more than 10000 files" in entry["reason"]
    cleaned = clean(cleaner)
    assert "more than 10000 files" in cleaned["failed"][0]["reason"]
    assert path.exists()


def test_a_user_cleans_up_after_itself_alone(start_agent, plant):
    theirs = plant(f".hprofiler-run-12-{os.getpid()}-0")
    own = plant(f".hprofiler-run-13-{os.getpid()}-{OTHER_USER}", OTHER_USER)
    agent = start_agent(user=OTHER_USER)
    agent.hello()
    entries = listed(agent)
    assert (at(entries, theirs)["state"], at(entries, own)["state"]) == ("foreign", "left")
    assert "clean up as that user (--user root, or --become sudo)" in at(entries, theirs)["reason"]
    assert at(entries, theirs)["bytes"] is None, "who may not look into a folder cannot say"
    assert clean(agent)["removed"] == [str(own)]
    assert theirs.exists()


def test_what_agents_keep_of_other_users_stays(cleaner, plant):
    user = OTHER_USER + 2
    cache = plant(f".hprofiler-{user}", user)
    write(cache / (HASH * 4), user)
    entry = at(listed(cleaner), cache)
    assert entry["state"] == "foreign" and "clean up as that user" in entry["reason"]
    assert str(cache) not in clean(cleaner, kept=False)["removed"]
