"""A program that a shell can write, and that deletes files."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import List

import pytest

from hprofiler.agent.remover import printed, remover

LOADER = Path("/lib64/ld-linux-x86-64.so.2")
SHELLS = [shell for shell in ("dash", "bash", "busybox") if shutil.which(shell)]
WAYS = [True, False] if LOADER.exists() else [False]

pytestmark = pytest.mark.skipif(os.uname().machine != "x86_64", reason="the program is for x86-64 only")


@pytest.mark.parametrize("by_loader", WAYS)
@pytest.mark.parametrize("shell", SHELLS)
def test_it_deletes_what_it_is_told_and_itself(tmp_path: Path, shell: str, by_loader: bool) -> None:
    program, other, kept = (tmp_path / name for name in ("program", "a file", "kept"))
    program.write_bytes(bytes(3_000_000))
    program.chmod(0o700)
    other.touch()
    kept.touch()
    shell_words = [shell, "sh"] if shell == "busybox" else [shell]
    script = f"""printf '{printed(remover(by_loader))}' >"$1" """
    subprocess.run([*shell_words, "-c", script, "sh", program], check=True)
    assert program.read_bytes() == remover(by_loader)
    command: List[object] = [LOADER, program] if by_loader else [program]
    done = subprocess.run([*map(str, command), str(program), str(other)], capture_output=True)
    assert (done.returncode, done.stderr) == (0, b"")
    assert list(tmp_path.iterdir()) == [kept]
