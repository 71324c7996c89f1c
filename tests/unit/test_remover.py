"""A program that a shell can write, and that deletes files."""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
from pathlib import Path

import pytest

from hprofiler.agent.remover import ZEROS, printed, remover

LOADER = Path("/lib64/ld-linux-x86-64.so.2")
SHELLS = [shell for shell in ("dash", "bash", "busybox") if shutil.which(shell)]
WAYS = [True, False] if LOADER.exists() else [False]

pytestmark = pytest.mark.skipif(os.uname().machine != "x86_64", reason="the program is for x86-64 only")


def run(program: Path, by_loader: bool, *arguments: Path) -> subprocess.CompletedProcess[bytes]:
    command: list[object] = [LOADER, program] if by_loader else [program]
    return subprocess.run([*map(str, command), *map(str, arguments)], capture_output=True)


@pytest.mark.parametrize("by_loader", WAYS)
@pytest.mark.parametrize("shell", SHELLS)
def test_it_deletes_what_it_is_told_and_itself(tmp_path: Path, shell: str, by_loader: bool) -> None:
    program, other, kept = (tmp_path / name for name in ("program", "a file", "kept"))
    program.touch(mode=0o700)
    other.write_bytes(bytes(3_000_000))
    kept.touch()
    shell_words = [shell, "sh"] if shell == "busybox" else [shell]
    script = f"""z='{ZEROS}' t={3 if by_loader else 0}; printf "{printed()}" >"$1" """
    subprocess.run([*shell_words, "-c", script, "sh", program], check=True)
    assert program.read_bytes() == remover(by_loader)
    done = run(program, by_loader, program, other)
    assert (done.returncode, done.stderr) == (0, b"")
    assert list(tmp_path.iterdir()) == [kept]


@pytest.mark.parametrize("by_loader", WAYS)
def test_what_cannot_be_deleted_is_told(tmp_path: Path, by_loader: bool) -> None:
    program, other = tmp_path / "program", tmp_path / "other"
    program.write_bytes(remover(by_loader))
    program.chmod(0o700)
    other.touch()
    assert run(program, by_loader, program, tmp_path, other).returncode != 0
    assert list(tmp_path.iterdir()) == []


def test_nothing_on_its_stack_may_run() -> None:
    """glibc's loader would change that for all that is in the process."""
    program = remover(by_loader=True)
    start, size, count = *struct.unpack_from("<Q", program, 32), *struct.unpack_from("<HH", program, 54)
    segments = dict(struct.unpack_from("<II", program, start + size * number) for number in range(count))
    assert segments[0x6474E551] == 6  # PT_GNU_STACK: to be read and written
