"""The table of faults. Each is a generator: it breaks something, yields, and repairs it."""

from __future__ import annotations

import contextlib
import os
import re
import resource
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.lab import attach, cache, procs
from tests.lab.chaos.fault import (
    LEASE,
    Circumstances,
    Fault,
    Kind,
    Moment,
    any_moment,
    before,
    before_or,
    while_recording,
)
from tests.lab.chaos.manager import ADDRESS
from tests.lab.coordinator import ALL as ALL_HOSTS
from tests.lab.hosts import WRITABLE_FOLDERS, Host, LabError

Breaks = Callable[[Fault], Iterator[None]]

JOINING = 20.0
"""Seconds of a recording that hosts join: the target is asked every five."""
AGENT = re.compile(r"^\S*/agent-[0-9a-f]{64}\b")
SESSION = re.compile(r"^sshd: \S+@")


def matching(host: Host, pattern: re.Pattern[str]) -> list[procs.Identity]:
    """The host's processes whose command line matches."""
    found = [procs.Identity.of(seen.pid) for seen in host.processes() if pattern.search(seen.command)]
    return [identity for identity in found if identity]


# Processes


def killed(pattern: re.Pattern[str]) -> Breaks:
    def breaks(fault: Fault) -> Iterator[None]:
        victims = matching(fault.host, pattern)
        fault.struck = bool(victims)
        for process in victims:
            process.kill()
        yield

    return breaks


def killed_jvm(fault: Fault) -> Iterator[None]:
    fault.ground.burners[fault.host_name].kill()
    yield


def ended_jvm(fault: Fault) -> Iterator[None]:
    fault.ground.burners[fault.host_name].finish()
    yield


def coordinator_gets(number: signal.Signals, times: int = 1) -> Breaks:
    """A signal to the coordinator, sent again at the end of the fault if `times` is 2."""

    def breaks(fault: Fault) -> Iterator[None]:
        assert fault.running
        fault.detail = "the coordinator"
        fault.running.signal(number)
        yield
        if times == 2 and fault.running.process.poll() is None:
            fault.running.signal(number)

    return breaks


def works_again(fault: Fault) -> list[str]:
    again = fault.ground.run()
    return [] if again.code == 0 else [f"the run after it: {again}"]


# Hosts that join


def by_yarn(all_there: bool) -> Callable[[Fault, Circumstances], None]:
    """The hosts are those that a ResourceManager names; the fault's own one may not be there yet."""

    def arrange(fault: Fault, circumstances: Circumstances) -> None:
        there = [name for name in fault.ground.names if all_there or name != fault.host_name]
        fault.ground.manager.say(dict.fromkeys(there, 1))
        circumstances.target = ["-c", ADDRESS]
        circumstances.duration, circumstances.timeout = JOINING, 10

    return arrange


def joined_and_lost(fault: Fault) -> Iterator[None]:
    """It gets a container during the recording; as soon as that is recorded, the host is gone."""
    assert fault.running
    fault.ground.manager.say(dict.fromkeys(fault.ground.names, 1))
    fault.struck = fault.running.hears(rf"^{fault.host_name}: recording")
    yield from unplugged(fault)


def new_attempt(fault: Fault) -> Iterator[None]:
    """The application begins anew, on this host alone."""
    fault.ground.new_attempt(fault.host_name)
    fault.ground.manager.say({fault.host_name: 2})
    yield


def has_joined(fault: Fault) -> list[str]:
    assert fault.running
    there = fault.running.result().host(fault.host_name)["recordings"]
    new = [one for one in there if one["process"]["pid"] == fault.ground.burners[fault.host_name].pid]
    return [] if new and new[0]["joined"] > 0 else [f"the second attempt was not recorded: {there}"]


def second_coordinator(fault: Fault) -> Iterator[None]:
    fault.second = fault.ground.start(2.0, 20.0, "-h", ALL_HOSTS)  # type: ignore[attr-defined]
    yield
    fault.second.result()  # type: ignore[attr-defined]


