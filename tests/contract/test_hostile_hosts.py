"""Hosts that lie, flood and explode beside a good one: it loses nothing; we stay small and in our folder."""

from __future__ import annotations

import json
import os
import platform
import re
import signal
from pathlib import Path

import pytest

from tests.burners.burner import Burner
from tests.contract import hostile, real
from tests.contract.agent_driver import good
from tests.contract.conftest import as_burnt
from tests.contract.crowd import Crowd
from tests.contract.sshd import SSHD
from tests.lab import procs
from tests.lab.chaos import bombs

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(not Path(SSHD).exists(), reason="sshd is not installed (openssh-server)"),
    pytest.mark.skipif(bool(real.why_not()), reason=str(real.why_not())),
]
WORD = f"goodamongbad{os.getpid()}"
DRIPS = f"""{hostile.TO_RECORD} profile(7, b'', size=512 << 20)
while True: out(b'x' * (1 << 18)); time.sleep(0.5)"""
"""A host that keeps to its limit for each mebibyte, and takes a quarter of an hour for all."""
TIMEOUT = "15"
"""Seconds of a step."""
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
    crowd = crowd_of(tmp_path, hostile.ALL)
    before = set(tmp_path.iterdir())
    run = tmp_path / "run"
    names = ["good", *hostile.ALL]
    words = ["-j", WORD, "-t", "2", "-f", "499", "--engine", "async-profiler", "--timeout", TIMEOUT]
    ended = crowd.start("run", names, *words, "-o", str(run)).result(MOST_SECONDS)
    assert ended.code == 3, ended
    hosts = {host["name"]: host for host in json.loads((run / "run.json").read_text())["hosts"]}
    (recording,) = hosts["good"]["recordings"]
    assert recording["process"]["pid"] == burner.pid
    (line,) = hosts["good"]["outcomes"]
    assert good(line)
    for name, one in hostile.ALL.items():
        assert re.search(one.says, lines_of(hosts[name])), (name, lines_of(hosts[name]))
    assert ended.memory < MOST_MEMORY, ended.memory
    assert ended.seconds < MOST_SECONDS, ended.seconds
    assert set(tmp_path.iterdir()) == {*before, run}
    assert not [path for path in run.rglob("*") if "owned" in path.name]
    for text in (ended.said, (run / "run.json").read_text(), (run / "hosts/good/cpu.folded").read_text()):
        assert not UNSAFE.search(text), UNSAFE.search(text)
    assert "<script>alert" not in (run / "report.html").read_text()
    assert as_burnt((run / "hosts/good" / str(burner.pid) / "cpu.pb.gz").read_bytes())


def test_an_interrupt_is_not_kept_waiting_by_a_host_that_drips(tmp_path):
    crowd = crowd_of(tmp_path, {"drips": hostile.Hostile(DRIPS, "")})
    run = tmp_path / "run"
    words = ["-j", WORD, "-t", "1", "--engine", "async-profiler", "--timeout", "10"]
    command = crowd.start("run", ["drips"], *words, "-o", str(run))
    procs.wait_for("the first mebibyte", lambda: arrived(run) > 1 << 20)
    command.process.send_signal(signal.SIGINT)
    ended = command.result(2 * procs.PATIENCE)
    assert ended.code == 130, ended
    (host,) = json.loads((run / "run.json").read_text())["hosts"]
    assert "interrupted; it did not send all that it had recorded within 40 s" in lines_of(host)
    assert not arrived(run)


def arrived(run: Path) -> int:
    """Bytes that have come of profiles that are not whole."""
    return sum(path.stat().st_size for path in run.rglob("*.arrived*"))
