"""Finds a JDK for the sample job."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from hprofiler.base.errors import UsageError

JVM_FOLDER = Path("/usr/lib/jvm")


def find_jdk() -> Path:
    """Home of the first JDK (with `java` and `javac`) of $JAVA_HOME, $PATH and /usr/lib/jvm.

    UsageError names the package to install.
    """
    for home in _candidates():
        if all(os.access(home / "bin" / tool, os.X_OK) for tool in ("java", "javac")):
            return home
    raise UsageError(
        "the demo compiles a small Java program, and no JDK was found in JAVA_HOME, PATH or /usr/lib/jvm "
        "(a JRE has no javac)",
        "install one: apt-get install default-jdk-headless (Debian, Ubuntu), "
        "dnf install java-devel (Fedora, Red Hat); or set JAVA_HOME",
    )


def _candidates() -> Iterator[Path]:
    if os.environ.get("JAVA_HOME"):
        yield Path(os.environ["JAVA_HOME"])
    javac = shutil.which("javac")
    if javac:
        # Distributions link /usr/bin/javac to the default JDK.
        yield Path(javac).resolve().parent.parent
    if JVM_FOLDER.is_dir():
        yield from sorted(JVM_FOLDER.iterdir())
