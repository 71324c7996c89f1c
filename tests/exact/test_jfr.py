"""JFR recordings, stack for stack as async-profiler's own converter reads them.

Intended differences, which are not compared:
- Samples without a stack are under `[unknown]`; the converter leaves them out, also of totals, or shows
  only their class.
- A thread's number is the kernel's; for a JDK's recording the converter shows the recording's own number.
- A sample of a JDK (mostly 11) may refer to a stack of the previous chunk, which only the converter finds.
- Tiers of a method are not merged (see `tiers`).
- The first allocation sample of a thread has no bytes in the JDK's own recordings of 17 and later: it also
  weighs what the thread allocated before.
- The JDK's allocation samples are left out if each TLAB, the same allocation, was recorded too.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from hprofiler._flamegraph import Profile
from tests.exact import jfr_recordings as jfr
from tests.exact.tiers import shown
from tests.lab import jdks
from tests.needed import lacking

pytestmark = pytest.mark.nightly

EVENTS = "event=cpu,interval=1ms,alloc=64k,live,lock=10us,nativemem=16k"
CPU, WALL = ("--cpu", "samples"), ("--wall", "wall_samples")
OTHERS = [
    ("--alloc", "alloc_objects"),
    ("--alloc --total", "alloc_space"),
    ("--live", "inuse_objects"),
    ("--live --total", "inuse_space"),
    ("--lock", "contentions"),
    ("--lock --total", "delay"),
    ("--nativemem", "native_allocs"),
    ("--nativemem --total", "native_space"),
]
JDK_EVENTS = [("", "samples"), *(event for event in OTHERS if "alloc_" in event[1] or "--lock" in event[0])]
COMPARED: dict[str, list[tuple[str, str]]] = {
    "4.2 17": [CPU, WALL, *OTHERS],
    "4.2 25": [CPU, WALL, *OTHERS],
    "4.5 17": [CPU, *OTHERS],
    "4.5 25": [CPU, *OTHERS],
    "jdk 11": JDK_EVENTS,
    "jdk 17": JDK_EVENTS,
    "jdk 21": JDK_EVENTS,
    "jdk 25": JDK_EVENTS,
}
RECORD = "-XX:StartFlightRecording:settings=profile,dumponexit=true"
EACH_TLAB = ",".join(
    [
        "jdk.ObjectAllocationInNewTLAB#enabled=true",
        "jdk.ObjectAllocationOutsideTLAB#enabled=true",
        "jdk.ObjectAllocationSample#enabled=false",
        "jdk.JavaMonitorEnter#threshold=0ms",
        "jdk.ThreadPark#threshold=0ms",
    ]
)
CPU_TIME = "jdk.CPUTimeSample#enabled=true,jdk.CPUTimeSample#throttle=5ms"


def jdk_flags(jdk: int, output: Path, settings: str = "") -> list[str]:
    """Flags of a JVM that records itself. The end of another recording ends a chunk."""
    recording = f"{RECORD},filename={output}" + (f",{settings}" if settings else "")
    nothing = "none" if jdk > 11 else "profile"
    other = f"-XX:StartFlightRecording:duration=2s,settings={nothing},filename={output}.other"
    return [recording, other]


@pytest.fixture(scope="session")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Every recording, made at the same time."""
    folder = tmp_path_factory.mktemp("jfr")
    made = {name: folder / f"{name.replace(' ', '-')}.jfr" for name in (*COMPARED, "wall", "cpu-time")}
    jvms = []
    for jdk in (17, 25):
        for version, wall in (("4.2", ",wall=10ms"), ("4.5", "")):
            options = f"{EVENTS}{wall},chunktime=1s"
            jvms.append(jfr.start(jdk, made[f"{version} {jdk}"], seconds=7, agent=version, options=options))
    jvms.append(jfr.start(25, made["wall"], seconds=3, agent="4.5", options="event=wall,interval=10ms"))
    for jdk, settings in ((11, ""), (17, EACH_TLAB), (21, ""), (25, "")):
        output = made[f"jdk {jdk}"]
        try:
            jvms.append(jfr.start(jdk, output, seconds=4, flags=jdk_flags(jdk, output, settings)))
        except jdks.Unavailable as reason:
            output.with_suffix(".missing").write_text(str(reason))
    output = made["cpu-time"]
    jvms.append(jfr.start(25, output, seconds=4, flags=jdk_flags(25, output, f"{CPU_TIME},{EACH_TLAB}")))
    for jvm in jvms:
        jfr.finish(jvm)
    return made


def recorded(recordings: dict[str, Path], name: str) -> Path:
    missing = recordings[name].with_suffix(".missing")
    if missing.exists():
        lacking(missing.read_text())
    return recordings[name]


def with_stack(stacks: dict[str, int]) -> dict[str, int]:
    return {stack: value for stack, value in stacks.items() if "[unknown]" not in stack.split(";")}


def without_numbers(stacks: dict[str, int]) -> dict[str, int]:
    """Thread frames without the thread's number; threads of one name become one."""
    merged: dict[str, int] = {}
    for stack, value in stacks.items():
        named = re.sub(r"^\[(.*?) ?tid=\d+\]", r"[\1]", stack)
        merged[named] = merged.get(named, 0) + value
    return merged


def without_strays(theirs: dict[str, int], mine: dict[str, int], profile: Profile) -> dict[str, int]:
    """Ours if theirs have only a few extra samples, at most our number without a stack; else theirs."""
    more = {stack: value - mine.get(stack, 0) for stack, value in theirs.items()}
    few = 0 < len([value for value in more.values() if value]) <= unknown_samples(profile)
    return mine if few and min(more.values()) >= 0 and set(mine) <= set(theirs) else theirs


