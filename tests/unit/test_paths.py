"""Whoever runs this has neither a home folder nor a name, as in containers that are run by any number."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.needed import lacking

NOBODY = 54321
"""No user has that number."""
OVER_SSH = ["ps", "-j", "text:x", "--hosts", "127.0.0.1"]


@pytest.mark.parametrize(
    ("words", "named", "said"),
    [
        (["ps", "-j", "text:no-such-thing-anywhere"], {}, "no process matches"),
        (["selectors"], {}, "spark-executor"),
        (OVER_SSH, {}, f"the user who runs this ({NOBODY}) has no user name on this machine"),
        ([*OVER_SSH, "--port", "1"], {"LOGNAME": "me"}, "connection refused by 127.0.0.1"),
        ([*OVER_SSH, "--identity", "~/key"], {"LOGNAME": "me"}, "~/key: there is no such home folder"),
    ],
    ids=["this machine", "selectors", "no name", "a name", "no home folder"],
)
def test_commands(words: list, named: dict, said: str, tmp_path: Path) -> None:
    as_nobody = ["unshare", "--user", f"--map-user={NOBODY}"]
    if subprocess.run([*as_nobody, "true"], stderr=subprocess.DEVNULL).returncode != 0:
        lacking("user namespaces cannot be made")
    environment = {key: value for key, value in os.environ.items() if key in ("PATH", "PYTHONPATH")}
    command = [*as_nobody, sys.executable, "-m", "hprofiler", *words]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=60, env={**environment, **named}, cwd=tmp_path
    )
    assert said in done.stdout + done.stderr and "Traceback" not in done.stderr, done


def test_a_run_folder_at_home(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hprofiler", "-j", "text:no-such-thing-anywhere", "--output=~/out"]
    subprocess.run(command, cwd=tmp_path, env={**os.environ, "HOME": str(tmp_path)}, capture_output=True)
    assert (tmp_path / "out/run.json").exists() and not (tmp_path / "~").exists()
