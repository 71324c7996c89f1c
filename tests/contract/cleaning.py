"""What the tests of `clean` have in common: lists, entries in them, removal."""

from __future__ import annotations

from typing import Any

from tests.contract.agent_driver import Agent

HASH = "0123456789abcdef"
Entry = dict[str, Any]


def list_event(agent: Agent) -> dict[str, Any]:
    """All that a list has."""
    agent.send("clean", kept=False, dry=True)
    return agent.expect("leftovers", 60)


def listed(agent: Agent) -> list[Entry]:
    """The entries of a list."""
    return list_event(agent)["entries"]


def of_pid(entries: list[Entry], pid: int) -> dict[str, Entry]:
    """The entries of a process, by their kinds."""
    return {entry["kind"]: entry for entry in entries if entry["pid"] == pid}


def at(entries: list[Entry], path: object) -> Entry:
    """The entry of a path."""
    (entry,) = [entry for entry in entries if entry["path"] == str(path)]
    return entry


def clean(agent: Agent, kept: bool = True) -> dict[str, list[Any]]:
    """Clean up. The paths or pids by what was done to them, and all that failed."""
    agent.send("clean", kept=kept)
    event = agent.expect("leftovers", 60)
    done: dict[str, list[Any]] = {
        result: [entry["pid"] or entry["path"] for entry in event["entries"] if entry["result"] == result]
        for result in ("removed", "emptied", "stopped", "ended")
    }
    failed = [entry for entry in event["entries"] if entry["result"] == "failed"]
    return {**done, "failed": [*failed, *event["failed"]]}
