"""What the tests of `clean` have in common: lists by their ids, entries in them, removal."""

from __future__ import annotations

HASH = "0123456789abcdef"


def listed(agent):
    """What a list has, by its ids."""
    return {entry["id"]: entry for entry in list_event(agent)["entries"]}


def list_event(agent):
    """All that a list tells."""
    agent.send("clean", kept=False, dry=True)
    return agent.expect("leftovers", 60)


def of_pid(entries, pid):
    """The entries of a process, by their kinds."""
    return {entry["kind"]: entry for entry in entries.values() if entry["pid"] == pid}


def at(entries, path):
    """The entry of a path."""
    (entry,) = [entry for entry in entries.values() if entry["path"] == str(path)]
    return entry


def remove(agent, *entries):
    agent.send("clean", kept=False, only=[entry["id"] for entry in entries])
    return agent.expect("cleaned", 60)
