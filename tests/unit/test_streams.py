"""Standard streams that are closed, or can encode little."""

from __future__ import annotations

import contextlib
import io
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from hprofiler.cli import main

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
def test_narrow_encodings(words: str, named: dict[str, str], tmp_path: Path) -> None:
    done = shell(words, "", tmp_path, **named)
    assert done.stdout and "Traceback" not in done.stderr and done.returncode in (0, 4), done


def test_a_full_device_is_called_what_it_is(tmp_path: Path) -> None:
    done = shell("selectors", ">/dev/full", tmp_path)
    assert done.returncode == 2 and "cannot write to stdout: No space left" in done.stderr, done


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


def test_a_full_disk_behind_stdout_fails_what_else_went_well_and_nothing_else(tmp_path: Path) -> None:
    assert shell(f"ps -j {NOTHING}", ">/dev/full", tmp_path).returncode == 4
    assert shell("selectors", ">/dev/full 2>&1", tmp_path).returncode == 2


def test_a_pipe_that_others_made_non_blocking_takes_everything(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    command = [sys.executable, "-m", "hprofiler", "completion", "bash"]
    with subprocess.Popen(command, stdout=writer, stderr=subprocess.PIPE, cwd=tmp_path) as program:
        os.close(writer)
        with open(reader, "rb") as told:
            whole = told.read()
        assert program.communicate()[1] == b"" and program.returncode == 0
    assert whole == subprocess.run(command, capture_output=True, cwd=tmp_path).stdout


def test_a_closed_stderr_takes_no_file_s_place(tmp_path: Path) -> None:
    program = """
import gc, sys
from hprofiler.cli import streams
streams.prepare()
gc.collect()
with open("file", "w") as file:
    print("lost", file=sys.stderr, flush=True)
    streams.past_its_lock(sys.stderr).write("lost")
    file.write(str(file.fileno()))
"""
    command = f"{shlex.quote(sys.executable)} -c {shlex.quote(program)} 2>&-"
    assert subprocess.run(["/bin/sh", "-c", command], cwd=tmp_path, timeout=60).returncode == 0
    assert int((tmp_path / "file").read_text()) > 2


def test_an_interrupted_write_tells_nothing_twice() -> None:
    program = """
import signal, sys
from hprofiler.cli import streams
streams.prepare()
signal.signal(signal.SIGINT, signal.default_int_handler)
print("ready", flush=True)
try:
    sys.stdout.write("".join(f"{number:7}" for number in range(20_000)))
    sys.stdout.flush()
except KeyboardInterrupt:
    sys.stdout.flush()
"""
    told = b"".join(b"%7d" % number for number in range(20_000))
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as running:
        assert running.stdout is not None and running.stdout.readline() == b"ready\n"
        assert running.stdout.read(70_000) == told[:70_000]  # it is in the middle
        running.send_signal(2)
        assert told[70_000:].startswith(running.stdout.read())  # what is interrupted may be lost


def test_who_calls_it_with_a_stdout_of_their_own(tmp_path: Path) -> None:
    told = io.StringIO()
    with contextlib.redirect_stdout(told):
        assert main(["selectors"]) == 0
    assert "spark-executor" in told.getvalue()
