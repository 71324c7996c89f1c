"""The lab's container images, made from this machine's files, without a registry.

| image | contents |
|---|---|
| lab.local/java | a JDK and the libraries it loads, and nothing else: no shell |
| lab.local/jvm | the same, a shell, and the tools that sending the agent needs |
| lab.local/pause | the same; it sleeps, for the pods' own containers |
"""

from __future__ import annotations

import hashlib
import io
import json
import platform
import re
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.lab import cache, jdks

JDK = 17
JAVA_HOME = "/opt/java"
ARCHIVE = "images.tar"
PAUSE, JAVA, JVM = (f"lab.local/{name}:1" for name in ("pause", "java", "jvm"))
LEFT_OUT = ("jmods", "man", "include", "legal", "docs", "demo", "src.zip", "ct.sym")
"""Parts of a JDK that no JVM loads."""
LOADED = re.compile(
    r"/lib(jvm|jli|java|zip|nio|net|extnet|verify|jimage|instrument|attach|management\w*)\.so$"
)
COMPANIONS = ("dl.so.2", "pthread.so.0", "rt.so.1", "resolv.so.2", "nss_files.so.2", "nss_dns.so.2")
"""Parts of the C library that every image with it has, even if no program loads them."""
TOOLS = ("sh", "cat", "chmod", "head", "rm", "sleep", "uname", "wc")
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
_MEDIA = "application/vnd.oci.image"


def folder() -> Path:
    """The folder with ARCHIVE, which holds all images. Raises Unavailable."""
    home = jdks.home(JDK)
    key = Path(__file__).read_bytes() + (home / "release").read_bytes()
    return cache.made(cache.folder("k8s"), "images", key, lambda target: _make(target / ARCHIVE, home))


def _make(target: Path, home: Path) -> None:
    archive = _Archive()
    java, shell = archive.layer(lambda tar: _fill_java(tar, home)), archive.layer(_fill_tools)
    variables = [f"PATH={JAVA_HOME}/bin:/usr/bin:/bin", f"JAVA_HOME={JAVA_HOME}"]
    archive.image(JAVA, [java], {"Env": variables})
    archive.image(JVM, [java, shell], {"Env": variables, "Cmd": ["/bin/sh"]})
    archive.image(PAUSE, [java, shell], {"Entrypoint": ["/bin/sleep", "infinity"]})
    archive.write(target)


class _Archive:
    """An OCI layout under construction: blobs by digest, and the images that refer to them."""

    def __init__(self) -> None:
        self._blobs: dict[str, bytes] = {}
        self._images: list[dict[str, Any]] = []

    def layer(self, fill: Callable[[tarfile.TarFile], None]) -> dict[str, Any]:
        """An image's entry for the layer that `fill` writes."""
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w") as tar:
            fill(tar)
        return self._blob(buffer.getvalue(), "layer.v1.tar")

    def image(self, name: str, layers: Sequence[Mapping[str, Any]], config: Mapping[str, Any]) -> None:
        """An image of these layers, the lowest first."""
        machine = {"architecture": ARCHITECTURES[platform.machine()], "os": "linux"}
        files = {"type": "layers", "diff_ids": [layer["digest"] for layer in layers]}
        described = self._document({**machine, "config": config, "rootfs": files}, "config.v1+json")
        manifest = {"schemaVersion": 2, "mediaType": f"{_MEDIA}.manifest.v1+json"}
        entry = self._document({**manifest, "config": described, "layers": layers}, "manifest.v1+json")
        self._images.append({**entry, "platform": machine, "annotations": {"io.containerd.image.name": name}})

    def write(self, target: Path) -> None:
        index = {"schemaVersion": 2, "manifests": self._images}
        with tarfile.open(target, "w") as tar:
            _add(tar, "oci-layout", b'{"imageLayoutVersion": "1.0.0"}')
            _add(tar, "index.json", json.dumps(index).encode())
            for digest, content in self._blobs.items():
                _add(tar, f"blobs/sha256/{digest}", content)

    def _document(self, content: Mapping[str, Any], kind: str) -> dict[str, Any]:
        return self._blob(json.dumps(content).encode(), kind)

    def _blob(self, content: bytes, kind: str) -> dict[str, Any]:
        digest = hashlib.sha256(content).hexdigest()
        self._blobs[digest] = content
        return {"mediaType": f"{_MEDIA}.{kind}", "digest": f"sha256:{digest}", "size": len(content)}


def _fill_java(tar: tarfile.TarFile, home: Path) -> None:
    _add_folders(tar, ("etc", "proc", "sys", "dev", "run", "root", "opt"))
    _add_folders(tar, ("tmp",), 0o1777)
    _add(tar, "etc/passwd", b"root:x:0:0:root:/root:/bin/sh\n")
    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(scratch) / "java"  # Debian's JDK links its settings to /etc
        shutil.copytree(home, copy, ignore=shutil.ignore_patterns(*LEFT_OUT), ignore_dangling_symlinks=True)
        tar.add(copy, JAVA_HOME.lstrip("/"), filter=_of_root)
        programs = [copy / "bin/java", *(path for path in copy.rglob("*.so") if LOADED.search(str(path)))]
        _add_libraries(tar, programs, outside=copy)


def _fill_tools(tar: tarfile.TarFile) -> None:
    tools = {name: Path(str(shutil.which(name))).resolve() for name in TOOLS}
    _add_folders(tar, ("bin", "usr", "usr/bin"))
    for name, source in tools.items():
        tar.add(source, f"bin/{name}", filter=_of_root)
    _add_libraries(tar, tools.values(), outside=tools["sh"])


def _add_libraries(tar: tarfile.TarFile, programs: Iterable[Path], outside: Path) -> None:
    """The shared libraries that programs load, at their paths, except those below `outside`."""
    found: set[str] = set()
    for program in programs:
        said = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
        found.update(re.findall(r"(/\S+) \(0x", said))
    (libc,) = (Path(path) for path in found if path.endswith("/libc.so.6"))
    found.update(str(libc.with_name(f"lib{name}")) for name in COMPANIONS)
    for library in sorted(path for path in found if not path.startswith(str(outside))):
        tar.add(Path(library).resolve(), library.lstrip("/"), filter=_of_root)


def _add(tar: tarfile.TarFile, name: str, content: bytes) -> None:
    entry = tarfile.TarInfo(name)
    entry.size = len(content)
    tar.addfile(entry, io.BytesIO(content))


def _add_folders(tar: tarfile.TarFile, names: Iterable[str], mode: int = 0o755) -> None:
    for name in names:
        entry = tarfile.TarInfo(name)
        entry.type, entry.mode = tarfile.DIRTYPE, mode
        tar.addfile(entry)


def _of_root(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = "root"
    return entry
