"""All fuzz targets: of the agent and the core in Rust, the coordinator in Python, the viewer in node."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.fuzz import coordinator
from tests.fuzz.crates import CHECKOUT, CRATES, programs
from tests.fuzz.running import Target

CORPUS = Path(__file__).resolve().parent / "corpus"
"""Kept inputs of the coordinator's and the viewer's targets."""
SMALL_HEAP = "--max-old-space-size=128"
"""node's heap for the viewer, in MiB: an input that needs more ends it."""
_ATHERIS = "atheris>=2.3,<4"
_LIMITS = ("-timeout=60", "-rss_limit_mb=1024", "-print_final_stats=1")


def corpora() -> dict[str, Path]:
    """The folder with the kept inputs of each target."""
    found = {target: crate.corpus for crate in CRATES for target in crate.targets}
    return {**found, **dict.fromkeys(coordinator.TARGETS, CORPUS), "block": CORPUS}


def all_targets(cache: Path, found: Path) -> list[Target]:
    """The targets, ready to run; inputs grow in `cache`, failing inputs are put into `found`."""
    targets = []
    for name, program in programs(cache).items():
        targets.append(_guided(name, [str(program)], {"FUZZ_TARGET": name}, cache, found))
    library = _atheris(cache)
    if library is not None:
        path = os.pathsep.join((str(CHECKOUT), str(library)))
        for name in coordinator.TARGETS:
            command = [sys.executable, "-m", "tests.fuzz.guided", name]
            targets.append(_guided(name, command, {"PYTHONPATH": path}, cache, found))
    return [*targets, _block(cache, found)]


def inputs_of(name: str, cache: Path) -> Path:
    return cache / "fuzz-corpus" / name


def _guided(name: str, program: list[str], environment: dict[str, str], cache: Path, found: Path) -> Target:
    inputs = inputs_of(name, cache)
    options = [*_LIMITS, f"-artifact_prefix={found}/{name}-"]

    def command(seconds: int) -> list[str]:
        return [*program, str(inputs), f"-max_total_time={seconds}", *options]

    return Target(name, corpora()[name], command, environment, CHECKOUT)


def _atheris(cache: Path) -> Path | None:
    """libFuzzer for Python, fetched once. Prints a note and returns None if this Python has none."""
    library = cache / f"atheris-{sys.version_info[0]}.{sys.version_info[1]}"
    if not library.is_dir():
        new = library.with_suffix(".new")
        fetch = ["install", "--quiet", "--disable-pip-version-check", "--no-deps", "--only-binary", ":all:"]
        done = subprocess.run([sys.executable, "-m", "pip", *fetch, "--target", str(new), _ATHERIS])
        if done.returncode != 0:
            print("no atheris for this Python: the coordinator's targets are left out", file=sys.stderr)
            return None
        new.rename(library)
    return library


def _block(cache: Path, found: Path) -> Target:
    """node treats the viewer's files as modules only beside a package.json with that type."""
    viewer = cache / "fuzz-viewer"
    shutil.rmtree(viewer, ignore_errors=True)
    copy_viewer(viewer)
    script = Path(__file__).with_name("block.mjs")

    def command(seconds: int) -> list[str]:
        seed = int.from_bytes(os.urandom(4), "big")
        return ["node", SMALL_HEAP, *map(str, (script, viewer, seconds, seed, inputs, found))]

    inputs = inputs_of("block", cache)
    return Target("block", CORPUS, command, {}, CHECKOUT)


def copy_viewer(folder: Path) -> None:
    """The viewer's modules, as node reads them."""
    shutil.copytree(CHECKOUT / "flamegraph/viewer", folder)
    (folder / "package.json").write_text('{"type": "module"}\n')
