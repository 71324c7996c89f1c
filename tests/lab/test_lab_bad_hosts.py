"""One bad host, key or JVM never loses the others, and is told with the reason and the way out."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.burners.burner import HOT, Burner
from tests.lab import jdks, procs
from tests.lab.conftest import JOB, Burn
from tests.lab.coordinator import ALL, Coordinator, Result
from tests.lab.folded import Stacks
from tests.lab.hosts import Lab
from tests.lab.witness import Witness, active_profilers
from tests.needed import lacking

ROOT = ["--user", "root"]
RUN = ["-t", "2", "-j", JOB, "-h", ALL, *ROOT]


@pytest.fixture
def home(lab: Lab, coordinator: Coordinator) -> Path:
    """A home of its own, whose ~/.ssh a test may change."""
    home = coordinator.new_folder()
    ssh = home / ".ssh"
    ssh.mkdir(mode=0o700)
    for path in (lab.home() / ".ssh").iterdir():
        (ssh / path.name).write_bytes(path.read_bytes())
        (ssh / path.name).chmod(0o600)
    return home


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


@pytest.mark.nightly
def test_a_host_without_sshd_is_told_apart(coordinator: Coordinator, job: dict[str, Burner]) -> None:
    result = coordinator.run("-t", "2", "-j", JOB, "-h", "host1,host2:2222", *ROOT)
    assert result.code == 3, str(result)
    assert "refused" in failed_host(result, "host2")["reason"].lower()


@pytest.mark.nightly
def test_a_name_nobody_knows(coordinator: Coordinator, job: dict[str, Burner]) -> None:
    result = coordinator.run("-t", "2", "-j", JOB, "-h", "host1,nowhere.invalid", *ROOT)
    assert result.code == 3, str(result)
    failed_host(result, "nowhere.invalid")


@pytest.mark.nightly
def test_a_key_the_hosts_do_not_know(coordinator: Coordinator, lab: Lab, home: Path) -> None:
    (home / ".ssh/id_ed25519").write_bytes((lab.keys / "stranger").read_bytes())
    result = coordinator.run(*RUN, environment={"HOME": str(home)})
    assert result.code == 4, str(result)
    for name in ALL.split(","):
        assert "root" in failed_host(result, name)["reason"]
    assert "Traceback" not in result.err


@pytest.mark.nightly
def test_an_unknown_host_key_names_the_option_that_accepts_it(
    coordinator: Coordinator, job: dict[str, Burner], home: Path
) -> None:
    known = home / ".ssh/known_hosts"
    known.write_text("".join(line for line in known.read_text().splitlines(True) if "host2" not in line))
    environment = {"HOME": str(home)}
    refused = coordinator.run(*RUN, environment=environment)
    assert refused.code == 3, str(refused)
    outcome = failed_host(refused, "host2")
    assert "--accept-new-host-keys" in outcome["remedy"]
    assert "host2" not in known.read_text()
    accepted = coordinator.run(*RUN, "--accept-new-host-keys", environment=environment)
    assert accepted.code == 0, str(accepted)
    remembered = coordinator.run(*RUN, environment=environment)
    assert remembered.code == 0, str(remembered)


@pytest.mark.nightly
def test_a_changed_host_key_is_refused_whatever_the_options(
    coordinator: Coordinator, lab: Lab, job: dict[str, Burner], home: Path
) -> None:
    known = home / ".ssh/known_hosts"
    keys = {line.split()[0].partition(",")[0]: line.split()[2] for line in known.read_text().splitlines()}
    known.write_text(known.read_text().replace(keys["host2"], keys["host1"]))
    before = known.read_text()
    result = coordinator.run(*RUN, "--accept-new-host-keys", environment={"HOME": str(home)})
    assert result.code == 3, str(result)
    assert "key" in failed_host(result, "host2")["reason"]
    assert known.read_text() == before


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


@pytest.mark.nightly
def test_a_jvm_that_ends_in_the_middle_keeps_what_was_sampled(
    coordinator: Coordinator, lab: Lab, burn: Burn
) -> None:
    short = burn(lab.hosts["host1"], role="beta", load=0.5, extra=["brief"])
    longer = burn(lab.hosts["host2"], role="gamma", load=0.2, extra=["brief"])
    running = coordinator.start("-f", "200", "-t", "8", "-j", "brief", "-h", "host1,host2", *ROOT)
    running.wait_until_recording(2)
    before = short.counters()
    procs.wait_for("CPU time while recorded", lambda: (short.counters() - before).nanos > 8e8)
    short.finish()
    result = running.result()
    assert result.code in (0, 3), str(result)
    assert result.pids("host2") == [longer.pid]
    outcome = result.line("host1", short.pid)
    assert outcome["status"] == "degraded", str(result)
    assert "ended" in outcome["reason"] or "exited" in outcome["reason"]
    assert result.pids("host1") == [short.pid]
    stacks = result.stacks("hosts/host1/cpu")
    assert stacks.share(HOT["beta"]) == pytest.approx(70, abs=stacks.tolerance())


@pytest.mark.nightly
def test_a_jvm_that_is_killed_in_the_middle_is_told(
    coordinator: Coordinator, lab: Lab, burn: Burn, witness: Witness
) -> None:
    doomed = burn(lab.hosts["host1"], load=0.3, extra=["doomed"])
    longer = burn(lab.hosts["host2"], role="gamma", load=0.2, extra=["doomed"])
    running = coordinator.start("-t", "5", "-j", "doomed", "-h", "host1,host2", *ROOT)
    running.wait_until_recording(2)
    doomed.kill()
    result = running.result()
    assert result.code == 3, str(result)
    assert result.pids("host2") == [longer.pid]
    assert result.line("host1", doomed.pid)["status"] in ("failed", "degraded")
    longer.finish()
    witness.wait_until_clean()


@pytest.mark.nightly
def test_every_jdk_is_recorded(coordinator: Coordinator, lab: Lab, burn: Burn) -> None:
    started: dict[int, Burner] = {}
    homes = jdks.everything()
    for number, version in enumerate(jdks.VERSIONS):
        if homes[version].startswith("/"):
            host = lab.hosts[f"host{1 + number % 3}"]
            started[version] = burn(
                host, role="alpha", load=0.2, java=f"{homes[version]}/bin/java", extra=["jdks"]
            )
    result = coordinator.run("-f", "250", "-t", "8", "-j", "jdks", "-h", ALL, *ROOT)
    assert result.code == 0, str(result)
    for number, version in enumerate(jdks.VERSIONS):
        if version in started:
            _check_profile(coordinator, result, f"host{1 + number % 3}", started[version], version)
    assert active_profilers(started.values()) == []
    missing = [reason for version, reason in homes.items() if version not in started]
    if missing:
        lacking(f"recorded {sorted(started)}; " + "; ".join(missing))


def _check_profile(coordinator: Coordinator, result: Result, name: str, burner: Burner, version: int) -> None:
    recordings = {recording["process"]["pid"]: recording for recording in result.host(name)["recordings"]}
    assert recordings[burner.pid]["process"]["jvm_version"].startswith((f"{version}.", f"1.{version}."))
    assert result.folder
    folded = coordinator.new_folder() / "process.folded"
    profile = result.folder / "hosts" / name / str(burner.pid) / "cpu.pb.gz"
    assert coordinator.run("convert", str(profile), "-o", str(folded)).code == 0
    stacks = Stacks(folded)
    assert stacks.share("Burner.hotAlpha") == pytest.approx(70, abs=stacks.tolerance()), f"JDK {version}"
