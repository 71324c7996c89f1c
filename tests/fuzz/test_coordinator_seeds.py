"""Where fuzzing of the coordinator starts reaches what it is to reach."""

from __future__ import annotations

import pytest

from tests.fuzz import coordinator, coordinator_seeds

SEEDS = list(coordinator_seeds.seeds())
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
