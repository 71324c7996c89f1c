"""A YARN cluster on the lab's hosts: a ResourceManager on coord, a NodeManager on each other host.

python -m tests.lab.yarn.cluster up | down | status | spark MODE ARGS... | mapreduce ARGS... | coord CMD...
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar
from xml.sax.saxutils import escape

from tests.lab import cache, hosts
from tests.lab.hosts import Host, Lab, LabError
from tests.lab.yarn.software import Software, Unavailable, software

RESOURCE_MANAGER = "http://coord:8088"
CONFIGURATION = "/shared/conf"
UP_SECONDS = 180
_OPENED = (
    "java.lang java.lang.invoke java.lang.reflect java.io java.net java.nio java.util java.util.concurrent "
    "java.util.concurrent.atomic sun.nio.ch sun.nio.cs sun.security.action sun.util.calendar"
)
_DAEMONS = {
    "resourcemanager": ("org.apache.hadoop.yarn.server.resourcemanager.ResourceManager", 256),
    "nodemanager": ("org.apache.hadoop.yarn.server.nodemanager.NodeManager", 192),
    "zookeeper": ("org.apache.zookeeper.server.ZooKeeperServerMain 2181 /data/zookeeper 500", 64),
}
"""Main class with its arguments, and MiB of heap."""
SOON = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
"""Options of a JVM that shall be there soon, and need not be fast then."""
_FINAL = ("FINISHED", "FAILED", "KILLED")

Answer = TypeVar("Answer")


class YarnCluster:
    """The cluster on a lab whose hosts are up and see `software` and a shared folder.

    `properties` are added to the lab's yarn-site.xml, NodeManagers run as `node_user`.
    """

    def __init__(
        self, lab: Lab, made: Software, properties: Mapping[str, str] = {}, node_user: str = "yarn"
    ) -> None:
        self.lab = lab
        self.software = made
        self.properties = properties
        self.node_user = node_user
        self.active = RESOURCE_MANAGER

    @property
    def nodes(self) -> list[Host]:
        """The hosts with a NodeManager."""
        return [host for host in self.lab.hosts.values() if host is not self.lab.coord]

    def up(self) -> YarnCluster:
        """Start the daemons and wait until every node is registered."""
        self._write_configuration()
        self.start_daemon(self.lab.coord, "resourcemanager")
        for node in self.nodes:
            self.start_daemon(node, "nodemanager", self.node_user)
        self.wait_for_nodes(len(self.nodes))
        return self

    def wait_for_nodes(self, count: int) -> None:
        def registered() -> bool:
            metrics = self.rest("/ws/v1/cluster/metrics") or {}
            active: int = metrics.get("clusterMetrics", {}).get("activeNodes", 0)
            return active == count

        eventually(registered, f"{count} nodes are not registered", UP_SECONDS)

    def start_daemon(self, host: Host, name: str, user: str = "yarn") -> None:
        """Start a daemon; it runs until the host goes down or `kill_daemon`."""
        main_class, heap = _DAEMONS[name]
        java = [
            f"{self.software.java_home}/bin/java", f"-Dproc_{name}", f"-Xmx{heap}m", *SOON.split(),
            f"-Dlab.host={host.name}", "-Dhadoop.log.dir=/data",
            "-cp", f"{CONFIGURATION}:{self.software.hadoop}/*", *main_class.split(),
        ]  # fmt: skip
        script = f"setsid {shlex.join(java)} </dev/null >/data/{name}.log 2>&1 & echo $! >/data/{name}.pid"
        host.run(["bash", "-c", f"{self._exports()} {script}"], user=user)

    def kill_daemon(self, host: Host, name: str) -> None:
        """End a daemon as a crash would."""
        host.run(["bash", "-c", f"kill -9 $(cat /data/{name}.pid)"])

    # Applications

    def spark(
        self,
        *arguments: str,
        mode: str = "cluster",
        executors: int = 3,
        queue: str = "default",
        settings: Mapping[str, str] = {},
    ) -> Application:
        """Submit the lab's own SparkBurn with these arguments."""
        program = ["--class", "SparkBurn", str(self.software.jobs), *arguments]
        options = ["--deploy-mode", mode, "--queue", queue, *settings_of({**limits(executors), **settings})]
        return self.submit_spark(self.software.spark, [*options, *program])

    def submit_spark(
        self, jars: Path, words: Sequence[str], user: str = "yarn", environment: Mapping[str, str] = {}
    ) -> Application:
        """Run Spark's own submission with these words, from the coordinator's machine."""
        opened = [f"--add-opens=java.base/{name}=ALL-UNNAMED" for name in _OPENED.split()]
        places = {"spark.yarn.jars": f"local:{jars}/*", "spark.yarn.stagingDir": f"file:///shared/{user}"}
        command = [
            "env", *(f"{name}={value}" for name, value in environment.items()),
            f"{self.software.java_home}/bin/java", "-Xmx512m", *SOON.split(), *opened,
            "-cp", f"{jars}/*:{CONFIGURATION}", "org.apache.spark.deploy.SparkSubmit",
            "--master", "yarn", "--executor-cores", "1",
            "--executor-memory", "512m", "--driver-memory", "512m",
            *settings_of(places), *words,
        ]  # fmt: skip
        return self._submit(command, user)

    def mapreduce(self, *arguments: str) -> Application:
        """Submit one of Hadoop's examples, say `pi 3 1000`."""
        classes = f"{CONFIGURATION}:{self.software.hadoop}/*"
        program = "org.apache.hadoop.examples.ExampleDriver"
        return self._submit(
            [f"{self.software.java_home}/bin/java", "-Xmx256m", "-cp", classes, program, *arguments]
        )

    def _submit(self, command: Sequence[str], user: str = "yarn") -> Application:
        script = f"{self._exports()} cd /shared; exec {shlex.join(command)}"
        options: dict[str, Any] = {
            "stdin": subprocess.DEVNULL,
            "stdout": subprocess.PIPE,
            "stderr": subprocess.STDOUT,
        }
        client = self.lab.coord.start(["bash", "-c", script], user=user, **options)
        said: list[str] = []
        for line in client.stdout or ():
            said.append(line)
            found = re.search(r"application_\d+_\d+", line)
            if found:
                return Application(self, found.group(), client)
        raise LabError(f"nothing was submitted:\n{''.join(said)[-3000:]}")

    def rest(self, path: str, base: str = "") -> Any | None:
        """The answer as JSON of the active ResourceManager, or of another one; None while it has none."""
        command = self.lab.coordinator(["curl", "-sSfL", "-m", "5", f"{base or self.active}{path}"])
        done = subprocess.run(command, capture_output=True, text=True)
        try:
            return json.loads(done.stdout) if done.returncode == 0 else None
        except ValueError:
            return None

    def put(self, path: str, content: Mapping[str, Any]) -> None:
        """Ask the ResourceManager to change something, as user yarn."""
        target = f"{self.active}{path}?user.name=yarn"
        body = ["-X", "PUT", "-H", "Content-Type: application/json", "-d", json.dumps(content)]
        subprocess.run(
            self.lab.coordinator(["curl", "-sSf", "-m", "10", *body, target]), check=True, capture_output=True
        )

    def _exports(self) -> str:
        home = self.software.java_home
        folders = f"HADOOP_CONF_DIR={CONFIGURATION} YARN_CONF_DIR={CONFIGURATION} SPARK_HOME=/shared"
        return f"export JAVA_HOME={home} {folders};"

    def _write_configuration(self) -> None:
        assert self.lab.shared is not None
        folder = self.lab.shared / "conf"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        for source in (Path(__file__).parent / "conf").iterdir():
            text = source.read_text().replace("${lab.hadoop}", str(self.software.hadoop))
            more = "" if source.name != "yarn-site.xml" else _as_xml(self.properties)
            (folder / source.name).write_text(text.replace("</configuration>", f"{more}</configuration>"))


