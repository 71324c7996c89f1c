"""The software of the lab's Kubernetes: programs built from Go modules, containerd and runc from Debian.

It is built once, in the lab's cache; nothing is installed. The first build takes some minutes.

    python -m tests.lab.k8s.software
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.lab import cache
from tests.lab.cache import Unavailable
from tests.lab.k8s import images

HERE = Path(__file__).parent
KUBERNETES = "v1.33.13"
COMPONENTS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet")
PACKAGES = ("containerd", "runc", "containernetworking-plugins")
TOOLS = {"go": "golang-go", "gcc": "gcc", "apt-get": "apt", "dpkg-deb": "dpkg"}
PLACES = f"{os.environ.get('PATH', '')}:/usr/local/go/bin"
BUILD_SECONDS = 3000
QUICKLY = "all=-l -dwarf=false"  # nothing inlined, nothing for debuggers: compiles in two thirds of the time


@dataclass(frozen=True)
class Software:
    """Folders with the programs, the unpacked Debian packages, and the images as tar files."""

    programs: Path
    system: Path
    images: Path


def why_not() -> str:
    """Why Kubernetes is not available here; empty if it is."""
    missing = [package for tool, package in TOOLS.items() if not shutil.which(tool, path=PLACES)]
    if missing:
        return f"the Kubernetes lab needs {', '.join(missing)}"
    mounts = [line.split() for line in Path("/proc/self/mounts").read_text().splitlines()]
    limited = {option for mount in mounts if mount[2] == "cgroup" for option in mount[3].split(",")}
    lacking = {"cpu", "memory", "cpuset", "devices", "freezer"} - limited
    return f"the Kubernetes lab needs cgroup v1 with {', '.join(sorted(lacking))}" if lacking else ""


def software() -> Software:
    """Everything the cluster runs; fetched and built once. Raises Unavailable."""
    reason = why_not()
    if reason:
        raise Unavailable(reason)
    return Software(_programs(), _system(), images.folder())


def _programs() -> Path:
    sources = sorted((HERE / "kubelab").glob("*.go"))

    def build(folder: Path) -> None:
        for source in sources:
            shutil.copy(source, folder)
        (folder / "go.mod").write_text(_module_file())
        _go(
            folder, "build", "-mod=mod", "-trimpath", "-gcflags", QUICKLY, "-ldflags", _stamp(),
            "-o", "kubelab", ".",
        )  # fmt: skip
        for name in COMPONENTS:
            (folder / name).symlink_to("kubelab")

    key = KUBERNETES.encode() + QUICKLY.encode() + b"".join(source.read_bytes() for source in sources)
    return cache.made(cache.folder("k8s"), "programs", key, build)


def _module_file() -> str:
    """Kubernetes' own module file refers to its parts as local folders. As modules they have its version."""
    found = json.loads(
        _go(cache.folder("k8s"), "mod", "download", "-json", f"k8s.io/kubernetes@{KUBERNETES}")
    )
    lines = Path(found["GoMod"]).read_text().splitlines()
    parts = [line.split()[0] for line in lines if "=> ./staging/" in line and line.split()[1] == "=>"]
    version = "v0." + KUBERNETES.split(".", 1)[1]
    language = next(line for line in lines if line.startswith("go "))
    replaced = "".join(f"\t{part} => {part} {version}\n" for part in parts)
    return (
        f"module kubelab\n\n{language}\n\nrequire k8s.io/kubernetes {KUBERNETES}\n\nreplace (\n{replaced})\n"
    )


def _stamp() -> str:
    """The linker's options that tell the programs their version, without which they refuse to start."""
    facts = {
        "gitVersion": KUBERNETES,
        "gitMajor": "1",
        "gitMinor": KUBERNETES.split(".")[1],
        "gitCommit": "lab",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
    }
    return "-s -w " + " ".join(
        f"-X k8s.io/component-base/version.{name}={fact}" for name, fact in facts.items()
    )


def _go(folder: Path, *arguments: str) -> str:
    own: dict[str, str] = {
        "CGO_ENABLED": "0",
        "GOCACHE": str(cache.folder("go-build")),
        "GOMODCACHE": str(cache.folder("go-modules")),
        "GOFLAGS": "-modcacherw -buildvcs=false",
    }
    go = shutil.which("go", path=PLACES) or "go"
    return _run([go, *arguments], folder, {**os.environ, **own})


def _system() -> Path:
    """containerd, runc and the network plugins, unpacked."""

    def fetch(folder: Path) -> None:
        download = ["apt-get", "download", "-qq", *PACKAGES]
        try:
            _run(download, folder)
        except OSError:  # a machine without an `apt-get update` has no package lists
            _run(["apt-get", "update", "-qq"], folder)
            _run(download, folder)
        for package in sorted(folder.glob("*.deb")):
            _run(["dpkg-deb", "-x", str(package), str(folder)], folder)
            package.unlink()

    return cache.made(cache.folder("k8s"), "system", " ".join(PACKAGES).encode(), fetch)


def _run(command: Sequence[str], folder: Path, environment: dict[str, str] | None = None) -> str:
    done = subprocess.run(
        command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True,
        timeout=BUILD_SECONDS,
    )  # fmt: skip
    if done.returncode:
        raise OSError(f"{' '.join(command[:3])}: {(done.stdout + done.stderr).strip()[-2000:]}")
    return done.stdout


if __name__ == "__main__":
    try:
        print(software())
    except Unavailable as problem:
        sys.exit(str(problem))
