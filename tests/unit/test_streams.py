"""Standard streams that are closed, or can encode little."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

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
        (f"-j {NOTHING} -o out", 4),
        ("selectors", 0),
        ("convert - -o x.svg", 4),
    ],
    ids=["ps", "run", "selectors", "convert"],
)
@pytest.mark.parametrize("streams", [">&-", "<&- >&- 2>&-"])
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
def test_narrow_encodings(words: str, named: dict[str, str], tmp_path: Path) -> None:
    done = shell(words, "", tmp_path, **named)
    assert done.stdout and "Traceback" not in done.stderr and done.returncode in (0, 4), done


GREW = "main;cold 50\nmain;hot 50\n", "main;cold 1000\nmain;hot 9000\n"


@pytest.mark.parametrize("streams", ["| true", "2>/dev/full", "| head -c 10", "2>&1 | true"])
def test_what_is_not_read_changes_no_exit_code(streams: str, tmp_path: Path) -> None:
    """A pipeline in CI that looks at the first lines alone must not pass because of it."""
    for name, stacks in zip(("before", "after"), GREW, strict=False):
        (tmp_path / f"{name}.folded").write_text(stacks)
    diff = f"{sys.executable} -m hprofiler diff before.folded after.folded --fail-over 5% --json"
    command = ["sh", "-c", f"({diff}; echo $? > code) {streams}"]
    subprocess.run(command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=60)
    assert (tmp_path / "code").read_text() == "1\n"
