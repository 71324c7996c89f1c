"""Dumps of several hosts by scripted agents: what is kept, what is said of processes, and what is refused."""

from __future__ import annotations

import errno
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from hprofiler.app.dump import DumpRequest, dump
from hprofiler.base.errors import HostError
from hprofiler.collect.dumping import Looks
from hprofiler.collect.dumping import dump as collect
from hprofiler.collect.stop import Stop
from hprofiler.model import Outcome, Status
from hprofiler.model.dump import Dump, DumpedHost
from hprofiler.runfolder.dumps import DumpFolder
from tests.unit.stand_in import ANY, Fleet

WELL = "hello(); found(7, 8); "
ONE_LOOK = "read(); dump(7, b'seven'); outcome(7, stage='dump', code='dumped'); "
ONE_LOOK += "dump(8); outcome(8, stage='dump', code='dumped'); say('dumped', left=[]); "
BYE = "read()"
ONCE = Looks()


@pytest.fixture
def dumped(stand_ins, tmp_path):
    def dumped(bodies: Mapping[str, str], looks: Looks = ONCE, stop: Stop | None = None) -> DumpFolder:
        fleet = Fleet(stand_ins, 20, dict(bodies))
        request = DumpRequest(fleet.located(), ANY, looks, tmp_path / "dump", False, ("hprofiler", "dump"))
        return dump(request, fleet.reach, fleet.listener, stop or Stop()).folder

    return dumped


def hosts_of(folder: DumpFolder) -> dict[str, DumpedHost]:
    return {host.name: host for host in folder.record.hosts}


def of(host: DumpedHost, pid: int | None) -> Outcome:
    (outcome,) = [one for one in host.outcomes if one.pid == pid]
    return outcome


def test_the_texts_of_all_hosts_are_kept(dumped):
    folder = dumped({"n1": WELL + ONE_LOOK + BYE, "n2": "sys.exit(1)"})
    hosts = hosts_of(folder)
    assert (folder.record.dumped, folder.record.processes, folder.record.interrupted) == (2, 2, False)
    first, _ = hosts["n1"].dumps
    assert (first.pid, first.kind, first.look, first.cpu) == (7, "jvm", 1, {7: 0.5})
    assert folder.text_path("n1", first).read_bytes() == b"seven" and not first.process.command
    assert not hosts["n1"].outcomes and of(hosts["n2"], None).status is Status.FAILED


def test_a_process_that_ends_is_not_asked_again(dumped):
    second = (
        "asked = read(); dump(7); outcome(7, stage='dump', code='dumped');"
        "outcome(8, 'failed', 'dump', 'it has ended', code='process-ended'); say('dumped', left=[]);"
        "asked = read(); assert [one['pid'] for one in asked['processes']] == [7], asked;"
        "dump(7); outcome(7, stage='dump', code='dumped'); say('dumped', left=[]); "
    )
    folder = dumped({"n1": WELL + ONE_LOOK + second + BYE}, Looks(times=3, every=0.1, owners=True))
    (host,) = folder.record.hosts
    assert [(one.pid, one.look) for one in host.dumps] == [(7, 1), (8, 1), (7, 2), (7, 3)]
    ended = of(host, 8)
    assert (ended.status, ended.code) == (Status.DEGRADED, "process-ended")
    assert ended.reason == "look 2 of 3: it has ended"
    assert (folder.record.looks, folder.record.owners) == (3, True)


def test_what_was_not_answered_when_the_host_was_lost(dumped):
    half = "read(); dump(7); outcome(7, stage='dump', code='dumped'); sys.exit(3)"
    (host,) = dumped({"n1": WELL + half}).record.hosts
    assert host.dumped == {7} and of(host, None).stage == "dump"
    lost = of(host, 8)
    assert lost.lost and lost.status is Status.FAILED and "its host was lost" in lost.reason


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("dump(9)", "not asked for"),
        ("dump(7); dump(7)", "or twice"),
        ("outcome(7, stage='dump'); dump(7)", "or twice"),
        ("outcome(7, stage='dump'); say('dumped', left=[])", "has no outcome"),
        ("say('done', left=[])", "unexpected event 'done'"),
        ("dump(7, size=99 << 20)", "size"),
        ("dump(7, bytes(18 << 20))", "too long"),
        ("say('dump', pid=7, kind='jvm', time=1, seconds=1, cpu=[], size=3); out(b'xyz')", "damaged text"),
        ("data = gzip.compress(b'x')[:-4]; "
         "say('dump', pid=7, kind='jvm', time=1, seconds=1, cpu=[], size=len(data)); out(data)", "cut off"),
    ],
)  # fmt: skip
def test_what_an_agent_may_not_send(dumped, body, says):
    (host,) = dumped({"n1": f"{WELL}read(); {body}; read()"}).record.hosts
    failed = of(host, None)
    assert failed.code == "protocol-error" and says in failed.reason, failed


def test_a_stop_keeps_what_there_is(dumped, stand_ins, tmp_path):
    """It comes between two looks, of which the second is far away."""
    stop = Stop()
    asked = tmp_path / "asked"
    body = f"{WELL}{ONE_LOOK}request = read(); open({str(asked)!r}, 'w').write(request['type'])"

    class Stopping(DumpFolder):
        def keep(self, host: str, dump: Dump, text: Iterator[bytes]) -> Dump:
            kept = super().keep(host, dump, text)
            if dump.pid == 8:
                stop.request()
            return kept

    fleet = Fleet(stand_ins, 20, {"n1": body})
    folder = Stopping.create(tmp_path / "dump")
    (host,) = collect(fleet.hosts, ANY, Looks(2, 600), fleet.reach, folder, fleet.listener, stop)
    folder.release()
    assert host.dumped == {7, 8} and asked.read_text() in ("stop", "bye")
    assert not [one for one in host.outcomes if one.status is Status.FAILED]


def test_a_full_disk_costs_one_text(dumped, monkeypatch):
    usual = DumpFolder.keep

    def keep(self: DumpFolder, host: str, dump: Dump, text: Iterator[bytes]) -> Dump:
        if dump.pid == 7:
            next(text)
            raise HostError("fetch", f"cannot write: {errno.ENOSPC}", "free some space", code="disk-full")
        return usual(self, host, dump, text)

    monkeypatch.setattr(DumpFolder, "keep", keep)
    (host,) = dumped({"n1": WELL + ONE_LOOK + BYE}).record.hosts
    assert host.dumped == {8} and (of(host, 7).status, of(host, 7).code) == (Status.FAILED, "disk-full")


def test_a_dump_of_nothing_leaves_nothing(stand_ins, tmp_path):
    fleet = Fleet(
        stand_ins, 20, {"n1": "hello(); found(); read(); say('processes', processes=[], ignored=[])"}
    )
    request = DumpRequest(fleet.located(), ANY, Looks(), tmp_path / "dump", False, (), keep_empty=False)
    result = dump(request, fleet.reach, fleet.listener, Stop())
    assert not result.kept and not Path(tmp_path / "dump").exists()
    assert result.record.hosts[0].outcomes[0].status is Status.IDLE
