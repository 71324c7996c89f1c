"""Hosts that lie, flood and explode beside a good one: it loses nothing; we stay small and in our folder."""

from __future__ import annotations

import json
import os
import platform
import re
from pathlib import Path

import pytest

from tests.burners.burner import Burner
from tests.contract import hostile, real
from tests.contract.conftest import as_burnt
from tests.contract.crowd import Crowd
from tests.contract.sshd import SSHD
from tests.lab.chaos import bombs

pytestmark = [
    pytest.mark.skipif(not Path(SSHD).exists(), reason="sshd is not installed (openssh-server)"),
    pytest.mark.skipif(bool(real.why_not()), reason=str(real.why_not())),
]
WORD = f"goodamongbad{os.getpid()}"
LEFT_OUT = set() if os.environ.get("HPROFILER_CHAOS") else hostile.WAITED_FOR
PLAYED = {name: one for name, one in hostile.ALL.items() if name not in LEFT_OUT}
MOST_MEMORY = 1 << 30
MOST_SECONDS = 240.0
"""Of a run whose steps may take 15 s each, on a machine that has other things to do."""
UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]")


@pytest.fixture
def burner():
    made = Burner(load=0.3, extra=[WORD])
    yield made
    made.kill()


def crowd_of(folder: Path, stand_ins) -> Crowd:
    """The stand-ins, with the profiles that they send in `folder`."""
    files = {
        "zeros": bombs.zeros(300 << 20),
        "claims_names": bombs.claims(names=1 << 62),
        "claims_nodes": bombs.claims(nodes=1 << 62),
        "long_name": bombs.flat(["x" * (16 << 20)]),
        "many_names": bombs.many_names(2_000_000),
        "many_nodes": bombs.deep(10_000_000),
        "overflow": bombs.flat(["a", "b"], (1 << 63) - 1),
        "huge": bombs.flat(["a"], (1 << 63) - 1),
        "nasty": bombs.flat([eval(f"'{hostile.NASTY}'"), "a.B.c"]),
    }
    for name, data in files.items():
        (folder / name).write_bytes(data)
    library = real.binaries().blobs["async-profiler"][platform.machine()].sha256
    scripts = {name: f"FOLDER = {str(folder)!r}\n{one.body}" for name, one in stand_ins.items()}
    return Crowd(folder, library, scripts)


def lines_of(host) -> str:
    return " ".join(f"{line['reason']} {line['remedy']}" for line in host["outcomes"])


def test_one_good_host_among_bad_ones(tmp_path, burner):
    crowd = crowd_of(tmp_path, PLAYED)
    before = set(tmp_path.iterdir())
    run = tmp_path / "run"
    names = ["good", *PLAYED]
    words = ["-j", WORD, "-t", "2", "-f", "499", "--engine", "async-profiler", "--timeout", "15"]
    ended = crowd.start("run", names, *words, "-o", str(run)).result(MOST_SECONDS)
    assert ended.code == 3, ended
    hosts = {host["name"]: host for host in json.loads((run / "run.json").read_text())["hosts"]}
    (recording,) = hosts["good"]["recordings"]
    assert recording["process"]["pid"] == burner.pid
    assert [line["status"] for line in hosts["good"]["outcomes"]] == ["ok"], lines_of(hosts["good"])
    for name, one in PLAYED.items():
        assert re.search(one.says, lines_of(hosts[name])), (name, lines_of(hosts[name]))
    assert ended.memory < MOST_MEMORY, ended.memory
    assert ended.seconds < MOST_SECONDS, ended.seconds
    assert set(tmp_path.iterdir()) == {*before, run}
    assert not [path for path in run.rglob("*") if "owned" in path.name]
    for text in (ended.said, (run / "run.json").read_text(), (run / "hosts/good/cpu.folded").read_text()):
        assert not UNSAFE.search(text), UNSAFE.search(text)
    assert "<script>alert" not in (run / "report.html").read_text()
    assert as_burnt((run / "hosts/good" / str(burner.pid) / "cpu.pb.gz").read_bytes())
