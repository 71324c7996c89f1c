"""How the hosts of a command are reached, and what is reported of each step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hprofiler.agent import AgentBinaries
from hprofiler.collect.audit import Audit
from hprofiler.model import Host
from hprofiler.transport import Transport


@dataclass(frozen=True)
class Reach:
    """How hosts are reached: `parallel` connects at once, `timeout` seconds for each step on each host.

    With an `audit` everything that is done to them is recorded there.
    """

    transport_for: Callable[[Host], Transport]
    binaries: AgentBinaries
    parallel: int = 32
    timeout: float = 30.0
    audit: Audit | None = None


@dataclass(frozen=True)
class HostProgress:
    """One step of one host: an outcome's `stage`, or `wait` (for the others), `idle`, `failed`, `done`.

    A host that is `lost` is reconnected to for up to `seconds`. `stop` has no host: the user ends the run.
    """

    host: str
    stage: str
    detail: str = ""
    processes: int = 0
    seconds: float = 0.0


Listener = Callable[[HostProgress], None]


def silent(progress: HostProgress) -> None:
    """A listener that ignores everything."""
