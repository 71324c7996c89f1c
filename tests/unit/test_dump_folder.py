"""The folder of a dump: what is written is read, and names from hosts stay inside."""

from __future__ import annotations

from pathlib import Path

import pytest

from hprofiler.base.errors import RunFolderError
from hprofiler.model import Outcome, Process, Status
from hprofiler.model.dump import Dump, DumpedHost
from hprofiler.runfolder import RunFolder
from hprofiler.runfolder.dumps import DumpFolder, DumpRecord

TEXT = b'"main" #1 prio=5 nid=7 runnable\n'


def dump(label: str = "executor 3", pid: int = 7, look: int = 1) -> Dump:
    process = Process("n1", pid, 12, 1000, "ann", label, labels={"container": "c1"}, is_jvm=True)
    return Dump(process, look, 1_700_000_000.5, "jvm", 0.25, {7: 1.5, 8: 0.0})


def test_what_is_written_is_read_and_texts_are_the_owners(tmp_path: Path) -> None:
    folder = DumpFolder.create(tmp_path / "d")
    kept = folder.keep("n1", dump(), iter([TEXT[:5], TEXT[5:]]))
    silent = Outcome("n1", Status.FAILED, "fetch", "no answer", pid=9, code="no-answer")
    record = DumpRecord(looks=3, every=2.0, hosts=(DumpedHost(name="n1", dumps=(kept,), outcomes=(silent,)),))
    folder.write(record)
    folder.release()
    found = DumpFolder.open(tmp_path / "d" / "dump.json")
    assert found.record == record
    assert (found.record.processes, found.record.dumped) == (2, 1)
    text = found.text_path("n1", found.record.hosts[0].dumps[0])
    assert text == tmp_path / "d" / "hosts" / "n1" / "executor_3-7-1.txt"
    assert text.read_bytes() == TEXT
    assert text.stat().st_mode & 0o077 == 0
    with pytest.raises(RunFolderError, match="not a run folder"):
        RunFolder.open(tmp_path / "d")


@pytest.mark.parametrize(
    ("host", "label"),
    [("../..", "../../etc/passwd"), ("a/b", "x" * 5000), ("\0", "\n"), ("pod/container", "ü")],
)
def test_names_from_hosts_stay_inside(tmp_path: Path, host: str, label: str) -> None:
    folder = DumpFolder.create(tmp_path / "d")
    for pid in (7, 8):
        folder.keep(host, dump(label, pid), iter([TEXT]))
    folder.write(
        DumpRecord(hosts=(DumpedHost(name=host, dumps=(folder.keep(host, dump(label), iter([TEXT])),)),))
    )
    folder.release()
    found = DumpFolder.open(tmp_path / "d")
    [read] = found.record.hosts
    assert found.text_path(read.name, read.dumps[0]).read_bytes() == TEXT
    written = list(tmp_path.rglob("*.txt"))
    assert len(written) == 2
    assert all(path.parent.parent == tmp_path / "d" / "hosts" for path in written)


def test_another_dump_gets_a_number_and_force_replaces_only_ours(tmp_path: Path) -> None:
    first = DumpFolder.create(tmp_path / "d")
    first.keep("n1", dump(), iter([TEXT]))
    (tmp_path / "d" / "notes").write_text("mine")
    first.release()
    assert DumpFolder.create(tmp_path / "d").path == tmp_path / "d-2"
    DumpFolder.create(tmp_path / "d", force=True)
    assert sorted(path.name for path in (tmp_path / "d").iterdir()) == ["dump.json", "notes"]
