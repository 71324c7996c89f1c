"""The built agent and async-profiler's library, as the package has them."""

from __future__ import annotations

from hprofiler.agent.bootstrap import AgentBinaries
from hprofiler.base import resources
from hprofiler.base.errors import UsageError
from hprofiler.model import Host, HostRecord, Outcome, Process, Recording, Selector
from hprofiler.model.metrics import Metrics
from tests.contract.agent_driver import good


def why_not() -> str | None:
    """What is missing of them; None when all is there."""
    try:
        resources.agents()
    except UsageError as error:
        return str(error)
    return None if resources.blobs()["async-profiler"] else "the package has no async-profiler library"


def binaries() -> AgentBinaries:
    return AgentBinaries(resources.agents(), resources.blobs())


def text(word: str) -> Selector:
    """The selector for JVMs with `word` on their command lines."""
    return Selector(word, "text", {"kind": "text", "text": word})


class Profiles:
    """A sink that keeps what it gets: the last compact profile of each host."""

    def __init__(self) -> None:
        self.kept: dict[str, bytes] = {}

    def profile(self, host: Host, recording: Recording, pieces, more: bool = False) -> Recording:
        self.kept[host.name] = b"".join(pieces)
        return recording

    def raw(self, host: Host, process: Process, name: str, pieces) -> None:
        for _ in pieces:
            pass

    def metrics(self, host: Host, metrics: Metrics) -> None:
        pass


def of_host(result: HostRecord) -> list[Outcome]:
    return [outcome for outcome in result.outcomes if outcome.pid is None]


def is_good(line: Outcome) -> bool:
    """That a process was recorded as it was asked for; AssertionError has why it was not."""
    return good({"status": line.status.value, "reason": line.reason})


def of_processes(result: HostRecord) -> list[Outcome]:
    return [outcome for outcome in result.outcomes if outcome.pid is not None]
