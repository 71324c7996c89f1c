"""The coordinator's disk is full when the run is over: nothing that was recorded is lost, or untold."""

from __future__ import annotations

import argparse
import errno
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hprofiler import runfolder as store
from hprofiler.base.errors import HprofilerError, PicturesError
from hprofiler.cli import main
from hprofiler.cli.commands.run import record
from hprofiler.cli.options.parser import parse
from hprofiler.model import Target
from hprofiler.resolve import Located
from hprofiler.runfolder import RunFolder, RunRecord
from hprofiler.runfolder import disk_reserve as room
from tests.unit.stand_in import ANY, Fleet, StandIns
from tests.viewer.made_profile import made_profile

RECORDED = """hello(); found(7, 8); prepare_request()
outcome(8, 'failed', 'prepare', 'refuses attach'); say('ready', processes=[{{"pid": 7}}])
recording(7); profile(7, open({sent!r}, 'rb').read()); outcome(7); say('done', left=[]); read()"""
IDLE = "hello(); found(); read()"
FULL = "cannot write the run folder {}: No space left on device: the report was not made"
Record = Callable[[str], int]


def taken(folder: RunFolder) -> int:
    """The bytes that the disk has given for what nobody sees in the folder."""
    file = folder._room and folder._room._file
    return os.fstat(file.fileno()).st_blocks * 512 if file else 0


def names(folder: RunFolder) -> list[str]:
    return sorted(os.listdir(folder.path))


@pytest.mark.parametrize("fails_with", [0, errno.EOPNOTSUPP], ids=["fallocate", "zeros"])
def test_room_is_kept_until_run_json_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails_with: int
) -> None:
    def refuse(*of: object) -> None:
        raise OSError(fails_with, os.strerror(fails_with))

    if fails_with:
        monkeypatch.setattr(os, "posix_fallocate", refuse)
    folder = RunFolder.create(tmp_path / "run")
    assert taken(folder) >= room._ROOM and names(folder) == ["run.json"]
    kept_meanwhile: list[int] = []
    replacing = store.replacing

    def noting(path: Path) -> object:
        kept_meanwhile.append(taken(folder))
        return replacing(path)

    monkeypatch.setattr(store, "replacing", noting)
    folder.write(RunRecord())
    assert kept_meanwhile == [0] and names(folder) == ["run.json"]
    folder.release()


@pytest.fixture
def recorded(stand_ins: StandIns, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Record]:
    """A run over a host, whose record finds no room on the disk."""
    made_profile("cpu", "main;work 9\n").write(tmp_path / "sent", "compact")

    def written(folder: RunFolder, record: RunRecord) -> None:
        if record != RunRecord():
            raise store.RunFolderError(f"cannot write the run folder {folder.path}: No space left on device")
        write(folder, record)

    write = RunFolder.write
    monkeypatch.setattr(RunFolder, "write", written)

    def run(body: str) -> int:
        fleet = Fleet(stand_ins, 60.0, {"n1": body.format(sent=str(tmp_path / "sent"))})
        options: argparse.Namespace = parse(["-j", "x", "-o", str(tmp_path / "run")])
        return record(options, fleet.sampling, Located(Target("hosts", "x"), fleet.hosts), ANY, fleet.reach)

    yield run


def test_the_ledger_is_told_all_the_same_and_where_the_profiles_are(
    recorded: Record, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(PicturesError) as caught:
        recorded(RECORDED)
    folder = tmp_path / "run"
    told = capsys.readouterr().err
    assert "not recorded:\n  n1 pid 8 (M): refuses attach\n" in told
    assert told.endswith("recorded 1 of 2 processes on 1 of 1 hosts\n")
    assert caught.value.reason == FULL.format(folder)
    reads = f"hprofiler convert {folder}/hosts/*/*/cpu.pb.gz -o out.html"
    assert caught.value.remedy == f"the profiles are in {folder}/hosts; `{reads}` reads them"
    assert main(["report", str(folder)]) == 4
    told = capsys.readouterr().err
    assert "the run ended before its outcome was written: the profiles are" in told
    (kept,) = folder.glob("hosts/*/*/cpu.pb.gz")
    assert main(["convert", str(kept), "-o", str(tmp_path / "out.html")]) == 0


def test_where_nothing_was_recorded_there_is_nothing_to_read(
    recorded: Record, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(HprofilerError) as caught:
        recorded(IDLE)
    assert not isinstance(caught.value, PicturesError) and caught.value.reason == FULL.format(
        tmp_path / "run"
    )
    assert "free some space" in caught.value.remedy
