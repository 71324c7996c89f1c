"""The Rust targets: two separate crates, built with the coverage that libFuzzer needs.

The instrumentation is LLVM's own and works with a stable compiler.
"""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
_COVERAGE = (
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "-Ccodegen-units=1",
)


@dataclass(frozen=True)
class Crate:
    """A crate with one program for its fuzz targets. `source` lists them, `corpus` has their kept inputs."""

    path: Path
    program: str
    source: Path

    @property
    def corpus(self) -> Path:
        return self.path / "corpus"

    @property
    def targets(self) -> list[str]:
        return re.findall(r'^    \("(\w+)", ', self.source.read_text(), re.MULTILINE)

    def build(self, cache: Path) -> Path:
        """Build it; the program, which the variable FUZZ_TARGET gives its target."""
        host = subprocess.run(["rustc", "-vV"], check=True, capture_output=True, text=True).stdout
        triple = str(re.findall(r"^host: (.*)$", host, re.MULTILINE)[0])
        # With --target the flags are not those of build scripts and macros, which cannot be linked with them.
        command = ["cargo", "build", "--quiet", "--release", "--target", triple]
        environment = {
            **os.environ,
            "RUSTFLAGS": " ".join(_COVERAGE),
            "CARGO_TARGET_DIR": str(cache / "target-fuzz"),
        }
        subprocess.run(command, cwd=self.path, env=environment, check=True)
        return cache / "target-fuzz" / triple / "release" / self.program


CRATES: tuple[Crate, ...] = (
    Crate(CHECKOUT / "agents/fuzz", "hprofiler-agent-fuzz", CHECKOUT / "agents/host/src/fuzz/mod.rs"),
    Crate(CHECKOUT / "flamegraph/fuzz", "flamegraph-fuzz", CHECKOUT / "flamegraph/fuzz/src/lib.rs"),
)


def programs(cache: Path) -> dict[str, Path]:
    """The program of each target, built if needed."""
    found: dict[str, Path] = {}
    for crate in CRATES:
        found.update(dict.fromkeys(crate.targets, crate.build(cache)))
    return found
