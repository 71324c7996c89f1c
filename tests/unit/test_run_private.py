"""What a run folder tells to whom: the modes of the user's umask, and no command line of a process."""

from __future__ import annotations

import os
import stat

import pytest

from hprofiler.app.run import RunRequest, run
from hprofiler.model import Target
from hprofiler.resolve import Located
from tests.unit.stand_in import ANY, Fleet, StandIns

BODY = """
hello(); read()
say("found", searched=9, ignored=[], processes=[process(7, command="java --password=hunter2 Main")])
request = read()
while request["type"] == "put":
    say("stored", sha256=LIBRARY)
    request = read()
say("outcome", pid=7, status="failed", stage="prepare", reason="no", remedy="")
say("ready", processes=[]); read()
"""


@pytest.fixture
def habits():
    before = os.umask(0o077)
    yield
    os.umask(before)


def test_who_sets_umask_is_alone_with_the_results(tmp_path, habits):
    stand_ins = StandIns(tmp_path)
    fleet = Fleet(stand_ins, 60.0, {"one": BODY})
    located = Located(Target("hosts", "one"), fleet.hosts)
    folder = tmp_path / "run"
    run(RunRequest(located, ANY, fleet.sampling, folder, False, ()), fleet.reach, fleet.listener)
    stand_ins.clean()
    files = [folder, *folder.rglob("*")]
    assert len(files) > 2 and not [path for path in files if stat.S_IMODE(path.stat().st_mode) & 0o077]
    assert not [path for path in files if path.is_file() and b"hunter2" in path.read_bytes()]
