"""Build of hprofiler: the Rust binding, and everything that a run needs inside the package.

`hprofiler/_data` of an installed package holds the agent for each architecture, async-profiler's
libraries, those of agents/jvmti, the shipped selectors and the viewer's files. An editable install
writes the built ones (agents, libraries, template) into the checkout, where git ignores them; the rest is
read where it lies.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from setuptools import find_packages, setup
from setuptools.command.build_py import build_py
from setuptools_rust import Binding, RustExtension

ROOT = Path(__file__).resolve().parent
AGENT_TARGETS = {"x86_64": "x86_64-unknown-linux-musl", "aarch64": "aarch64-unknown-linux-musl"}
ELF_MACHINES = {62: "x86_64", 183: "aarch64"}
CANNOT_BUILD = 3
"""What agents/jvmti/build.sh ends with where a compiler or a JDK is missing."""
JVMTI_LIBRARIES = {"perfmap": "libhprofilerPerfmap.so", "threadnames": "libhprofilerThreadnames.so"}
DEVELOPMENT = os.environ.get("HPROFILER_DEV_BUILD") == "1"
"""Whether to build quickly: the agent for this machine's architecture alone, and without LTO."""
AGENT_PROFILE = "agent-dev" if DEVELOPMENT else "agent"
MAVEN_COPY = "mvn --batch-mode --quiet org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy"
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "hprofiler"


class build_package(build_py):
    """build_py, and then the package's data."""

    def run(self) -> None:
        super().run()
        if self.editable_mode:
            add_built_data(ROOT / "hprofiler" / "_data")
            return
        data = Path(self.build_lib) / "hprofiler" / "_data"
        add_built_data(data)
        for file in sorted((ROOT / "selectors").glob("*.yaml")):
            install_file(file.read_bytes(), data / "selectors" / file.name, 0o644)


def add_built_data(data: Path) -> None:
    build_viewer = [sys.executable, str(ROOT / "flamegraph" / "viewer" / "build.py")]
    subprocess.run([*build_viewer, str(data / "viewer" / "page.html")], check=True)
    async_profiler = async_profiler_libraries()
    jvmti = {name: jvmti_libraries(name) for name in JVMTI_LIBRARIES}
    for arch, library in async_profiler.items():
        install_file(library, data / "async-profiler" / arch / "libasyncProfiler.so", 0o644)
    for name, built in jvmti.items():
        for arch, library in built.items():
            install_file(library, data / name / arch / JVMTI_LIBRARIES[name], 0o644)
    ours = [library for built in jvmti.values() for library in built.values()]
    for arch, agent in build_agents([*async_profiler.values(), *ours]).items():
        install_file(agent.read_bytes(), data / "agent" / arch / "hprofiler-agent", 0o755)


def build_agents(libraries: list[bytes]) -> dict[str, Path]:
    """The agents' binaries by architecture, built by one run of cargo, side by side.

    An agent that sudo runs loads no other libraries than these (agents/host/src/staging/shipped.rs).
    """
    targets = {arch: target for arch, target in AGENT_TARGETS.items() if has_rust_target(target)}
    for arch in AGENT_TARGETS.keys() - targets.keys():
        target = AGENT_TARGETS[arch]
        warn(
            f"no Rust standard library for {target}: the package will have no agent for it "
            f"(add it with: rustup target add {target})"
        )
    if DEVELOPMENT:
        targets = {arch: target for arch, target in targets.items() if arch == platform.machine()}
    if not targets:
        return {}
    command = f"cargo build --locked --profile {AGENT_PROFILE} --package hprofiler-agent".split()
    command += [f"--target={target}" for target in targets.values()]
    known = {"HPROFILER_SHIPPED_LIBRARIES": " ".join(map(bytes_sha256, libraries))}
    subprocess.run(command, cwd=ROOT, check=True, env={**os.environ, **known})
    folder = Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target")
    return {arch: folder / target / AGENT_PROFILE / "hprofiler-agent" for arch, target in targets.items()}


