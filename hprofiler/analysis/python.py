"""Whether the Python workers of Spark's JVMs were recorded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from hprofiler.analysis.facts import ASYNC_PROFILER, RunFacts
from hprofiler.analysis.metrics import PythonWorkers
from hprofiler.analysis.subject import Finding, says
from hprofiler.model import PARENT
from hprofiler.model.measures import counted

_EVENTS = ("cpu", "wall")
_SECONDS = 1.0
# A part of the CPU time of all workers, which is read at other moments than that of the recorded ones.
_OF_WORKERS = 0.2
# A part of that of all processes.
_OF_ALL = 0.03


def python_not_recorded(facts: RunFacts, python: Mapping[tuple[str, int], PythonWorkers]) -> list[Finding]:
    """The CPU time of Python workers below recorded JVMs that is in no recording."""
    if facts.event not in _EVENTS or not python:
        return []
    recorded: dict[tuple[str, str], float] = {}
    workers = 0
    for host in facts.hosts:
        for one in host.recordings:
            if jvm := one.process.labels.get(PARENT):
                recorded[host.name, jvm] = recorded.get((host.name, jvm), 0.0) + one.cpu_seconds
    missing = 0.0
    for (host_name, pid), used in python.items():
        lacking = used.seconds - recorded.get((host_name, str(pid)), 0.0)
        if lacking >= max(_SECONDS, _OF_WORKERS * used.seconds):
            missing += lacking
            workers += used.workers
    recorded_seconds = sum(one.cpu_seconds for one in facts.recordings)
    if not missing or missing < _OF_ALL * (missing + recorded_seconds):
        return []
    some = "Python workers" if recorded else counted(workers, "Python workers")
    text = f"{some} used {missing:.1f} s of CPU and were not recorded"
    text = f"{text}; what is recorded used {recorded_seconds:.1f} s."
    remedy = "Record while they run, with -j spark-driver or spark-executor."
    if facts.record.sampling.engine == ASYNC_PROFILER:
        remedy = f"Leave out --engine {ASYNC_PROFILER}."
    figures = {"seconds": missing, "recorded_seconds": recorded_seconds}
    return [replace(says("python-not-recorded", f"{text} {remedy}"), parameters=figures)]
