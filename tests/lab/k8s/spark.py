"""Spark on the lab's Kubernetes: the Spark of the YARN lab, with what Kubernetes needs beside it."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from urllib.parse import quote

from tests.lab import cache
from tests.lab.hosts import LabError
from tests.lab.k8s import images
from tests.lab.k8s.api import Object
from tests.lab.k8s.cluster import INSIDE, UP_SECONDS, KubeCluster
from tests.lab.procs import wait_for
from tests.lab.yarn.software import software as of_yarn

SPARK = "3.5.6"
ACCOUNT = "spark"
EXECUTOR = "spark-kubernetes-executor"
"""What Spark calls the container."""
RESOURCES = "pods services configmaps persistentvolumeclaims"
RULES: list[Object] = [
    {
        "apiGroups": [""],
        "resources": ["pods", "services", "configmaps", "persistentvolumeclaims"],
        "verbs": ["*"],
    }
]
"""What a driver does in its namespace."""


@dataclass(frozen=True)
class Spark:
    """Folders with jars: Spark's, and the lab's jobs; and the JDK that submits."""

    jars: Path
    jobs: Path
    java_home: Path

    def mounts(self) -> dict[str, str]:
        """Where the pods see them, by name."""
        return {"jars": str(self.jars), "jobs": str(self.jobs)}

    def show(self) -> list[Path]:
        """What the lab's hosts have to see."""
        return [self.jars, self.jobs]


def software() -> Spark:
    """Fetched once. Raises Unavailable.

    The YARN lab's Spark has what there is for YARN; PySpark's package has what there is for Kubernetes, too.
    """
    found = of_yarn()
    jars = cache.made(cache.folder("k8s"), "spark", SPARK.encode(), _fetch)
    return Spark(jars, found.jobs.parent, found.java_home)


def _fetch(folder: Path) -> None:
    """The jars of PySpark's source package, which is not built."""
    download = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-build-isolation"]
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        words = [*download, "--dest", scratch, f"pyspark=={SPARK}"]
        done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=900)
        if done.returncode:
            raise OSError(f"pip failed: {done.stderr.strip()[-1500:]}")
        (package,) = Path(scratch).iterdir()
        with tarfile.open(package) as archive:
            for member in archive:
                name = PurePosixPath(member.name)
                content = archive.extractfile(member) if name.match("deps/jars/*.jar") else None
                if content:
                    with content, (folder / name.name).open("wb") as jar:
                        shutil.copyfileobj(content, jar)


class Application:
    """A Spark job in cluster mode: a driver pod, and the executor pods that it asked for."""

    def __init__(self, cluster: KubeCluster, spark: Spark) -> None:
        self.cluster = cluster
        self.spark = spark
        self.name = ""

    def submit(self, mode: str, *arguments: str, executors: int = 2) -> Application:
        """Submit the lab's SparkBurn with these arguments, and wait until all executors have a task."""
        self.name = f"burn-{mode}"  # as it calls itself, whatever it was submitted as
        if not self.cluster.api.find(f"/api/v1/namespaces/default/serviceaccounts/{ACCOUNT}"):
            self.cluster.account(ACCOUNT, RULES)
        self.cluster.lab.coord.run(self._command((mode, *arguments), executors), timeout=UP_SECONDS)
        wait_for(f"busy executors of {self.name}", lambda: self.busy() >= executors, UP_SECONDS)
        return self

    def busy(self) -> int:
        """How many executors have a task: Spark calls the thread by it."""
        names = [pod["metadata"]["name"] for pod in self.running("executor")]
        return sum(self._has_task(name) for name in names)

    def _has_task(self, name: str) -> bool:
        threads = (
            path.read_text()
            for seen in self.cluster.processes(name, EXECUTOR)
            for path in Path(f"/proc/{seen.pid}/task").glob("*/comm")
        )
        try:
            return any(thread.startswith("Executor task") for thread in threads)
        except OSError:
            return False  # one ended while we looked

    def pods(self, role: str) -> list[Object]:
        """Its pods of a role: driver, executor."""
        chosen = quote(f"spark-app-name={self.name},spark-role={role}")
        listed = self.cluster.api.get(f"/api/v1/namespaces/default/pods?labelSelector={chosen}")
        items: list[Object] = listed["items"]
        return items

    def running(self, role: str) -> list[Object]:
        found = self.pods(role)
        failed = [pod for pod in found if pod["status"]["phase"] == "Failed"]
        if failed:
            raise LabError(f"{self.name}: {json.dumps(failed[0]['status'])[-2000:]}")
        return [pod for pod in found if pod["status"]["phase"] == "Running"]

    def kill(self) -> None:
        """Remove the driver; the executors belong to it and go with it."""
        for role in ("driver", "executor"):
            self.cluster.remove(*(pod["metadata"]["name"] for pod in self.pods(role)))

    def _command(self, arguments: Sequence[str], executors: int) -> list[str]:
        server = self.cluster.server
        settings = [
            word for name, value in self._settings(executors) for word in ("--conf", f"{name}={value}")
        ]
        return [
            "env", f"KUBECONFIG={INSIDE}/{self.cluster.kubeconfig.name}",
            f"{self.spark.java_home}/bin/java", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
            "-cp", f"{self.spark.jars}/*",
            "org.apache.spark.deploy.SparkSubmit", "--master", f"k8s://{server}", "--deploy-mode", "cluster",
            "--name", self.name,
            "--driver-memory", "512m", "--executor-memory", "512m", "--executor-cores", "1",
            *settings, "--class", "SparkBurn", "local:///opt/spark/jobs/jobs.jar", *arguments,
        ]  # fmt: skip

    def _settings(self, executors: int) -> list[tuple[str, str]]:
        base = "spark.kubernetes"
        settings = [
            ("spark.ui.enabled", "false"),
            ("spark.executor.instances", str(executors)),
            ("spark.executor.extraJavaOptions", "-XX:+UseSerialGC"),
            (f"{base}.container.image", images.SPARK),
            (f"{base}.container.image.pullPolicy", "Never"),
            (f"{base}.authenticate.driver.serviceAccountName", ACCOUNT),
            (f"{base}.submission.waitAppCompletion", "false"),
        ]
        for role in ("driver", "executor"):
            settings.append((f"{base}.{role}.request.cores", "50m"))
            for name, path in self.spark.mounts().items():
                volume = f"{base}.{role}.volumes.hostPath.{name}"
                settings += [
                    (f"{volume}.mount.path", f"/opt/spark/{name}"),
                    (f"{volume}.mount.readOnly", "true"),
                    (f"{volume}.options.path", path),
                ]
        return settings
