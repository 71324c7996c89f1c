"""What `perf record` makes of programs with known stacks: C with kernel work, Java, several events."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.burners.burner import Burner
from tests.exact.peers import needs

C_PROGRAM = """
#include <fcntl.h>
#include <unistd.h>
static volatile unsigned sink;
__attribute__((noinline)) void spin(unsigned n) { for (unsigned i = 0; i < n; i++) sink += i * i; }
__attribute__((noinline)) void read_in(int fd) {
  static char block[65536];
  for (int i = 0; i < 20; i++) sink += read(fd, block, sizeof block);
}
__attribute__((noinline)) void middle(int fd, int depth) {
  if (depth) { middle(fd, depth - 1); sink++; return; }
  spin(200000); read_in(fd);
}
int main(void) {
  int fd = open("/dev/zero", O_RDONLY);
  for (int i = 0; i < 400; i++) { middle(fd, i % 5); usleep(200); }
  return 0;
}
"""


def c_program(folder: Path) -> Path:
    """The program above, with frame pointers."""
    source, program = folder / "busy.c", folder / "busy"
    source.write_text(C_PROGRAM)
    options = ["-O1", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls"]
    subprocess.run([needs("gcc"), *options, "-o", str(program), str(source)], check=True)
    return program


def record(data: Path, options: list[str], command: list[str]) -> Path:
    """`perf record` of a command; skipped, with perf's words, where the kernel does not let us."""
    perf = [needs("perf"), "record", "-o", str(data), "-g", "--sample-cpu", *options, "--", *command]
    done = subprocess.run(perf, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0 and "Permission" in done.stdout:
        pytest.skip(f"perf may not record here: {done.stdout.strip()}")
    assert done.returncode == 0, done.stdout
    return data


def script(data: Path, *options: str) -> bytes:
    """The text of `perf script`."""
    command = [needs("perf"), "script", "--force", "-i", str(data), *options]
    done = subprocess.run(command, capture_output=True)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


def record_java(data: Path, seconds: int = 3) -> Path:
    """A busy JVM with frame pointers, and its perf map written while it lives."""
    jcmd = needs("jcmd")
    burner = Burner(role="mixed", options=["-XX:+PreserveFramePointer"])
    try:
        record(data, ["-F", "997", "-p", str(burner.pid)], ["sleep", str(seconds)])
        subprocess.run([jcmd, str(burner.pid), "Compiler.perfmap"], check=True, stdout=subprocess.DEVNULL)
        burner.finish()
    finally:
        burner.kill()
    return data
