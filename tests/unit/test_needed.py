"""What cannot be had skips its tests, and fails them in CI."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.needed import HAVE_ALL, lacking

CI = Path(__file__).resolve().parents[2] / ".ci" / "run"


def test_what_is_lacking_skips_its_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(HAVE_ALL, raising=False)
    with pytest.raises(pytest.skip.Exception, match=r"^there is no Firefox$"):
        lacking("there is no Firefox")


def test_in_ci_it_fails_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(HAVE_ALL, "1")
    with pytest.raises(pytest.fail.Exception, match=f"there is no Firefox, and {HAVE_ALL} is set"):
        lacking("there is no Firefox")
    assert f"{HAVE_ALL}=1 make test" in CI.read_text()


@pytest.mark.parametrize(
    "reason, failed", [("sshd is not installed", 1), ("takes a minute, make chaos does it", 0)]
)
def test_in_ci_every_other_skip_fails_too(tmp_path: Path, reason: str, failed: int) -> None:
    skipping = tmp_path / "test_skipping.py"
    skipping.write_text(
        f"import pytest\n@pytest.mark.skipif(True, reason={reason!r})\ndef test_one():\n    pass\n"
    )
    root = CI.parents[1]
    call = [sys.executable, "-m", "pytest", "-p", "tests.conftest", "-p", "no:cacheprovider", str(skipping)]
    for environment, status in (({HAVE_ALL: "1"}, failed), ({HAVE_ALL: ""}, 0)):
        done = subprocess.run(call, cwd=root, env={**os.environ, **environment}, capture_output=True)
        assert done.returncode == status, done.stdout.decode()