def is_in_one_of_two(fault: Fault) -> list[str]:
    """Each JVM is in one of the two runs, and the second run reports why it has no recording."""
    if not fault.running:
        return []
    first, second = fault.running.result(), fault.second.result()  # type: ignore[attr-defined]
    if second.folder is None:
        return [f"the second coordinator has no run folder: {second}"]
    missing = [name for name in fault.ground.names if not second.pids(name)]
    return [
        *(f"{name}: neither coordinator has a recording" for name in missing if not first.pids(name)),
        *(f"{name}: no reason for no recording" for name in missing if not second.outcomes(name, "failed")),
    ]


def stopped_jvm(fault: Fault) -> Iterator[None]:
    jvm = fault.jvm
    jvm.kill(signal.SIGSTOP)
    yield
    jvm.kill(signal.SIGCONT)


def frozen(jvm_too: bool) -> Breaks:
    """Stops the run's processes on a host, or all: the JVM last, so that no agent sees it stopped."""

    def victims(fault: Fault, still: list[procs.Identity]) -> list[procs.Identity]:
        first = matching(fault.host, SESSION) + matching(fault.host, AGENT)
        if jvm_too:
            everything = [
                procs.Identity.of(seen.pid) for seen in fault.host.processes() if seen.inner_pid != 1
            ]
            first += [one for one in everything if one and one not in (*first, fault.jvm)]
        return [one for one in first if one not in still]

    def breaks(fault: Fault) -> Iterator[None]:
        still: list[procs.Identity] = []
        try:
            while going_on := victims(fault, still):
                for process in going_on:
                    process.kill(signal.SIGSTOP)
                still += going_on
                if not jvm_too:
                    break
            if jvm_too:
                still.append(fault.jvm)
                fault.jvm.kill(signal.SIGSTOP)
            yield
        finally:
            for process in reversed(still):
                process.kill(signal.SIGCONT)

    return breaks


# JVMs

STALLED = "/data/stalled"
STALLING = ("-XX:-UseCountedLoopSafepoints", f"-Dstalling={STALLED}")


def long_safepoints(fault: Fault) -> Iterator[None]:
    """Safepoints, which attaching needs too, take seconds."""
    fault.host.path(STALLED).touch()
    yield
    fault.host.path(STALLED).unlink(missing_ok=True)


def gc_storm(fault: Fault) -> Iterator[None]:
    """One full collection after another, requested over the attach socket."""
    over, pid = threading.Event(), fault.jvm.pid

    def collect() -> None:
        with contextlib.suppress(OSError, TimeoutError):  # another fault may end the JVM
            while not over.is_set():
                attach.execute(pid, "jcmd", "GC.run")

    storm = threading.Thread(target=collect, daemon=True)
    storm.start()
    yield
    over.set()
    storm.join(procs.PATIENCE)


# The network


def unplugged(fault: Fault) -> Iterator[None]:
    fault.ground.lab.plug(fault.host_name, False)
    yield
    fault.ground.lab.plug(fault.host_name, True)
    if fault.lasts is None:  # sshd still waits on the broken connection
        for session in matching(fault.host, SESSION):
            session.kill()


def lossy(fault: Fault) -> Iterator[None]:
    """Loses packets in both directions with the kernel's packet filter, because not every kernel has netem.

    Its four instructions: load a random number; below the limit drop, else pass.
    """
    limit = int(fault.chance.uniform(0.01, 0.1) * 2**32)
    program = f"4,32 0 0 4294963256,53 1 0 {limit},6 0 0 2,6 0 0 4294967295"
    _tc(fault, "qdisc add {device} clsact")
    for way in ("ingress", "egress"):
        _tc(fault, f"filter add {{device}} {way} bpf da bytecode", program)
    yield
    _tc(fault, "qdisc del {device} clsact")


def slow_link(fault: Fault) -> Iterator[None]:
    """A narrow link with a long queue."""
    fault.detail = f"{fault.chance.choice((1, 2, 5))}mbit"
    _tc(fault, f"qdisc add {{device}} root tbf rate {fault.detail} burst 3k limit 500k")
    yield
    _tc(fault, "qdisc del {device} root")