def has_rust_target(target: str) -> bool:
    if rust_target_folder(target).is_dir():
        return True
    if shutil.which("rustup"):
        subprocess.run(["rustup", "target", "add", target], cwd=ROOT, check=False)
    return rust_target_folder(target).is_dir()


def rust_target_folder(target: str) -> Path:
    command = ["rustc", "--print", "target-libdir", "--target", target]
    return Path(subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip())


def async_profiler_libraries() -> dict[str, bytes]:
    """Library bytes by architecture: from $HPROFILER_ASYNC_PROFILER, else from the pinned Maven artifact."""
    named = os.environ.get("HPROFILER_ASYNC_PROFILER")
    if named:
        library = Path(named).read_bytes()
        return {elf_architecture(library, named): library}
    pin = json.loads((ROOT / "agents" / "async-profiler.json").read_text())
    jar = fetch_artifact(pin["artifact"], pin["sha256"])
    with zipfile.ZipFile(jar) as archive:
        return {arch: archive.read(member) for arch, member in pin["libraries"].items()}


def elf_architecture(library: bytes, name: str) -> str:
    machine = int.from_bytes(library[18:20], "little")
    if library[:4] != b"\x7fELF" or machine not in ELF_MACHINES:
        raise SystemExit(f"hprofiler build: {name} is no x86-64 or arm64 ELF library")
    return ELF_MACHINES[machine]


def jvmti_libraries(name: str) -> dict[str, bytes]:
    """One of agents/jvmti by architecture; one that cannot be built is left out, and build.sh says why."""
    built = {}
    for arch in AGENT_TARGETS:
        with tempfile.TemporaryDirectory() as folder:
            library = Path(folder) / "library"
            script = ROOT / "agents" / "jvmti" / "build.sh"
            done = subprocess.run(["sh", str(script), name, arch, str(library)], check=False)
            if done.returncode == 0:
                built[arch] = library.read_bytes()
            elif done.returncode != CANNOT_BUILD:
                raise SystemExit(f"hprofiler build: {name} of agents/jvmti does not compile for {arch}")
    return built


def fetch_artifact(coordinates: str, sha256: str) -> Path:
    """The artifact's jar from the cache or through Maven; its bytes must have the pinned hash."""
    _, name, version = coordinates.split(":")
    jar = CACHE / f"{name}-{version}.jar"
    if not (jar.is_file() and file_sha256(jar) == sha256):
        if not shutil.which("mvn"):
            raise SystemExit(
                "hprofiler build: Maven fetches async-profiler but mvn was not found: install the package "
                "maven, or name a library file in HPROFILER_ASYNC_PROFILER"
            )
        subprocess.run(
            [*MAVEN_COPY.split(), f"-Dartifact={coordinates}", f"-DoutputDirectory={CACHE}"], check=True
        )
        found = file_sha256(jar)
        if found != sha256:
            raise SystemExit(f"hprofiler build: {coordinates} has SHA-256 {found}, not the pinned {sha256}")
    return jar


def file_sha256(path: Path) -> str:
    return bytes_sha256(path.read_bytes())


def bytes_sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def install_file(content: bytes, path: Path, mode: int) -> None:
    """Write by rename: a running agent or a loaded library is never overwritten in place."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(path.name + ".new")
    temporary.write_bytes(content)
    temporary.chmod(mode)
    temporary.replace(path)


def warn(text: str) -> None:
    print(f"hprofiler build: {text}", file=sys.stderr)


setup(
    packages=find_packages(include=["hprofiler", "hprofiler.*"]),
    package_data={"hprofiler": ["py.typed", "_flamegraph.pyi"], "hprofiler.app.demo": ["*.java"]},
    cmdclass={"build_py": build_package},
    rust_extensions=[
        RustExtension(
            "hprofiler._flamegraph",
            "flamegraph/binding/Cargo.toml",
            binding=Binding.PyO3,
            py_limited_api=True,
            cargo_manifest_args=["--locked"],
            debug=False,
        )
    ],
    options={"bdist_wheel": {"py_limited_api": "cp310"}},
    zip_safe=False,
)
