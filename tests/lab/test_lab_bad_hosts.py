"""One bad host, key or JVM never loses the others, and is told with the reason and the way out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.burners.burner import Burner
from tests.lab.conftest import JOB, Burn
from tests.lab.coordinator import ALL, Coordinator, Result
from tests.lab.hosts import Lab

ROOT = ["--user", "root"]
RUN = ["-t", "2", "-j", JOB, "-h", ALL, *ROOT]


@pytest.fixture
def unplugged(lab: Lab) -> Iterator[str]:
    """A host whose cable is out."""
    lab.plug("host3", False)
    yield "host3"
    lab.plug("host3", True)


def failed_host(result: Result, name: str, stage: str = "connect") -> dict[str, Any]:
    """The one ledger line of a host that failed as a whole."""
    (outcome,) = result.host(name)["outcomes"]
    assert (outcome["status"], outcome["stage"], outcome["pid"]) == ("failed", stage, None)
    assert outcome["reason"]
    assert outcome["remedy"]
    return outcome  # type: ignore[no-any-return]


def test_a_host_that_does_not_answer_is_one_line_in_the_ledger(
    coordinator: Coordinator, job: dict[str, Burner], unplugged: str
) -> None:
    result = coordinator.run(*RUN, "--timeout", "15")
    assert result.code == 3, str(result)
    assert [result.pids(name) for name in ("host1", "host2")] == [[job["host1"].pid], [job["host2"].pid]]
    failed_host(result, unplugged)
    assert result.run["coverage"]["hosts"] == {"all": 3, "reached": 2, "recorded": 2, "idle": 0, "failed": 1}
    assert unplugged in result.err


def test_a_jvm_that_refuses_attach_is_told_and_left_in_peace(
    coordinator: Coordinator, lab: Lab, job: dict[str, Burner], burn: Burn
) -> None:
    deaf = burn(lab.hosts["host1"], load=0.2, options=["-XX:+DisableAttachMechanism"], extra=[JOB])
    result = coordinator.run(*RUN)
    assert result.code == 3, str(result)
    assert result.pids("host1") == [job["host1"].pid]
    outcome = result.line("host1", deaf.pid)
    assert (outcome["status"], outcome["stage"]) == ("failed", "prepare")
    assert "DisableAttachMechanism" in outcome["reason"] + outcome["remedy"]
    deaf.counters()
    assert not [line for line in deaf.other_lines if "thread dump" in line], "SIGQUIT was sent all the same"
