"""Files that are none, cannot be looked at, or never end; a disk that is full; input that does not come."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.lab.procs import wait_for
from tests.unit.command import hprofiler

LONG = "x" * 300
NOTHING = "text:no-such-thing-anywhere"


@pytest.fixture
def folded(tmp_path: Path) -> Path:
    path = tmp_path / "a.folded"
    path.write_text("a;b 3\n")
    return path


@pytest.mark.parametrize(
    "words",
    [
        ["convert", "a.folded", "-o", f"{LONG}.svg"],
        ["diff", "a.folded", "a.folded", "-o", f"{LONG}/a.svg"],
        ["report", LONG],
        ["-j", NOTHING, "-o", ""],
        ["-j", NOTHING, "--async-profiler", "/dev/zero"],
    ],
    ids=lambda words: " ".join(words).replace(LONG, "LONG"),
)
def test_names_that_make_no_sense(words: list[str], folded: Path) -> None:
    done = hprofiler(*words, before=lambda: os.chdir(folded.parent))
    assert done.returncode == 2 and done.stderr.startswith("hprofiler: "), done
    assert os.listdir(folded.parent) == ["a.folded"]


@pytest.mark.parametrize("verb", ["report", "outliers", "diff"])
def test_a_fifo_for_a_run_s_file_is_not_waited_for(verb: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "run.json")
    done = hprofiler(verb, tmp_path, *([tmp_path] if verb == "diff" else []))
    assert done.returncode in (2, 4) and "not a regular file" in done.stderr, done


def test_a_full_disk_is_that_of_the_run_folder(tmp_path: Path) -> None:
    def little() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (400, 400))

    done = hprofiler("-j", NOTHING, "-o", tmp_path / "out", before=little)
    assert f"cannot write the run folder {tmp_path}/out: File too large" in done.stderr, done


@pytest.mark.parametrize("more", [[], ["--flamechart"]], ids=" ".join)
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_input_that_does_not_come_may_be_waited_for_no_longer(
    more: list[str], number: int, code: int, tmp_path: Path
) -> None:
    command = [sys.executable, "-m", "hprofiler", "convert", "-", *more, "-o", str(tmp_path / "x.svg")]
    waits = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler) and None,
    )
    try:
        wait_for("it to read", lambda: reads_stdin(waits.pid))
        waits.send_signal(number)
        assert waits.wait(60) == code
    finally:
        waits.kill()
        waits.communicate()
    assert list(tmp_path.iterdir()) == []


def reads_stdin(pid: int) -> bool:
    """Whether a thread of it waits for something to come through a pipe."""
    return any("pipe_read" in path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/wchan"))
