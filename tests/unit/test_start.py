"""The beginning of the program: Ctrl-C and wrong options, as a real process."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
PATIENCE = 120
# Ctrl-C at the so many-th import since the program's own first one, wherever that is.
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


def hprofiler(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "hprofiler", *words]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE)


@pytest.mark.parametrize("moment", [1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233, 377])
def test_ctrl_c_while_it_begins_ends_it_quietly(moment: int) -> None:
    command = [sys.executable, "-c", INTERRUPTED, str(moment), *NOBODY]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE)
    assert ended.returncode == 130, ended
    assert "Traceback" not in ended.stderr and "Exception ignored" not in ended.stderr, ended.stderr


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_so_do_the_other_signals(number: int, code: int) -> None:
    script = INTERRUPTED.replace("os.getpid(), signal.SIGINT", f"os.getpid(), {int(number)}")
    command = [sys.executable, "-c", script, "100", *NOBODY]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE)
    assert (ended.returncode, ended.stderr) == (code, "")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["run"], "the following arguments are required: -j/--selector"),
        (["-j", "java", "-f", "none"], "argument -f"),
        (["ps", "--frequency", "99", "-j", "java"], "unrecognized arguments: --frequency 99"),
        (["-j", "java", "--frobnicate"], "--frobnicate"),
    ],
)
def test_a_wrong_option_is_told_in_two_lines(words: list[str], told: str) -> None:
    ended = hprofiler(*words)
    first, second = ended.stderr.splitlines()
    assert ended.returncode == 2 and first.startswith("hprofiler: ") and told in first
    assert second.startswith("  see `hprofiler ") and second.endswith(" --help`")


def test_ps_refuses_more_hosts_than_were_agreed_to_and_records_what_it_does(tmp_path: Path) -> None:
    refused = hprofiler("ps", "-j", "java", "-h", "n1,n2", "--max-hosts", "1")
    assert refused.returncode == 2 and "--max-hosts 2" in refused.stderr
    audit = tmp_path / "audit"
    hprofiler(*NOBODY, "--audit", str(audit))
    assert '"what": "connect"' in audit.read_text()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_that_strikes_while_native_code_asks_for_a_path_is_no_defect(number):
    """What native code makes of the exception does not tell its cause."""
    program = f"""
import os, signal, sys
from hprofiler import cli
from hprofiler.cli import signals

class Asked(os.PathLike):
    def __fspath__(self):
        os.kill(os.getpid(), {number})
        return "x"

def opened(argv):
    signals.at_once()
    signals.as_exceptions()
    from hprofiler._flamegraph import Profile
    Profile.open(Asked())

cli._carry_out = opened
sys.exit(cli.main([]))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (128 + number, "")
