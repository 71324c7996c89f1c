"""Standard streams that are closed, or can encode little."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Dict

import pytest

NOTHING = "text:no-such-thing-anywhere"


def shell(words: str, streams: str, folder: Path, **named: str) -> subprocess.CompletedProcess[str]:
    command = f"{shlex.quote(sys.executable)} -m hprofiler {words} {streams}"
    environment = {**os.environ, **named}
    return subprocess.run(
        ["/bin/sh", "-c", command],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, cwd=folder, env=environment,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (f"ps -j {NOTHING}", 4),
        (f"doctor -j {NOTHING}", 4),
        (f"-j {NOTHING} -o out", 4),
        ("selectors", 0),
        ("ps -j x --hosts-file -", 2),
        ("convert - -o x.svg", 4),
    ],
    ids=["ps", "doctor", "run", "selectors", "hosts", "convert"],
)
@pytest.mark.parametrize("streams", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams(words: str, code: int, streams: str, tmp_path: Path) -> None:
    done = shell(words, streams, tmp_path)
    if words.startswith("convert") and "<&-" in streams:
        code = 2
    assert done.returncode == code and "Traceback" not in done.stdout + done.stderr, done


@pytest.mark.parametrize("words", ["ps", "doctor", "run -o out"])
def test_json_is_json_where_stderr_is_closed(words: str, tmp_path: Path) -> None:
    json.loads(shell(f"{words} --json -j {NOTHING}", "2>&-", tmp_path).stdout)


@pytest.mark.parametrize("words", ["--help", "convert --help", f"doctor -j {NOTHING}"])
@pytest.mark.parametrize(
    "named",
    [{"PYTHONIOENCODING": "latin-1"}, {"PYTHONUTF8": "0", "LC_ALL": "POSIX", "PYTHONCOERCECLOCALE": "0"}],
    ids=["latin-1", "posix"],
)
def test_narrow_encodings(words: str, named: Dict[str, str], tmp_path: Path) -> None:
    done = shell(words, "", tmp_path, **named)
    assert done.stdout and "Traceback" not in done.stderr and done.returncode in (0, 4), done


def test_a_full_device_is_called_what_it_is(tmp_path: Path) -> None:
    done = shell("selectors", ">/dev/full", tmp_path)
    assert done.returncode == 2 and "cannot write to standard output: No space left" in done.stderr, done
