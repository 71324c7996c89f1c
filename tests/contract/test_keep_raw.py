"""`--keep-raw` with the real agent and a real JVM that has secrets: none is in the run folder."""

from __future__ import annotations

import gzip
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from hprofiler._flamegraph import Profile
from tests.burners.burner import Burner
from tests.contract import real
from tests.lab import procs

pytestmark = pytest.mark.skipif(bool(real.why_not()), reason=str(real.why_not()))
SECRET = b"hunter2-xyz"


@pytest.fixture
def burner(monkeypatch):
    monkeypatch.setenv("JDK_JAVA_OPTIONS", f"-Dapi.token={SECRET.decode()}")
    secret = f"-Ddb.password={SECRET.decode()}"
    made = Burner(role="alpha", load=0.4, options=[secret], extra=["--password", SECRET.decode()])
    yield made
    made.kill()


def content(file: Path) -> bytes:
    """As it is, and unpacked."""
    written = file.read_bytes()
    return written + (gzip.decompress(written) if written.startswith(b"\x1f\x8b") else b"")


def test_no_secret_of_the_jvm_is_kept(burner, tmp_path):
    folder = tmp_path / "run"
    words = ["-j", f"pid:{burner.pid}", "-t", "1", "--keep-raw", "--force-busy", "-o", str(folder)]
    before = os.umask(0o022)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "hprofiler", *words], capture_output=True, timeout=4 * procs.PATIENCE
        )
    finally:
        os.umask(before)
    (raw,) = folder.rglob("recording.jfr")
    assert Profile.open(raw).total(0) > 0, done
    files = [path for path in folder.rglob("*") if path.is_file()]
    telling = [path for path in files if any(word in content(path) for word in (SECRET, b"db.password"))]
    assert telling == [] and SECRET not in done.stdout + done.stderr
    assert [path for path in files if not stat.S_IMODE(path.stat().st_mode) & 0o077] == [raw]
