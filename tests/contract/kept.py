"""An agent in the middle of a recording, for a coordinator that comes back, or does not."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Any

from tests.burners.burner import Burner
from tests.contract.agent_driver import Agent, leftovers
from tests.contract.conftest import StartAgent, found, is_profiled
from tests.lab.procs import wait_for

KEEPS = 60.0
"""Seconds of a lease that no test waits for, and that outlasts a busy machine."""


class Kept:
    """An agent that records a burner, and what it takes to come back to it."""

    def __init__(
        self,
        start_agent: StartAgent,
        library_file: Path,
        burner: Burner,
        lease: float = KEEPS,
        token: str | None = None,
        **options: Any,
    ) -> None:
        self.token = token or secrets.token_hex(16)
        self.burner = burner
        self.agent = start_agent()
        self.agent.hello(lease, resume=self.token)
        library = self.agent.put(library_file.read_bytes())
        ready, refused = self.agent.prepare(library, found(self.agent, burner), **{"duration": 60, **options})
        assert ready, refused
        self.agent.start()

    def burn_a_while(self) -> None:
        before = self.burner.counters()
        wait_for("CPU time", lambda: (self.burner.counters() - before).nanos > 5e8)

    def is_let_go(self) -> bool:
        return not is_profiled(self.burner.outer.pid) and not own_folders(self.agent)


def own_folders(agent: Agent) -> list[str]:
    """What is for the time of the agent's run only."""
    return [path for path in leftovers(held=True) if f"/.hprofiler-run-{agent.process.pid}-" in path]