def _tc(fault: Fault, words: str, *more: str) -> None:
    """At the coordinator's end of the host's cable."""
    command = ["nsenter", "-t", str(fault.ground.lab.coord.init.pid), "-n", "tc"]
    subprocess.run([*command, *words.format(device=f"dev v-{fault.host_name}").split(), *more], check=True)


# Clocks

CLOCK = Path(__file__).with_name("clock_off.c")
HOUR = 3600


def clock_library() -> Path:
    """To be preloaded: `clock_off.c`."""

    def compiled(folder: Path) -> None:
        output = str(folder / "clock_off.so")
        subprocess.run(["gcc", "-O1", "-Wall", "-shared", "-fPIC", "-o", output, str(CLOCK)], check=True)

    return cache.made(cache.folder("chaos"), "clock_off", CLOCK.read_bytes(), compiled) / "clock_off.so"


def clock_off(fault: Fault, circumstances: Circumstances) -> None:
    """The coordinator's wall clock is an hour off from the start, or jumps by an hour later.

    All hosts share one machine's clock, so a preloaded library changes the coordinator's.
    """
    off, after = fault.chance.choice((-HOUR, HOUR)), fault.chance.choice((0, 1, 2, 3))
    fault.detail = f"the coordinator's, by {off:+} s after {after} s"
    circumstances.environment.update(
        LD_PRELOAD=str(clock_library()), CLOCK_OFF=str(off), CLOCK_OFF_AFTER=str(after)
    )


def nothing(fault: Fault) -> Iterator[None]:
    """Does nothing: the environment is the fault."""
    yield


# Disks

USUAL = "remount,size=50%,nr_inodes=100000"
_TRIES = 10


def folders_of(fault: Fault) -> list[str]:
    """/tmp, or all world-writable folders, but not those of the JVM's user."""
    everywhere = [folder for folder in WRITABLE_FOLDERS if folder not in ("/home", "/data")]
    chosen = ["/tmp"] if fault.chance.random() < 0.5 else everywhere
    fault.detail = " ".join(chosen)
    return chosen


def scarce(option: Callable[[os.statvfs_result, int], str]) -> Breaks:
    """Leaves little room in folders by a mount option. `room` is in kB."""

    def make_scarce(fault: Fault, folder: str, room: int) -> None:
        for tries_left in reversed(range(_TRIES)):  # the contents may grow after statvfs
            with contextlib.suppress(*([LabError] if tries_left else [])):
                used = os.statvfs(fault.host.path(folder))
                fault.host.run(["mount", "-o", f"remount,{option(used, room)}", folder])
                return

    def breaks(fault: Fault) -> Iterator[None]:
        folders, room = folders_of(fault), 4 + fault.chance.choice((0, 0, 256, 4096))
        try:
            for folder in folders:
                make_scarce(fault, folder, room)
            yield
        finally:
            for folder in folders:
                fault.host.run(["mount", "-o", USUAL, folder])

    return breaks


def full_disk(used: os.statvfs_result, room: int) -> str:
    return f"size={((used.f_blocks - used.f_bfree) * used.f_frsize >> 10) + room}k"


def no_inodes(used: os.statvfs_result, room: int) -> str:
    return f"nr_inodes={max(2, used.f_files - used.f_ffree)}"


def read_only(fault: Fault) -> Iterator[None]:
    """Nothing can be written or deleted."""
    folders = folders_of(fault)
    for folder in folders:
        fault.host.run(["mount", "--bind", folder, folder])
        fault.host.run(["mount", "-o", "remount,bind,ro", folder])
    yield
    for folder in folders:
        fault.host.run(["umount", "-l", folder])


# Limits of what sshd starts

USER, UID = "yarn", 2001
"""The user of the JVMs."""


def listeners(fault: Fault) -> list[int]:
    """The sshd that starts a host's sessions."""
    seen = fault.host.processes()
    return [process.pid for process in seen if process.command.startswith("sshd: /usr/sbin/sshd")]


