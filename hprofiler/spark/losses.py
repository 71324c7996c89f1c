"""Why executors ended, by the reason that Spark logs."""

from __future__ import annotations

import re

from hprofiler.spark.application import FAILED, RUNNING, Application
from hprofiler.spark.causes import is_shut_down

_EXIT = r"\bexit(?:ed)?\b\D{0,30}?"
# What Spark guesses of every SIGKILL.
_GUESS = "possible container OOM"
# Of a command line: they say nothing of why it ended.
_SETTING = re.compile(r"(?<!\S)-[DX]\S+|\bspark\.[\w.]+(?:=\S*)?")
_REASONS = {
    "jvm": r"direct buffer memory|\bnative threads?\b|\bmetaspace\b|\bcompressed class space",
    # Spark's own exit code for an OutOfMemoryError is 52.
    "heap": rf"Java heap space|GC overhead limit|{_EXIT}52\b",
    "memory": r"(?<![\w.-])memory\b(?!=)|\boom",
    "preemption": r"preempt",
    "decommission": r"decommission|\bspot\b|node is draining",
    "sigkill": rf"{_EXIT}137\b|SIGKILL|\bsignal 9\b",
    "sigterm": rf"{_EXIT}143\b|SIGTERM|\bsignal 15\b",
    "idle": r"explicit termination request|killed by driver",
    # Spark's own exit code where it cannot reach the driver is 56.
    "heartbeat": rf"heartbeat|{_EXIT}56\b",
    "driver-end": r"driver (?:has )?(?:exited|stopped|shut|disconnected)|command exited with code 0|"
    r"SparkContext was shut down|application (?:has )?(?:finished|ended)",
    "host-lost": r"lost\W{1,3}node|node\b.{0,80}\b(?:lost|unhealthy)|host .{0,80}(?:lost|removed)|"
    r"(?:worker|slave) (?:lost|removed|shutting down)",
    "evicted": r"\bevict|low on resource",
    "crash": rf"{_EXIT}(?:134|139)\b|SIGSEGV|SIGABRT|\bsignal (?:6|11)\b",
    "exit": rf"{_EXIT}[1-9-]\d*",
    "disconnected": r"disassociated|disconnected|connection|RPC",
}
_PATTERNS = {code: re.compile(pattern, re.IGNORECASE) for code, pattern in _REASONS.items()}
CODES = (*_REASONS, "unknown")
"""jvm: it reached a limit of the JVM other than its heap's. heap: it was full. memory: outside of the heap.
sigkill, sigterm: nobody says who sent the signal. idle: dynamic allocation, or another wish of the driver.
evicted: by Kubernetes. crash: of the JVM itself. exit: it ended itself, with another code."""
_STOPPING = 15_000  # milliseconds
_OF_STOPPING = {"unknown", "disconnected", "exit", "sigterm", "idle"}
"""What is said of executors that are stopped with the application, when nothing runs any more."""
UNEXPLAINED = {"unknown", "disconnected", "exit"}
EXPECTED = {"idle", "driver-end"}
"""The driver wanted it."""


def losses(application: Application) -> dict[str, str]:
    """The code of each executor that ended, by its id."""
    stages = application.stages.values()
    last = max((stage.end for stage in stages if not is_shut_down(stage.failure)), default=0)
    stopping = application.until
    if application.end:  # stages that were cut off ran until nobody knows when
        all_ended = last and all(
            stage.end and not is_shut_down(stage.failure) for stage in stages if stage.start
        )
        stopping = last if all_ended else max(last, application.end - _STOPPING)
    found = {}
    for one in application.workers:
        if one.removed or one.reason:
            code = loss_code(one.reason)
            with_application = one.removed > stopping and code in _OF_STOPPING
            found[one.id] = "driver-end" if with_application else code
    if application.properties.get("spark.dynamicAllocation.enabled") == "true":
        asked = {id_ for id_, code in found.items() if code == "sigterm"}
        found.update(dict.fromkeys(asked - _lost_with_tasks(application, asked), "idle"))
    return found


def _lost_with_tasks(application: Application, ids: set[str]) -> set[str]:
    """Those of executors that ran a task when they ended."""
    numbers = {number: id_ for number, id_ in enumerate(application.executor_ids) if id_ in ids}
    busy: set[str] = set()
    for stage in application.stages.values() if numbers else ():
        for executor, status in stage.tasks.columns("executor", "status"):
            if status in (FAILED, RUNNING) and executor in numbers:
                busy.add(numbers[executor])
    return busy


def loss_code(reason: str) -> str:
    """One of CODES: only what the reason says. The first that matches counts."""
    text = _SETTING.sub("", reason.replace(_GUESS, ""))
    return next((code for code, pattern in _PATTERNS.items() if pattern.search(text)), "unknown")