def limits(executors: int) -> dict[str, str]:
    """Settings by which a job is small and soon knows what goes on."""
    return {
        "spark.executor.instances": str(executors),
        "spark.executor.memoryOverhead": "256m",
        "spark.driver.memoryOverhead": "256m",
        "spark.executor.heartbeatInterval": "2s",
        "spark.yarn.report.interval": "500",
        "spark.ui.port": "0",
    }


def settings_of(properties: Mapping[str, str]) -> list[str]:
    return [word for name, value in properties.items() for word in ("--conf", f"{name}={value}")]


def _as_xml(properties: Mapping[str, str]) -> str:
    return "".join(
        f"<property><name>{name}</name><value>{escape(value)}</value></property>\n"
        for name, value in properties.items()
    )


class Application:
    """An application that was accepted. The client's further words are thrown away."""

    def __init__(self, cluster: YarnCluster, identity: str, client: subprocess.Popen[str]) -> None:
        self.cluster = cluster
        self.id = identity
        self.client = client
        self._drain = subprocess.Popen(
            ["cat"], stdin=client.stdout, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )

    @property
    def state(self) -> str:
        found = self.cluster.rest(f"/ws/v1/cluster/apps/{self.id}") or {}
        return str(found.get("app", {}).get("state", ""))

    def wait_until_busy(self, executors: int = 3, seconds: float = UP_SECONDS) -> None:
        """Wait until so many Spark executors have a task."""

        def busy() -> bool:
            found = self.cluster.rest(f"/proxy/{self.id}/api/v1/applications/{self.id}/executors") or []
            return sum(executor.get("activeTasks", 0) > 0 for executor in found) >= executors

        eventually(busy, f"{self.id} has no {executors} busy executors ({self.state})", seconds)

    def wait_until_running(self, containers: int, seconds: float = UP_SECONDS) -> None:
        """Wait until so many containers run."""

        def running() -> bool:
            found = self.cluster.rest(f"/ws/v1/cluster/apps/{self.id}") or {}
            count: int = found.get("app", {}).get("runningContainers", 0)
            return count >= containers

        eventually(running, f"{self.id} has no {containers} containers ({self.state})", seconds)

    def wait_until_over(self, seconds: float = UP_SECONDS) -> None:
        eventually(lambda: self.state in _FINAL, f"{self.id} does not end", seconds)

    def finish(self) -> None:
        """Have its tasks end, as if their work was done; the application ends by itself then."""
        assert self.cluster.lab.shared is not None
        (self.cluster.lab.shared / f"{self.id}.end").touch()

    def kill(self) -> None:
        """Have the ResourceManager end it unless it is over, and wait for its client."""
        if self.client.poll() is not None:
            return
        if self.state not in _FINAL:
            self.cluster.put(f"/ws/v1/cluster/apps/{self.id}/state", {"state": "KILLED"})
            self.wait_until_over()
        self.client.wait(30)
        self._drain.wait(30)