def limited(limit: int, least: int, most: int, count: Callable[[], int] = lambda: 0) -> Breaks:
    """Sets a process limit, `count()` plus a random amount."""

    def breaks(fault: Fault) -> Iterator[None]:
        amount, usual = fault.chance.randint(least, most), {}
        fault.detail = f"{amount:,}"
        for pid in listeners(fault):
            usual[pid] = resource.prlimit(pid, limit)
            resource.prlimit(pid, limit, (count() + amount, usual[pid][1]))
        yield
        for pid, before_it in usual.items():
            with contextlib.suppress(ProcessLookupError):  # another fault restarted sshd
                resource.prlimit(pid, limit, before_it)

    return breaks


def tasks_of_user() -> int:
    """The user's processes and threads on this machine, all of which count for the kernel."""
    found = 0
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended
            facts = procs.status(int(process.name))
            found += int(facts["Threads"][0]) if int(facts["Uid"][0]) == UID else 0
    return found


def as_user(fault: Fault, circumstances: Circumstances) -> None:
    """Connect as a user, because limits of processes do not apply to root."""
    circumstances.options += ["--user", USER]


def in_group(controller: str, file: str, least: int, most: int) -> Breaks:
    """Sets a limit of a control group (v1)."""

    def breaks(fault: Fault) -> Iterator[None]:
        home = Path("/sys/fs/cgroup") / controller
        if not home.is_dir():  # control groups v2: only process limits are tested
            fault.struck = False
            yield
            return
        group, amount = home / f"hprofiler-chaos-{os.getpid()}", fault.chance.randint(least, most)
        fault.detail = f"{amount:,}"
        group.mkdir()
        (group / file).write_text(str(amount))
        moved = []
        for pid in listeners(fault):
            groups = Path(f"/proc/{pid}/cgroup").read_text().splitlines()
            own = next(line.split(":", 2)[2] for line in groups if line.split(":")[1] == controller)
            moved.append((pid, home / own.lstrip("/")))
            (group / "cgroup.procs").write_text(str(pid))
        yield
        for pid, former in moved:
            with contextlib.suppress(ProcessLookupError):
                (former / "cgroup.procs").write_text(str(pid))

        def is_gone() -> bool:
            with contextlib.suppress(OSError):  # sessions are about to end
                group.rmdir()
            return not group.is_dir()

        procs.wait_for("the end of the control group", is_gone)

    return breaks


# Ctrl-C at ten moments


def interrupt(when: Callable[..., Moment] = any_moment, **more: object) -> Kind:
    codes = (130, -signal.SIGINT)  # the second before and after the interpreter handles signals
    return Kind(coordinator_gets(signal.SIGINT), "run", when, codes=codes, **more)  # type: ignore[arg-type]


def _stage(pattern: str, least: float, most: float, times: int = 1) -> Kind:
    return interrupt(lambda chance: Moment(pattern, chance.uniform(least, most), times))


STAGES: dict[str, Kind] = {
    "it starts": _stage("", 0.03, 0.25),
    "it connects": _stage("^note: -j", 0.0, 0.3),
    "agents are sent": _stage("^note: -j", 0.3, 0.6),
    "they prepare": _stage(": ready", 0.0, 0.1),
    "sampling begins": _stage(": recording", 0.0, 0.2),
    "the first half": _stage(": recording", 0.2, 1.0),
    "the second half": _stage(": recording", 1.0, 1.8),
    "sampling ends": _stage(": recording", 1.9, 2.1),
    "the report begins": _stage(": done", 0.0, 0.08, 3),
    "the report ends": _stage(": done", 0.08, 0.2, 3),
}
"""Ten stages that cover a whole run."""


def _impatient(fault: Fault, circumstances: Circumstances) -> None:
    circumstances.timeout = 10


def _for_a_minute(fault: Fault, circumstances: Circumstances) -> None:
    circumstances.duration, circumstances.timeout = LEASE + 30, 10


