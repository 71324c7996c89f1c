"""What must be true of a run whatever went wrong; docs/internals/chaos.md defines "lost" and "wrong"."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from tests.burners.burner import HOT, PATHS, Counters
from tests.lab.chaos.fault import Excuse
from tests.lab.chaos.ground import CONTROL, CONTROL_LOAD, FREQUENCY, LOAD, ROLES, Ground
from tests.lab.coordinator import Result
from tests.lab.folded import LEAST_SAMPLES, Stacks

HARMED = 0.25
"""The part of its usual pace at which a burner is harmed: a busy machine and profiling cost far less."""
STOOD_STILL = 0.1
"""The part of the control's share of the machine, load for load, at which a burner stood still."""
_OUR_FRAME = re.compile(r'File "[^"]*/hprofiler/')
_TRIES = 3
_TOLD = {"failed", "degraded"}
_FEW = re.compile(r"took \d+ of \d+")
_LOSES = re.compile(r"killed|did not end|damaged|Java methods (may )?have no names")
"""What else in a line says that something is missing."""
_OF_A_TICK = FREQUENCY // 100
"""Samples: CPU time, by which they are expected, is counted in hundredths of a second.

Of a host that stood still for all of its recording there are one or two."""


def of_result(result: Result, ground: Ground, excuse: Excuse, pids: Mapping[str, int]) -> Iterator[str]:
    """Complaints about what a run came to; `pids` are those of the burners when it began."""
    if excuse.everything and _is_pythons_own(result):
        return
    if "Traceback" in result.err:
        yield f"a traceback:\n{result.err}"
    if result.folder is None or "coverage" not in result.run:
        if not excuse.everything:
            yield f"no run folder, or an unfinished one: {result}"
        elif result.code not in excuse.codes:
            yield f"exit code {result.code}: {result}"
        return
    follows = _code_that_follows(result.run)
    if result.code != follows and result.code not in excuse.codes:
        yield f"exit code {result.code} where {follows} follows from run.json: {result.err}"
    if not (result.folder / "report.html").exists():
        yield from _made_later(result, ground, excuse)
    for name, pid in pids.items():
        told = _TOLD | ({"idle"} if name in excuse.ended else set())
        for complaint in _of_host(result, name, pid, told if name in excuse.hosts else set()):
            yield f"{name}: {complaint}"
        if name in excuse.kept and pid not in result.pids(name):
            yield f"{name}: what was recorded before is not there; ledger: {result.host(name)['outcomes']}"


def _is_pythons_own(result: Result) -> bool:
    """Whether the interpreter was interrupted before the first line of ours: it says so in its own way."""
    return result.folder is None and "Traceback" in result.err and not _OUR_FRAME.search(result.err)


def _code_that_follows(run: Mapping[str, Any]) -> int:
    coverage = run["coverage"]
    if run["interrupted"]:
        return 130
    if not coverage["recordings"]["made"]:
        return 4
    complete = coverage["recordings"]["made"] == coverage["recordings"]["expected"]
    whole = complete and not coverage["processes"]["short"]
    return 0 if whole and not coverage["hosts"]["failed"] else 3


def _made_later(result: Result, ground: Ground, excuse: Excuse) -> Iterator[str]:
    """A run that ended before its report leaves what it needs to make it."""
    if not excuse.codes:
        yield f"no report: {result}"
    later = ground.coordinator.run("report", str(result.folder))
    if later.code not in (0, 4):
        yield f"`hprofiler report` cannot make it: {later}"


def _of_host(result: Result, name: str, pid: int, told: set[str]) -> Iterator[str]:
    """`told` are the states of ledger lines by which missing data are excused; none where nothing is."""
    entry = result.host(name)
    recordings = [one for one in entry["recordings"] if one["process"]["pid"] == pid]
    bad = _missing(entry, recordings, pid, result.run["sampling"]["duration"])
    if bad and not told:
        yield f"{'; '.join(bad)}; ledger: {entry['outcomes']}"
    if bad and told and not result.run["interrupted"] and not _has_line(entry, pid, told):
        yield f"not told in the ledger: {'; '.join(bad)}"
    folded = result.folder / f"hosts/{name}/cpu.folded" if result.folder else None
    if recordings and folded and folded.exists():
        yield from _wrong(Stacks(folded), ROLES[name])


