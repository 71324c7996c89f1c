"""The program as a process: signals, closed streams, a full disk, odd names and files that never end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from hprofiler.collect.stop import Stop, on_interrupt
from tests.lab.procs import wait_for
from tests.unit.command import ROOT, as_process, hprofiler, in_shell

PATIENCE = 120
# A signal at the n-th import after the program's first one.
INTERRUPTED = """
import os, signal, sys
left, begun = int(sys.argv.pop(1)), False
def imported(event, details):
    global left, begun
    if event == "import":
        begun = begun or details[0] == "hprofiler.cli"
        left -= begun
        if begun and left == 0:
            os.kill(os.getpid(), signal.SIGINT)
sys.addaudithook(imported)
signal.signal(signal.SIGINT, signal.default_int_handler)
from hprofiler.__main__ import main
sys.exit(main())
"""
NOBODY = ["ps", "-j", "java", "-h", "127.0.0.1", "--port", "1"]


@pytest.mark.parametrize(
    ("number", "moment", "code"),
    [
        (signal.SIGINT, 1, 130),
        (signal.SIGINT, 34, 130),
        (signal.SIGINT, 233, 130),
        (signal.SIGTERM, 100, 143),
        (signal.SIGHUP, 100, 129),
    ],
)
def test_a_signal_while_it_starts_ends_it_quietly(number: int, moment: int, code: int) -> None:
    script = INTERRUPTED.replace("signal.SIGINT)", f"{int(number)})", 1)
    command = [sys.executable, "-c", script, str(moment), *NOBODY]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE)
    assert ended.returncode == code and ended.stderr in ("", "hprofiler: interrupted\n")


def test_each_signal_is_a_request_and_the_first_is_known() -> None:
    stop = Stop()
    signals = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
    before = [signal.getsignal(number) for number in signals]
    with on_interrupt(stop.request):
        os.kill(os.getpid(), signal.SIGHUP)
        os.kill(os.getpid(), signal.SIGHUP)
        assert stop.level == 1, "a hangup is never the second request"
        os.kill(os.getpid(), signal.SIGTERM)
        assert stop.level == 2
    assert stop.signal == signal.SIGHUP
    assert [signal.getsignal(number) for number in signals] == before


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_an_ignored_signal_stays_ignored(number: signal.Signals) -> None:
    stop = Stop()
    before = signal.signal(number, signal.SIG_IGN)
    try:
        with on_interrupt(stop.request):
            os.kill(os.getpid(), number)
        assert stop.level == 0 and signal.getsignal(number) is signal.SIG_IGN
    finally:
        signal.signal(number, before)


NOTHING = "text:no-such-thing-anywhere"


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (f"ps -j {NOTHING}", 4),
        (f"-j {NOTHING} -o out", 4),
        ("selectors", 0),
    ],
    ids=["ps", "run", "selectors"],
)
@pytest.mark.parametrize("streams", [">&-", "<&- >&- 2>&-"])
def test_closed_streams(words: str, code: int, streams: str, tmp_path: Path) -> None:
    done = in_shell(f"{words} {streams}", tmp_path)
    assert done.returncode == code and "Traceback" not in done.stdout + done.stderr, done


@pytest.mark.parametrize("words", ["ps", "doctor", "run -o out"])
def test_json_is_json_where_stderr_is_closed(words: str, tmp_path: Path) -> None:
    json.loads(in_shell(f"{words} --json -j {NOTHING} 2>&-", tmp_path).stdout)


@pytest.mark.parametrize("words", ["--help", "convert --help", f"doctor -j {NOTHING}"])
def test_a_narrow_encoding(words: str, tmp_path: Path) -> None:
    done = in_shell(words, tmp_path, PYTHONUTF8="0", LC_ALL="POSIX", PYTHONCOERCECLOCALE="0")
    assert done.stdout and "Traceback" not in done.stderr and done.returncode in (0, 4), done


GREW = "main;cold 50\nmain;hot 50\n", "main;cold 1000\nmain;hot 9000\n"


@pytest.mark.parametrize("streams", ["| true", "2>/dev/full", "| head -c 10", "2>&1 | true"])
def test_output_that_is_not_read_keeps_the_exit_code(streams: str, tmp_path: Path) -> None:
    """A pipeline in CI that reads the first lines only must still fail."""
    for name, stacks in zip(("before", "after"), GREW, strict=False):
        (tmp_path / f"{name}.folded").write_text(stacks)
    diff = f"{sys.executable} -m hprofiler diff before.folded after.folded --fail-over 5% --json"
    command = ["sh", "-c", f"({diff}; echo $? > code) {streams}"]
    subprocess.run(command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=60)
    assert (tmp_path / "code").read_text() == "1\n"


LONG = "x" * 300


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
    done = as_process(*words, folder=folded.parent)
    assert done.returncode == 2 and done.stderr.startswith("hprofiler: "), done
    assert os.listdir(folded.parent) == ["a.folded"]


@pytest.mark.parametrize("verb", ["report", "outliers", "diff"])
def test_a_fifo_as_run_json_is_refused(verb: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "run.json")
    done = hprofiler(verb, tmp_path, *([tmp_path] if verb == "diff" else []))
    assert done.returncode in (2, 4) and "not a regular file" in done.stderr, done


@pytest.mark.parametrize("more", [[], ["--flamechart"]], ids=" ".join)
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_waiting_for_input_can_be_interrupted(
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
    """Whether a thread of the process reads from a pipe."""
    return any("pipe_read" in path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/wchan"))


def test_ps_says_once_why_a_named_process_is_left_out() -> None:
    said = hprofiler("ps", "4194303").stderr
    assert said.count("there is no such process") == 1, said
