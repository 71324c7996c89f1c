"""Pauses for garbage collection, beside the JVM's own log of them."""

from __future__ import annotations

import re
from datetime import datetime
from pathlib import Path

import pytest

from tests.contract.agent_driver import Event
from tests.contract.conftest import EACH_ENGINE_ONCE

NOBODY = 65534
"""Of users without a name JVMs publish nothing."""
Pause = tuple[float, float]
"""When it ended, in seconds since 1970, and how long it was, in seconds."""
EDGE = 0.1
"""Seconds: the log has the begin of a pause (JDK 8) or its end, and pauses are seen some time later."""
UNTOLD = 20e-6
"""Seconds of a pause that only the log has: of ZGC's pauses, which take microseconds, that is much."""
LINES = {
    8: re.compile(r"^(\S+): [0-9.]+: \[(?:Full )?GC (?!concurrent).*?([0-9.]+) secs\]", re.MULTILINE),
    17: re.compile(r"^\[(\S+)\].* Pause .* ([0-9.]+)ms$", re.MULTILINE),
}
"""A pause in the log of JDK 8, and of later ones: its time and how long it was."""


def logged(log: Path, jdk: int) -> list[Pause]:
    unit = 1 if jdk == 8 else 1e-3
    found = LINES[min(jdk, 17)].findall(log.read_text())
    return [(datetime.strptime(at, "%Y-%m-%dT%H:%M:%S.%f%z").timestamp(), float(n) * unit) for at, n in found]


def options(jdk: int, collector: str, log: Path) -> list[str]:
    chosen = ["-XX:-UseSerialGC", f"-XX:+Use{collector}GC"]
    if jdk == 8:
        return [*chosen, f"-Xloggc:{log}", "-XX:+PrintGC", "-XX:+PrintGCDateStamps", "-XX:+PrintGCTimeStamps"]
    return [*chosen, f"-Xlog:gc,gc+phases:file={log}:time"]


def seen(event: Event) -> list[Pause]:
    columns = zip(event["end"], event["duration"], strict=True)
    return [(end / 1e6, duration / 1e6) for end, duration in columns]


@EACH_ENGINE_ONCE
def test_pauses_are_those_of_the_log(agent, burn, tmp_path, jdk, engine):
    collectors = ["G1", "Parallel", *(["Z"] if jdk > 8 else [])]
    logs = {name: tmp_path / name for name in collectors}
    jvms = {name: burn(jdk=jdk, role="alloc", options=options(jdk, name, logs[name])) for name in logs}
    agent.begin(*jvms.values(), engine=engine, duration=3)
    result = agent.collect()
    for name, jvm in jvms.items():
        event = result.pauses[jvm.outer.pid]
        pauses = seen(event)
        # Within the recording, for which both have all.
        begin, end = pauses[0][0] + EDGE, pauses[-1][0] - EDGE
        ours, theirs = (
            [duration for at, duration in some if begin <= at < end]
            for some in (pauses, logged(logs[name], jdk))
        )
        slack = 2 * max(duration for _, duration in pauses) + UNTOLD * len(theirs)
        assert sum(ours) == pytest.approx(sum(theirs), rel=0.1, abs=slack), (name, len(theirs), event)
        assert event["left_out"] == 0


def test_a_jvm_of_another_user_in_a_container(agent, burn_contained):
    burner = burn_contained(user=NOBODY, role="alloc")
    agent.begin(burner, duration=1)
    pauses = agent.collect().pauses[burner.outer.pid]
    assert sum(pauses["duration"]) > 0
    assert {pauses["collectors"][number] for number in pauses["collector"]} <= set(pauses["collectors"])


def test_nothing_is_known_of_a_jvm_that_publishes_nothing(agent, burn):
    hidden, shown = burn(role="alloc", options=["-XX:-UsePerfData"]), burn(role="alloc")
    agent.begin(hidden, shown, duration=1)
    assert list(agent.collect().pauses) == [shown.outer.pid]
