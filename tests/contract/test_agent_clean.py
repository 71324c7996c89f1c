"""What any version left is listed, then removed if it is still the same; nothing else is touched."""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.contract.agent_driver import Agent, leftovers, wait_for
from tests.contract.conftest import OTHER_USER, as_user, found, is_profiled, waits_until_gone
from tests.contract.perf_engine import perf_at_work, prepare, processes
from tests.lab import procs

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: files and JVMs of other users")
HASH = "0123456789abcdef"
PERF_OF_OLD = {"PATH": "/usr/bin:/bin", "LC_ALL": "C", "PERF_CONFIG": "/dev/null"}
PERF = {**PERF_OF_OLD, "HPROFILER_AGENT": "1"}
"""All that agents give perf."""


def listed(agent):
    """What a list has, by its ids."""
    agent.send("clean", kept=False, dry=True)
    event = agent.expect("leftovers", 60)
    return {entry["id"]: entry for entry in event["entries"]}


def of_pid(entries, pid):
    """The entries of a process, by their kinds."""
    return {entry["kind"]: entry for entry in entries.values() if entry["pid"] == pid}


def at(entries, path):
    """The entry of a path."""
    (entry,) = [entry for entry in entries.values() if entry["path"] == str(path)]
    return entry


def remove(agent, *entries):
    agent.send("clean", kept=False, only=[entry["id"] for entry in entries])
    return agent.expect("cleaned", 60)


def own_folders(entries, agent):
    """The entries of the run folders of an agent's session."""
    own = f"/.hprofiler-run-{agent.process.pid}-"
    return [entry for entry in entries.values() if own in entry["path"]]


@pytest.fixture
def cleaner(start_agent):
    agent = start_agent()
    agent.hello()
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
    library = [entry for entry in entries.values() if "/.hprofiler-ap-" in entry["path"]]
    cleaned = remove(cleaner, profiler, folder, *[e for e in library if e["user"] == str(OTHER_USER)])
    assert cleaned["stopped"] == [burner.outer.pid] and folder["path"] in cleaned["removed"], cleaned
    assert not is_profiled(burner.outer.pid)


def test_an_agent_of_another_version_that_is_stopped(another_version, start_agent, library_file, burn):
    """As a user whose agents nobody else ends."""
    burner, agent = burn(user=OTHER_USER), another_version(lease=3, user=OTHER_USER)
    cleaner = start_agent(user=OTHER_USER)
    cleaner.hello()
    begin(agent, library_file, burner)
    agent.process.send_signal(signal.SIGSTOP)
    waiting = of_pid(listed(cleaner), agent.process.pid)["agent"]
    assert (waiting["state"], "lease ends in" in waiting["reason"]) == ("used", True), waiting

    def is_left():
        return of_pid(listed(cleaner), agent.process.pid)["agent"]["state"] == "left"

    wait_for("the end of its lease", is_left)
    entries = listed(cleaner)
    process, (folder,) = of_pid(entries, agent.process.pid)["agent"], own_folders(entries, agent)
    assert folder["state"] == "left" and "left over, holds it" in folder["reason"]
    profiler = of_pid(entries, burner.outer.pid)["profiler"]
    assert profiler["state"] == "left", profiler
    cleaned = remove(cleaner, process, profiler, folder)
    assert cleaned["ended"] == [agent.process.pid], cleaned
    assert not cleaned["failed"]
    assert not own_folders(listed(cleaner), agent) and not is_profiled(burner.outer.pid)
    wait_for("nothing of it", lambda: not leftovers())


def test_one_that_lives_goes_on(another_version, cleaner):
    agent = another_version(lease=30)
    entry = of_pid(listed(cleaner), agent.process.pid)["agent"]
    assert entry["state"] == "used"
    cleaned = remove(cleaner, entry)
    assert not cleaned["ended"] and "not left over" in cleaned["failed"][0]["reason"]
    cleaner.send("clean", kept=True)
    assert agent.process.pid not in cleaner.expect("cleaned", 60)["ended"]
    assert agent.bye() == 0


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
        for one, path in zip(running, (named, right, right)):
            wait_until_run(one, path.name)
            one.send_signal(signal.SIGSTOP)
        entries = listed(cleaner)
        states = [of_pid(entries, one.pid)["agent"] for one in running]
        assert [entry["state"] for entry in states] == ["foreign"] * 3
        assert str(OTHER_USER) in states[2]["reason"]
        assert not remove(cleaner, *states)["ended"]
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
        changed = {**program, "id": program["id"] + "1"}
        assert not remove(cleaner, changed)["ended"], "another start time is another process"
        assert remove(cleaner, program)["ended"] == [orphan.pid]
        orphan.wait(procs.PATIENCE)
        assert somebodys.poll() is None


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
    cleaner.send("clean", kept=True)
    assert not cleaner.expect("cleaned", 60)["failed"]
    assert not own_folders(listed(cleaner), killed)


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
    cleaned = remove(cleaner, *left)
    assert set(cleaned["removed"]) == {str(path) for path in (*folders, sent)}, cleaned
    assert not any(path.exists() for path in (*folders, sent))