def eventually(holds: Callable[[], Answer], otherwise: str, seconds: float) -> Answer:
    """The first true answer; LabError when there is none in time. The daemons tell of no event to await."""
    end = time.monotonic() + seconds
    while True:
        answer = holds()
        if answer:
            return answer
        if time.monotonic() > end:
            raise LabError(f"{otherwise} after {seconds:g} s")
        time.sleep(0.2)


def make_lab(
    folder: Path, made: Software, tied: bool = False, nodes: int = 3, show: Sequence[Path] = ()
) -> Lab:
    """A lab (down yet) whose hosts can run the software, and see what is in the folders of `show`."""
    shared = folder / "shared"
    shared.mkdir(parents=True, exist_ok=True)
    shared.chmod(0o1777)
    shown = [made.hadoop, made.spark, made.jobs.parent, *show]
    return Lab(folder, hosts.default_plans(nodes), tied=tied, show=shown, shared=shared)


def main(arguments: Sequence[str]) -> int:
    """The command line of the module's docstring."""
    verb, rest = (arguments[0] if arguments else "status"), list(arguments[1:])
    made = software()
    cluster = YarnCluster(make_lab(cache.folder("yarn-hosts"), made), made)
    if verb == "up":
        cluster.lab.up()
        cluster.up()
        print(f"ResourceManager {RESOURCE_MANAGER}; `coord hprofiler apps -c {RESOURCE_MANAGER}` asks it")
    elif verb == "down":
        cluster.lab.down()
    elif verb == "spark" and len(rest) > 1:
        print(cluster.spark(*rest[1:], mode=rest[0]).id)
    elif verb == "mapreduce" and rest:
        print(cluster.mapreduce(*rest).id)
    elif verb == "coord" and rest:
        os.environ["HOME"] = str(cluster.lab.home())
        command = cluster.lab.coordinator(rest)
        os.execvp(command[0], command)
    elif verb != "status":
        print(__doc__, file=sys.stderr)
        return 2
    for plan in cluster.lab.plans:
        print(f"{plan.name} {plan.address} {'up' if plan.name in cluster.lab.hosts else 'down'}")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(hosts.why_not() or main(sys.argv[1:]))
    except Unavailable as problem:
        sys.exit(str(problem))
