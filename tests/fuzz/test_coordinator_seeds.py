"""Where fuzzing of the coordinator starts reaches what it is to reach."""

from __future__ import annotations

import sys
from pathlib import Path
from types import FrameType

import pytest

from tests.fuzz import coordinator, coordinator_seeds

SEEDS = list(coordinator_seeds.seeds())
REACHED = {
    "agent_start": {
        "bootstrap.push",
        "bootstrap._quoted",
        "visiting._place",
        "visiting._send",
        "visiting._undone",
    },
    "outcomes": {"ledger.outcome", "ledger._explained", "told.print_failures", "told._as_one", "ledger.row"},
    "yarn": {
        "rest._check",
        "rest._redirect",
        "rest._joined",
        "rest._said",
        "containers._from_nodes",
        "spark._driver",
    },
    "ssh_config": {
        "config_file._included",
        "config.lookup",
        "route.find_jump",
        "route._known_as",
        "route._revoked",
    },
    "known_hosts": {"known_hosts.add", "known_hosts._hashed", "revoked._keys"},
    "run_file": {"facts.read_facts", "gather.gather", "page.write", "headline.headline"},
}


EVENTS = [pytest.param(data, id=name) for target, name, data in SEEDS if target == "agent_events"]


@pytest.mark.parametrize("data", EVENTS)
def test_every_event_is_read(data: bytes) -> None:
    assert list(coordinator.read_events(data))


def test_every_kind_of_event_is_among_them() -> None:
    everything = next(data for target, name, data in SEEDS if (target, name) == ("agent_events", "all"))
    assert all(b'"type": "%s"' % kind.encode() in everything for kind in coordinator.PARSERS)


@pytest.mark.parametrize("target", sorted(coordinator.TARGETS))
def test_nothing_is_found_in_them(target: str) -> None:
    of_target = [data for name, _, data in SEEDS if name == target]
    assert of_target
    for data in of_target:
        coordinator.run(target, data)


@pytest.mark.parametrize("target", sorted(REACHED))
def test_they_reach_the_readers_of_which_the_target_has_its_name(target: str) -> None:
    reached: set[str] = set()

    def called(frame: FrameType, event: str, argument: object) -> None:
        if event == "call":
            reached.add(f"{Path(frame.f_code.co_filename).stem}.{frame.f_code.co_name}")

    sys.setprofile(called)
    try:
        for data in (data for name, _, data in SEEDS if name == target):
            coordinator.run(target, data)
    finally:
        sys.setprofile(None)
    assert REACHED[target] <= reached
