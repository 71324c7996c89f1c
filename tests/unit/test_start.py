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
from tests.unit.command import hprofiler
from hprofiler.__main__ import main
sys.exit(main())
"""
NOBODY = ["ps", "-j", "java", "-h", "127.0.0.1", "--port", "1"]


@pytest.mark.parametrize("moment", [1, 8, 34, 89, 233])
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
