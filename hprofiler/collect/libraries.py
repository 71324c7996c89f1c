"""Libraries that a host needs for a recording."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from hprofiler.agent.bootstrap import AgentBinaries
from hprofiler.agent.requests import Plan
from hprofiler.base.errors import HostError
from hprofiler.base.resources import Blob
from hprofiler.model import Sampling, Selector

# Libraries of the engines: protocol name -> file name and engines.
_LIBRARIES = {
    "async-profiler": ("libasyncProfiler.so", ("auto", "async-profiler")),
    "perfmap": ("libhprofilerPerfmap.so", ("auto", "perf")),
    "threadnames": ("libhprofilerThreadnames.so", ("auto", "async-profiler")),
}


class Library(NamedTuple):
    """One of them; `name` is the protocol's."""

    name: str
    file_name: str
    blob: Blob


def wanted(binaries: AgentBinaries, engine: str, arch: str, selector: Selector) -> list[Library]:
    """Libraries of an engine for this architecture; ours are not required.

    Raises HostError if a required one is missing.
    """
    found: list[Library] = []
    for name, (file_name, engines) in _LIBRARIES.items():
        if name == "threadnames" and not selector.slices:
            continue
        blob = binaries.blobs.get(name, {}).get(arch) if engine in engines else None
        if blob is not None:
            found.append(Library(name, file_name, blob))
        elif engine in engines and name == "async-profiler":
            raise HostError(
                "push",
                f"there is no async-profiler library for the architecture {arch}",
                "name one with --async-profiler, or record with --engine perf",
                code="library-missing",
                parameters={"architecture": arch},
            )
    return found


def plan(sampling: Sampling, libraries: Sequence[Library], agent_cpu: float, selector: Selector) -> Plan:
    """What to record with these libraries."""
    hashes = {library.name: library.blob.sha256 for library in libraries}
    return Plan(sampling, hashes, agent_cpu, selector.slices)