def _missing(entry: Mapping[str, Any], recordings: list[dict[str, Any]], pid: int, asked: float) -> list[str]:
    """In what the data of a host fall short of everything."""
    if not recordings:
        return ["no recording"]
    (recording,) = recordings
    samples = recording["samples"]
    short = [
        f"{outcome['status']} at {outcome['stage']}: {outcome['reason']}"
        for outcome in entry["outcomes"]
        if outcome["status"] != "ok" and outcome["pid"] in (None, pid)
        if not _late(outcome) and not _starved(outcome)
    ]
    if recording["seconds"] < 0.95 * asked:
        short.append(f"{recording['seconds']:.2f} s of {asked:g}")
    # what the kernel does for a JVM, and timers that it holds back, take from what is expected
    expected = samples["expected"]
    if not 0.5 * expected - _OF_A_TICK < samples["taken"] < 1.2 * expected + 2 * _OF_A_TICK:
        short.append(f"{samples['taken']} samples where {expected} were expected")
    return short


def _late(outcome: Mapping[str, Any]) -> bool:
    """It began after the others, for all of its time: nothing is missing."""
    return bool(outcome["stage"] == "start" and outcome["status"] == "degraded")


def _starved(outcome: Mapping[str, Any]) -> bool:
    """The machine held its timers back; how many samples there are all the same is judged by itself.

    What else a line says is no excuse: perf that was killed, say, took fewer as well.
    """
    reason = outcome["reason"]
    return outcome["status"] == "degraded" and bool(_FEW.search(reason)) and not _LOSES.search(reason)


def _has_line(entry: Mapping[str, Any], pid: int, told: set[str]) -> bool:
    return any(
        outcome["status"] in told and outcome["reason"] and outcome["pid"] in (None, pid)
        for outcome in entry["outcomes"]
    )


def _wrong(stacks: Stacks, role: str) -> Iterator[str]:
    """What is in the data has to be right, also where some are missing."""
    others = [HOT[other] for other in ROLES.values() if other != role and stacks.count(HOT[other])]
    if others:
        yield f"shows {', '.join(others)} of another host"
    burning = stacks.under("Burner.work")  # a JVM has threads of its own, and at times much to collect
    if burning.total < LEAST_SAMPLES:
        return  # of a JVM that got next to no CPU time; how many there had to be was counted before
    for method, percent in {HOT[role]: 70, "Burner.warm": 20, "Burner.cool": 10}.items():
        if abs(burning.share(method) - percent) > burning.tolerance():
            yield f"{method} has {burning.share(method):.1f} % of {burning.total} samples, not {percent} %"
    for method, path in PATHS.items():
        if stacks.count(method) >= LEAST_SAMPLES and stacks.path_share(path) < 90:
            yield f"{method} shows its callers in {stacks.path_share(path):.0f} % of its samples"


def of_burners(
    ground: Ground, excuse: Excuse, before: Mapping[str, Counters], after: Mapping[str, Counters]
) -> Iterator[str]:
    """Complaints about burners that were harmed from `before` to `after`, as the ground's counters tell."""
    got = {name: after[name] - before[name] for name in before if name in after}
    due = got.pop(CONTROL).nanos / CONTROL_LOAD * LOAD
    for name, burnt in got.items():
        usual = ground.usual_pace(name)
        if burnt.nanos < STOOD_STILL * due and name not in excuse.still:
            seconds = f"{burnt.nanos / 1e9:.2f} s of CPU time where {due / 1e9:.2f} s were to be had"
            yield f"{name}: its JVM got {seconds}"
        during = burnt.rounds / max(1, burnt.hot) * 1e9
        if during < HARMED * usual:
            yield f"{name}: its JVM went at {during:.0f} rounds a CPU second, {usual:.0f} is usual"
        yield from _of_pace_now(ground, name, usual)


def _of_pace_now(ground: Ground, name: str, usual: float) -> Iterator[str]:
    try:
        pace = 0.0
        for _ in range(_TRIES):
            pace = max(pace, ground.pace_now(name))
            if pace >= HARMED * usual:
                return
        yield f"{name}: its JVM goes at {pace:.0f} rounds a CPU second now, {usual:.0f} is usual"
    except (TimeoutError, RuntimeError) as error:
        yield f"{name}: its JVM does not answer any more: {error}"