def unknown_samples(profile: Profile) -> int:
    counts = [value for value, unit in profile.values if unit == "count"]
    folded = [jfr.stacks(profile.to_folded(value)) for value in counts]
    return sum(sum(stacks.values()) - sum(with_stack(stacks).values()) for stacks in folded)


def has_method(stack: str) -> bool:
    """Whether a stack that ends in a class has frames besides its thread."""
    return len([frame for frame in stack.split(";") if not re.match(r"\[.*tid=\d+\]$|\[[^;]*\]$", frame)]) > 1


def ours(profile: Profile, value: str) -> dict[str, int]:
    return shown(with_stack(jfr.stacks(profile.to_folded(value)))) if has(profile, value) else {}


def sampled(profile: Profile) -> dict[str, int]:
    """All samples of running threads, which the converter adds up by default."""
    kinds = [kind for kind in ("samples", "execution_samples", "native_samples") if has(profile, kind)]
    found: Counter[str] = Counter()
    for kind in kinds:
        found.update(with_stack(jfr.stacks(profile.to_folded(kind))))
    return shown(found)


def has(profile: Profile, value: str) -> bool:
    return value in dict(profile.values)


@pytest.mark.parametrize("threads", [False, True], ids=["plain", "threads"])
@pytest.mark.parametrize("name", COMPARED)
def test_every_stack_is_as_the_converter_has_it(
    recordings: dict[str, Path], name: str, threads: bool
) -> None:
    recording = recorded(recordings, name)
    profile = Profile.open(recording, threads=threads)
    samples_allocations = name in ("jdk 21", "jdk 25")
    assert all(samples_allocations and "first sample" in warning for warning in profile.warnings)
    for flags, value in COMPARED[name]:
        theirs = jfr.converted(recording, *flags.split(), *(["--threads"] if threads else []))
        mine = sampled(profile) if not flags else ours(profile, value)
        if threads and name.startswith("jdk"):
            theirs, mine = shown(without_numbers(theirs)), shown(without_numbers(mine))
        if flags.split()[:1] in (["--alloc"], ["--live"], ["--lock"]):
            theirs = {stack: amount for stack, amount in theirs.items() if has_method(stack)}
        if name.startswith("jdk"):
            theirs = without_strays(theirs, mine, Profile.open(recording))
        if samples_allocations and value == "alloc_space":
            assert mine and all(amount <= theirs[stack] for stack, amount in mine.items()), (flags, value)
            continue
        assert sum(mine.values()) == sum(theirs.values()), (flags, value)
        assert mine == theirs, (flags, value)
        assert theirs or value.startswith("contentions") or name.startswith("jdk"), f"no {value} in {name}"


def test_wall_clock_samples_of_the_newest_version(recordings: dict[str, Path]) -> None:
    """Compares with the JDK's own tool, because the converter cannot read them."""
    tool = Path(jdks.java(25)).with_name("jfr")
    command = [str(tool), "print", "--json", "--events", "profiler.WallClockSample", str(recordings["wall"])]
    printed = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    events = [event["values"] for event in printed["recording"]["events"]]
    by_thread: dict[str, int] = {}
    for event in events:
        thread = event["sampledThread"]
        name = thread["javaName"] or thread["osName"]
        number = thread["osThreadId"]
        frame = name if name.startswith("[tid=") else f"[{name} tid={number}]"
        by_thread[frame] = by_thread.get(frame, 0) + event["samples"]
    profile = Profile.open(recordings["wall"], threads=True)
    mine: dict[str, int] = {}
    for stack, count in jfr.stacks(profile.to_folded("wall_samples")).items():
        root = stack.split(";")[0]
        mine[root] = mine.get(root, 0) + count
    assert mine == by_thread
    assert profile.values == [("wall_samples", "count"), ("wall", "nanoseconds")]
    assert profile.total("wall") == profile.total("wall_samples") * 10_000_000


def test_cpu_time_samples_are_the_cpu_samples(recordings: dict[str, Path]) -> None:
    """If the JDK has CPU-time samples, its samples of Java code are separate values."""
    recording = recordings["cpu-time"]
    profile = Profile.open(recording)
    assert ours(profile, "samples") == jfr.converted(recording, "--cpu-time")
    assert sampled(profile) == jfr.converted(recording)
    assert has(profile, "execution_samples") and not has(profile, "execution")
    assert profile.total("cpu") >= profile.total("samples") * 5_000_000


def test_flame_graphs_of_the_converter_have_its_stacks(recordings: dict[str, Path], tmp_path: Path) -> None:
    """Its HTML merges the tiers of a method, its folded text does not."""
    recording = recorded(recordings, "4.2 17")
    page = tmp_path / "cpu.html"
    converter = [jdks.java(25), "-Dfile.encoding=UTF-8", "-jar", str(jfr.artifact(jfr.CONVERTER))]
    subprocess.run([*converter, "--cpu", str(recording), str(page)], check=True, capture_output=True)
    theirs: Counter[str] = Counter()
    for stack, count in jfr.converted(recording, "--cpu").items():
        theirs[re.sub(r"_\[[01ij]\]", "", stack)] += count
    mine: Counter[str] = Counter()
    for stack, count in jfr.stacks(Profile.open(str(page)).to_folded()).items():
        mine[re.sub(r"_\[[01ij]\]", "", stack)] += count
    assert mine == theirs
