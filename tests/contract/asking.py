"""What the agent's contract tests ask of it in common: samplings, processes, what it has done since."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.contract.agent_driver import FREQUENCY, Agent, Event


def sampling(events: Sequence[str] = ("cpu",), engine: str = "auto", **more: Any) -> dict[str, Any]:
    """A short recording; `more` of its members."""
    intervals = dict.fromkeys(("alloc_interval", "lock_threshold", "wall_interval"))
    fixed = {"frequency": FREQUENCY, "duration": 0.3, "keep_raw": False}
    return {"engine": engine, "events": list(events), **fixed, **intervals, **more}


def chosen(found: Sequence[Event]) -> list[Event]:
    """What a request says of processes that were found."""
    return [{key: one[key] for key in ("pid", "start_time", "label", "labels")} for one in found]


def audited(agent: Agent) -> list[Event]:
    """What was told since this was last called. An answer comes after what was done before."""
    agent.send("list")
    agent.expect("processes")
    told, agent.acts = agent.acts, []
    return told
