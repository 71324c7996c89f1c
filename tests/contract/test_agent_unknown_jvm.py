"""A JDK 8 that says nowhere which version it is: what it cannot do is left out, and the rest is recorded."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.burners.burner import Burner
from tests.contract.agent_driver import Agent
from tests.contract.conftest import as_burnt, found, java_home

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root, as the other recordings do"),
]

Burn = Callable[..., Burner]
SILENT = ["-XX:-UsePerfData"]


@pytest.fixture
def silent_jdk(tmp_path: Path) -> Path:
    """JDK 8 without a `release` file."""
    folder = tmp_path / "jdk"
    subprocess.run(["cp", "-a", f"{java_home(8)}/.", str(folder)], check=True)
    for release in folder.rglob("release"):
        release.unlink()
    return folder


def launched(burn: Burn, jdk: Path, **more: Any) -> Burner:
    """A burner on that JDK: the launcher takes the first `java` of its PATH."""
    return burn(options=SILENT, env={"PATH": f"{jdk}/bin:{os.environ['PATH']}"}, **more)


def recorded(agent: Agent, library: str, burner: Burner) -> tuple[dict[str, Any], dict[str, bytes]]:
    """The outcome of a recording of CPU time and allocations, and the profile of each event."""
    pid = burner.outer.pid
    ready, refused = agent.prepare(library, found(agent, burner), duration=1, events=["cpu", "alloc"])
    assert ready == [pid], refused
    agent.start()
    result = agent.collect()
    return result.outcomes[pid], {event: body for event, (_, body) in result.events[pid].items()}


def test_nothing_says_it(agent: Agent, library: str, burn: Burn, silent_jdk: Path) -> None:
    burner = launched(burn, silent_jdk)
    (process,) = found(agent, burner)
    assert process["jvm"]["version"] == ""
    outcome, profiles = recorded(agent, library, burner)
    assert outcome["status"] == "degraded" and "alloc was left out: " in outcome["reason"], outcome
    assert "debug symbols" in outcome["remedy"]
    assert list(profiles) == ["cpu"] and as_burnt(profiles["cpu"])
