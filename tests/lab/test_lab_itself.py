"""The lab holds what its tests rely on: separate machines, ssh, burners as promised, no trace."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.burners.burner import Burner
from tests.lab import cache, hosts, jdks, procs
from tests.lab.conftest import Burn
from tests.lab.hosts import Lab
from tests.needed import lacking


def ssh(lab: Lab, user: str, host: str, command: str) -> str:
    keys = lab.keys
    options = f"-F {keys}/config -i {keys}/id -o UserKnownHostsFile={keys}/known_hosts -o BatchMode=yes"
    words = ["ssh", *options.split(), f"{user}@{host}", command]
    return subprocess.run(
        lab.coordinator(words), check=True, capture_output=True, text=True, timeout=procs.PATIENCE
    ).stdout


@pytest.mark.parametrize("user", ["root", "yarn", "prof"])
@pytest.mark.parametrize("host", ["host1", "host2", "host3"])
def test_every_user_reaches_every_host_by_its_own_key(lab: Lab, host: str, user: str) -> None:
    assert ssh(lab, user, host, "whoami; hostname").split() == [user, host]


def test_host_keys_differ(lab: Lab) -> None:
    lines = (lab.keys / "known_hosts").read_text().splitlines()
    assert len({line.split()[2] for line in lines}) == len(lab.hosts)


def test_prof_becomes_root_without_a_password(lab: Lab) -> None:
    assert ssh(lab, "prof", "host2", "sudo -n id -u").strip() == "0"


@pytest.mark.parametrize("kind", ["net", "pid", "mnt", "uts", "ipc"])
def test_no_two_hosts_share_a_namespace(lab: Lab, kind: str) -> None:
    mine = procs.namespace_of(os.getpid(), kind)
    seen = {procs.namespace_of(host.init.pid, kind) for host in lab.hosts.values()}
    assert len(seen | {mine}) == len(lab.hosts) + 1


def test_hosts_keep_their_files_to_themselves(lab: Lab) -> None:
    lab.hosts["host1"].run(["touch", "/tmp/mine", "/data/mine", "/etc/mine"])
    for path in ("/tmp/mine", "/data/mine", "/etc/mine"):
        assert lab.hosts["host1"].path(path).exists()
        assert not lab.hosts["host2"].path(path).exists()
        assert not Path(path).exists()
    lab.hosts["host1"].run(["rm", "/tmp/mine", "/data/mine", "/etc/mine"])


def test_hosts_have_neither_the_checkout_nor_an_interpreter(lab: Lab) -> None:
    host = lab.hosts["host1"]
    assert host.run(["ls", "-A", str(cache.CHECKOUT)]) == ""
    found = host.run(["sh", "-c", "command -v python3 perf jcmd jattach asprof; true"])
    assert found == ""


def test_a_cable_can_be_pulled(lab: Lab) -> None:
    lab.plug("host3", False)
    with pytest.raises(subprocess.CalledProcessError):
        subprocess.run(lab.coordinator(["ping", "-c1", "-W1", "10.77.0.13"]), check=True, capture_output=True)
    lab.plug("host3", True)
    assert ssh(lab, "root", "host3", "hostname").strip() == "host3"


def test_a_burner_burns_its_shares(job: dict[str, Burner]) -> None:
    before = job["host1"].counters()
    procs.wait_for(
        "CPU time of a burner", lambda: (job["host1"].counters() - before).nanos > 2e8, procs.PATIENCE
    )
    burnt = job["host1"].counters() - before
    shares = [round(100 * part / burnt.nanos) for part in (burnt.hot, burnt.warm, burnt.cool)]
    assert shares == pytest.approx([70, 20, 10], abs=2)


def test_a_burner_belongs_to_yarn_and_ends_by_itself_when_told_to(lab: Lab, burn: Burn) -> None:
    burner = burn(lab.hosts["host1"], role="alloc", load=0.5, seconds=1)
    owners = {seen.uid for seen in lab.hosts["host1"].processes() if seen.pid == burner.outer.pid}
    assert owners == {2001}
    assert burner.process.wait(procs.PATIENCE) == 0


@pytest.mark.parametrize("version", jdks.VERSIONS)
def test_every_jdk_runs_on_a_host(lab: Lab, version: int) -> None:
    try:
        java = jdks.java(version)
    except jdks.Unavailable as reason:
        lacking(str(reason))
    command = lab.hosts["host2"].command([java, "-version"], "yarn")
    said = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    assert f'"1.{version}.' in said or f'"{version}.' in said


def test_a_jdk_that_cannot_be_had(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(jdks.Unavailable, match="JDK 99: is fetched from Debian"):
        jdks.home(99)


def test_teardown_leaves_no_process_mount_or_network(workshop: Path) -> None:
    if hosts.why_not():
        lacking(hosts.why_not())
    folder = workshop / "short-lived"
    folder.mkdir()
    lab = Lab(folder, hosts.default_plans(1), tied=True).up()
    inits = [host.init.pid for host in lab.hosts.values()]
    namespaces = {procs.namespace_of(pid, kind) for pid in inits for kind in ("pid", "net", "mnt")}
    lab.hosts["host1"].start(["sleep", "600"])
    lab.down()
    assert not namespaces & _namespaces_in_use()
    assert str(folder) not in Path("/proc/self/mounts").read_text()
    assert list((folder / "host1" / "root").iterdir()) == []


def test_tied_hosts_die_with_their_maker(workshop: Path) -> None:
    if hosts.why_not():
        lacking(hosts.why_not())
    folder = workshop / "orphaned"
    folder.mkdir()
    script = (
        "import os, sys; from pathlib import Path; from tests.lab import hosts; "
        f"lab = hosts.Lab(Path({str(folder)!r}), hosts.default_plans(1), tied=True).up(); "
        "os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", script], cwd=cache.CHECKOUT, timeout=60)
    assert (folder / "state.json").exists()

    def gone() -> bool:
        return not Lab(folder, hosts.default_plans(1)).hosts

    procs.wait_for("hosts ending with their maker", gone)


def _namespaces_in_use() -> set[str]:
    found = set()
    for entry in Path("/proc").glob("[0-9]*"):
        for kind in ("pid", "net", "mnt"):
            try:
                found.add(procs.namespace_of(int(entry.name), kind))
            except OSError:
                continue  # it ended while we looked
    return found