def test_what_was_replaced_since_it_was_listed_stays(cleaner, plant):
    name = f".hprofiler-run-79-{os.getpid()}-0"
    entry = at(listed_with(cleaner, plant(name)), f"/tmp/{name}")
    Path(entry["path"]).rename("/tmp/hprofiler-contract-moved")
    plant.also(Path("/tmp/hprofiler-contract-moved"))
    write(plant(name) / "7.log", 0)
    assert not remove(cleaner, entry)["removed"]
    assert Path(f"/tmp/{name}/7.log").exists()


def listed_with(cleaner, path):
    assert path.exists()
    return listed(cleaner)


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
    kept = [trap(plant, path, user) for trap, path in zip(TRAPS, paths)]
    began = time.monotonic()
    entries = listed(cleaner)
    for trap, path in zip(TRAPS, paths):
        assert at(entries, path)["state"] == "foreign", (trap.__name__, at(entries, path))
        assert at(entries, path)["reason"]
    cleaner.send("clean", kept=True, only=[at(entries, path)["id"] for path in paths])
    cleaned = cleaner.expect("cleaned", 60)
    assert time.monotonic() - began < procs.PATIENCE
    assert not cleaned["removed"] and len(cleaned["failed"]) == len(paths), cleaned
    assert all(os.path.lexists(path) for path in kept)


def test_something_else_in_our_folder_stays_with_it(cleaner, plant):
    path = plant(f".hprofiler-run-9-{os.getpid()}-0")
    ours, theirs = write(path / "7.log", 0), write(path / "thesis.tex", 0)
    entry = at(listed(cleaner), path)
    assert entry["state"] == "left" and "thesis.tex" in entry["reason"]
    cleaned = remove(cleaner, entry)
    assert "thesis.tex" in cleaned["failed"][0]["reason"] and not cleaned["removed"]
    assert (ours.exists(), theirs.exists()) == (False, True)


def test_a_folder_on_which_something_is_mounted(cleaner, plant):
    path = plant(f".hprofiler-run-10-{os.getpid()}-0")
    victim = plant(f"hprofiler-contract-mounted-{os.getpid()}")
    precious = write(victim / "7.log", 0)
    subprocess.run(["mount", "--bind", str(victim), str(path)], check=True)
    try:
        entry = at(listed(cleaner), path)
        assert (entry["state"], entry["reason"]) == ("foreign", "something is mounted there")
        assert not remove(cleaner, entry)["removed"]
        assert precious.exists()
    finally:
        subprocess.run(["umount", str(path)], check=True)


def test_more_files_than_we_ever_make(cleaner, plant):
    path = plant(f".hprofiler-run-11-{os.getpid()}-0")
    for number in range(10_100):
        (path / f"{number}.log").touch()
    entry = at(listed(cleaner), path)
    assert "more than 10000 files" in entry["reason"]
    cleaned = remove(cleaner, entry)
    assert "more than 10000 files" in cleaned["failed"][0]["reason"]
    assert path.exists()


def test_a_user_cleans_up_after_itself_alone(start_agent, plant):
    theirs = plant(f".hprofiler-run-12-{os.getpid()}-0")
    own = plant(f".hprofiler-run-13-{os.getpid()}-{OTHER_USER}", OTHER_USER)
    agent = start_agent(user=OTHER_USER)
    agent.hello()
    entries = listed(agent)
    assert (at(entries, theirs)["state"], at(entries, own)["state"]) == ("foreign", "left")
    assert "clean up as that user" in at(entries, theirs)["reason"]
    assert remove(agent, at(entries, theirs), at(entries, own))["removed"] == [str(own)]
    assert theirs.exists()


def test_what_agents_keep_of_other_users_stays(cleaner, plant):
    user = OTHER_USER + 2
    cache = plant(f".hprofiler-{user}", user)
    write(cache / (HASH * 4), user)
    entry = at(listed(cleaner), cache)
    assert entry["state"] == "foreign" and "clean up as that user" in entry["reason"]
    cleaner.send("clean", kept=False)
    assert str(cache) not in cleaner.expect("cleaned", 60)["removed"]


def test_the_own_folder_is_known_and_one_of_a_living_agent_is_used(another_version, cleaner, private):
    agent = another_version(lease=30)
    entry = at(listed(cleaner), private.parent)
    assert entry["own"] and entry["state"] == "left" and entry["bytes"] == private.stat().st_size
    theirs = Path(f"/proc/{agent.process.pid}/exe").resolve().parent
    agent.send("clean", kept=False, dry=True)
    entries = {entry["id"]: entry for entry in agent.expect("leftovers", 60)["entries"]}
    assert at(entries, theirs)["own"]
    identity = procs.Identity.of(agent.process.pid)
    agent.close_stdin()
    waits_until_gone(identity)
