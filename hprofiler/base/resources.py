"""Files of the package: agents, libraries of the engines, selectors, the viewer.

An installed package has all of them in `_data`. In a checkout only built files are there.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from hprofiler.base.errors import UsageError
from hprofiler.base.paths import at_home, is_file

ARCHITECTURES = ("x86_64", "aarch64")
ELF_MACHINES = {62: "x86_64", 183: "aarch64"}
ASYNC_PROFILER = "libasyncProfiler.so"
_JVMTI = {"perfmap": "libhprofilerPerfmap.so", "threadnames": "libhprofilerThreadnames.so"}
LIBRARY_VARIABLE = "HPROFILER_ASYNC_PROFILER"
_RELEASE = re.compile(rb"[Aa]sync-profiler (\d{1,3})\.(\d{1,3})")
# Releases before 4.0 crash JDK 25, and 4.0 crashes JDK 26.
_OLDEST = (4, 1)

_PACKAGE = Path(__file__).resolve().parent.parent
_DATA = _PACKAGE / "_data"
_CHECKOUT = _PACKAGE.parent


@dataclass(frozen=True)
class Blob:
    """A file to copy to a host, named there by its SHA-256."""

    path: Path
    sha256: str


def agents() -> dict[str, Blob]:
    """The agent binaries by architecture (`uname -m`). Raises UsageError if there are none."""
    present = _built("agent", "hprofiler-agent")
    if not present:
        raise UsageError(
            f"this installation has no agent binary under {_DATA / 'agent'}",
            "install hprofiler with pip, or run `make build` in a checkout",
        )
    return present


def blobs(async_profiler: str | None = None) -> dict[str, dict[str, Blob]]:
    """Libraries of the engines, by protocol name and architecture; `async_profiler` is another library."""
    ours = {name: _built(name, file_name) for name, file_name in _JVMTI.items()}
    return {"async-profiler": async_profiler_libraries(async_profiler), **ours}


def async_profiler_libraries(named: str | None = None) -> dict[str, Blob]:
    """async-profiler's library by architecture.

    `named` (or $HPROFILER_ASYNC_PROFILER) replaces the shipped one of its architecture.
    """
    present = _built("async-profiler", ASYNC_PROFILER)
    named = named or os.environ.get(LIBRARY_VARIABLE)
    if named:
        arch, blob = _named_library(at_home(named))
        present[arch] = blob
    return present


def refuse_foreign(libraries: Mapping[str, Blob]) -> None:
    """Raises UsageError for libraries that an agent under sudo would refuse."""
    shipped = _built("async-profiler", ASYNC_PROFILER)
    for arch, blob in libraries.items():
        if arch not in shipped or shipped[arch].sha256 != blob.sha256:
            raise UsageError(
                f"an agent that runs with sudo accepts only the library of its package, not {blob.path}",
                f"leave out --async-profiler (or {LIBRARY_VARIABLE}), connect as root instead of --become, "
                f"or install hprofiler from its sources with that library named in {LIBRARY_VARIABLE}",
            )


def selector_directory() -> Path:
    """The folder of the shipped selectors."""
    installed = _DATA / "selectors"
    return installed if installed.is_dir() else _CHECKOUT / "selectors"


def page_template() -> str:
    """The template of the page of profiles, made by flamegraph/viewer/build.py.

    Raises UsageError if the package was built without it.
    """
    return _template("page.html")


def plain_template() -> str:
    """The same for pages of tables and charts."""
    return _template("plain.html")


def _template(name: str) -> str:
    path = _DATA / "viewer" / name
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise UsageError(
            f"this installation has no page template {path}",
            "install hprofiler with pip, or run `make build` in a checkout",
        ) from None


def _built(folder: str, name: str) -> dict[str, Blob]:
    """The file of each architecture."""
    found = {arch: _blob(_DATA / folder / arch / name) for arch in ARCHITECTURES}
    return {arch: blob for arch, blob in found.items() if blob is not None}


def _blob(path: Path) -> Blob | None:
    try:
        return Blob(path, hashlib.sha256(path.read_bytes()).hexdigest())
    except FileNotFoundError:
        return None


def _named_library(path: Path) -> tuple[str, Blob]:
    remedy = f"name a libasyncProfiler.so with --async-profiler or {LIBRARY_VARIABLE}"
    try:
        path.stat()
        if not is_file(path):
            raise UsageError(f"{path} is not a regular file", remedy)
        content = path.read_bytes()
    except OSError as error:
        raise UsageError(
            f"cannot read the async-profiler library {path}: {error.strerror}", remedy
        ) from error
    machine = int.from_bytes(content[18:20], "little")
    if content[:4] != b"\x7fELF" or machine not in ELF_MACHINES:
        raise UsageError(f"{path} is not an x86-64 or arm64 shared library", remedy)
    release = _RELEASE.search(content)
    if release and (int(release[1]), int(release[2])) < _OLDEST:
        reason = f"{path} is {release[0].decode()}, which crashes some JVMs"
        raise UsageError(reason, f"name release {'.'.join(map(str, _OLDEST))} or later")
    return ELF_MACHINES[machine], Blob(path, hashlib.sha256(content).hexdigest())