def _ended(number: signal.Signals) -> Kind:
    # hosts keep their recordings for a lease, so the trial waits for its end
    codes = (-number, 128 + number)
    breaks = coordinator_gets(number)
    return Kind(breaks, "run", weight=0.5, codes=codes, complaints=works_again)


mostly_recording = lambda chance: (while_recording if chance.random() < 0.7 else any_moment)(chance)  # noqa: E731
early_or_later = before_or(any_moment)

ALL: dict[str, Kind] = {
    "agent killed": Kind(killed(AGENT), "data", mostly_recording),
    "ssh session killed": Kind(killed(SESSION), "data recorded", mostly_recording),
    "JVM killed": Kind(killed_jvm, "data ended"),
    "coordinator killed": _ended(signal.SIGKILL),
    "coordinator terminated": _ended(signal.SIGTERM),
    "coordinator hung up": _ended(signal.SIGHUP),
    "Ctrl-C": interrupt(weight=2.0),
    "Ctrl-C twice": Kind(
        coordinator_gets(signal.SIGINT, times=2), "run", lasts=(0.0, 0.5), codes=(130, -signal.SIGINT)
    ),
    "two coordinators": Kind(second_coordinator, "all", alone=True, complaints=is_in_one_of_two),
    "host joins and is lost": Kind(
        joined_and_lost,
        "data",
        lambda chance: Moment(": recording", chance.uniform(0.1, 2.0), times=2),
        weight=0.15,
        alone=True,
        arrange=by_yarn(all_there=False),
    ),
    "new attempt": Kind(
        new_attempt,
        "data ended",
        while_recording,
        weight=0.15,
        alone=True,
        arrange=by_yarn(all_there=True),
        complaints=has_joined,
    ),
    "cable out, briefly": Kind(unplugged, lasts=(0.2, 3.0)),
    "cable out": Kind(unplugged, "data", weight=0.15, arrange=_impatient),
    "cable out, longer than a lease": Kind(
        unplugged, "data kept", while_recording, (LEASE + 8, LEASE + 8), 0.1, arrange=_for_a_minute
    ),
    "packets lost": Kind(lossy, "", early_or_later),
    "slow link": Kind(slow_link, "", early_or_later),
    "agent and sshd frozen": Kind(frozen(jvm_too=False), "data kept", lasts=(0.5, 4.0)),
    "host frozen": Kind(frozen(jvm_too=True), "data kept still", lasts=(0.5, 4.0)),
    "host frozen, for long": Kind(frozen(jvm_too=True), "data still", weight=0.15, arrange=_impatient),
    "clock off by an hour": Kind(nothing, "", before, arrange=clock_off),
    "disk full": Kind(scarce(full_disk), "data", early_or_later),
    "no inodes": Kind(scarce(no_inodes), "data", early_or_later),
    # open files would stay in the folder below the mount, where cleanup cannot reach them
    "read-only": Kind(read_only, "data", before),
    # a session inherits sshd's limits at its start
    "few files": Kind(limited(resource.RLIMIT_NOFILE, 6, 40), "data", before),
    "little memory": Kind(limited(resource.RLIMIT_AS, 20 << 20, 120 << 20), "data", before),
    "few processes": Kind(
        limited(resource.RLIMIT_NPROC, 0, 20, tasks_of_user), "data", before, arrange=as_user
    ),
    "out of memory": Kind(in_group("memory", "memory.limit_in_bytes", 4 << 20, 24 << 20), "data", before),
    "few threads": Kind(in_group("pids", "pids.max", 2, 24), "data", before),
    "JVM stopped": Kind(stopped_jvm, "data still", before_or(any_moment, 0.3), (0.2, 8.0)),
    "long safepoints": Kind(
        long_safepoints,
        "data still",
        before,
        settle=lambda fault: fault.ground.replace(fault.host_name, "Stalling", *STALLING),
    ),
    "JVM ended": Kind(ended_jvm, "data ended"),
    "GC storm": Kind(gc_storm, "", before),
}
