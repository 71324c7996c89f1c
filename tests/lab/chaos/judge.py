"""Checks what every run must guarantee despite faults; docs/internals/chaos.md defines "lost" and "wrong"."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from tests.burners.burner import HOT, PATHS, Counters
from tests.lab.chaos.fault import Excuse
from tests.lab.chaos.ground import CONTROL, CONTROL_LOAD, FREQUENCY, LOAD, ROLES, Ground, pace
from tests.lab.coordinator import Result
from tests.lab.folded import LEAST_SAMPLES, Stacks

HARMED = 0.25
"""A burner is harmed below this fraction of its usual pace: load and profiling cost far less."""
STOOD_STILL = 0.1
"""The fraction of the control's CPU time, relative to their loads, below which a burner stood still."""
NOT_SHORT = {
    "samples-missing",
    "started-late",
    "perf-version",
    "timer-used",
    "recorded",
    "new-processes-unknown",
    "no-kernel-frames",
    "times-impossible",
    "metrics-left-out",
}
"""Codes of complete data: the number of samples is judged separately, their times and metrics are not."""
OF_A_TICK = FREQUENCY // 100
"""Samples per hundredth of a second, the unit of the CPU time that sets the expected number."""


def of_result(result: Result, ground: Ground, excuse: Excuse, pids: Mapping[str, int]) -> Iterator[str]:
    """Complaints about the result of a run; `pids` are those of the burners when it began."""
    ours = re.search(r'File "[^"]*/hprofiler/', result.err)
    if "Traceback" in result.err:
        if excuse.everything and result.folder is None and not ours:
            return  # the interpreter was interrupted before our first line
        yield f"a traceback:\n{result.err}"
    if result.folder is None or not result.run["finished"]:
        if not excuse.everything:
            yield f"no run folder, or an unfinished one: {result}"
        elif result.code not in excuse.codes:
            yield f"exit code {result.code}: {result}"
        return
    follows = _code_that_follows(result.run)
    if result.code != follows and result.code not in excuse.codes:
        yield f"exit code {result.code} where {follows} follows from run.json: {result.err}"
    if not (result.folder / "report.html").exists():
        if not excuse.codes:
            yield f"no report: {result}"
        later = ground.coordinator.run("report", str(result.folder))
        if later.code not in (0, 4):
            yield f"`hprofiler report` cannot make it: {later}"
    for name, pid in pids.items():
        for complaint in _of_host(result, name, pid, excuse):
            yield f"{name}: {complaint}; outcomes: {result.host(name)['outcomes']}"


def names_cleanup(result: Result) -> bool:
    """Whether an outcome names the command that removes leftovers, which a killed agent cannot remove."""
    lines = [line for host in result.run["hosts"] for line in host["outcomes"]] if result.folder else []
    return any("hprofiler cleanup" in line["remedy"] for line in lines)


def _code_that_follows(run: Mapping[str, Any]) -> int:
    coverage = run["coverage"]
    if run["interrupted"]:
        return 130
    if not coverage["recordings"]["made"]:
        return 4
    complete = coverage["recordings"]["made"] == coverage["recordings"]["expected"]
    whole = complete and not coverage["processes"]["short"]
    return 0 if whole and not coverage["hosts"]["failed"] else 3


def _of_host(result: Result, name: str, pid: int, excuse: Excuse) -> Iterator[str]:
    entry = result.host(name)
    recordings = [one for one in entry["recordings"] if one["process"]["pid"] == pid]
    missing = _missing(entry, recordings, pid, result.run["sampling"]["duration"])
    reported = {"failed", "degraded", *(["idle", "ok"] if name in excuse.ended else [])}
    lines = [line for line in entry["outcomes"] if line["pid"] in (None, pid) and line["reason"]]
    if missing and name not in excuse.hosts:
        yield "; ".join(missing)
    elif missing and not result.run["interrupted"] and not reported & {line["status"] for line in lines}:
        yield f"not reported: {'; '.join(missing)}"
    if name in excuse.kept and not recordings:
        yield "what was recorded before is not there"
    folded = result.folder / f"hosts/{name}/cpu.folded" if result.folder else None
    if recordings and folded and folded.exists():
        yield from _wrong(Stacks(folded.read_text()), ROLES[name])


def _missing(entry: Mapping[str, Any], recordings: list[dict[str, Any]], pid: int, asked: float) -> list[str]:
    """What is missing in the data of a host."""
    if not recordings:
        return ["no recording"]
    (recording,) = recordings
    short = [
        f"{line['status']} at {line['stage']}: {line['reason']}"
        for line in entry["outcomes"]
        if line["status"] != "ok" and line["pid"] in (None, pid) and not _codes(line) <= NOT_SHORT
    ]
    if recording["seconds"] < 0.95 * asked:
        short.append(f"{recording['seconds']:.2f} s of {asked:g}")
    # the expected number includes kernel time and delayed timers
    taken, expected = recording["samples"]["taken"], recording["samples"]["expected"]
    if not 0.5 * expected - OF_A_TICK < taken < 1.2 * expected + 2 * OF_A_TICK:
        short.append(f"{taken} samples where {expected} were expected")
    return short


def _codes(line: Mapping[str, Any]) -> set[str]:
    return {note["code"] for note in line.get("notes") or [line]}


def _wrong(stacks: Stacks, role: str) -> Iterator[str]:
    """Data must be right even if some are missing."""
    others = [HOT[other] for other in ROLES.values() if other != role and stacks.count(HOT[other])]
    if others:
        yield f"shows {', '.join(others)} of another host"
    burning = stacks.under("Burner.work")  # without the JVM's own threads, such as the garbage collector's
    if burning.total < LEAST_SAMPLES:
        return  # the JVM got little CPU time; `_missing` checks the number of samples
    for method, percent in {HOT[role]: 70, "Burner.warm": 20, "Burner.cool": 10}.items():
        if abs(burning.share(method) - percent) > burning.tolerance():
            yield f"{method} has {burning.share(method):.1f} % of {burning.total} samples, not {percent} %"
    for method, path in PATHS.items():
        if stacks.count(method) >= LEAST_SAMPLES and stacks.path_share(path) < 90:
            yield f"{method} shows its callers in {stacks.path_share(path):.0f} % of its samples"


def of_burners(ground: Ground, excuse: Excuse, before: Mapping[str, Counters]) -> Iterator[str]:
    """Complaints about burners that were harmed since `before`."""
    after = ground.counters()
    due = (after[CONTROL] - before[CONTROL]).nanos / CONTROL_LOAD * LOAD
    for name, burner in ground.burners.items():
        if not burner.outer.alive():
            if name not in excuse.ended:
                yield f"{name}: its JVM is gone"
            continue
        if name in excuse.ended:  # another has its place
            continue
        burnt, usual = after[name] - before[name], ground.usual_pace[name]
        if burnt.nanos < STOOD_STILL * due and name not in excuse.still:
            yield f"{name}: its JVM got {burnt.nanos / 1e9:.2f} s of CPU time of {due / 1e9:.2f} s"
        if pace(burnt) < HARMED * usual:
            yield f"{name}: its JVM went at {pace(burnt):.0f} rounds a CPU second, {usual:.0f} is usual"
        try:
            if not any(ground.pace_now(name) >= HARMED * usual for _ in range(3)):
                yield f"{name}: its JVM is slow now, {usual:.0f} rounds a CPU second are usual"
        except (TimeoutError, RuntimeError) as error:
            yield f"{name}: its JVM does not answer any more: {error}"
