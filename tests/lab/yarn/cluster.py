"""A YARN cluster on the lab's hosts: a ResourceManager on coord, a NodeManager on each other host.

Containers run as their application's user.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.lab import hosts
from tests.lab.hosts import Host, Lab, LabError
from tests.lab.procs import wait_for
from tests.lab.yarn import stages
from tests.lab.yarn.software import Software, pyspark_environment, software

RESOURCE_MANAGER = "http://coord:8088"
HISTORY_SERVER = "http://coord:19888"
CONFIGURATION = "/shared/conf"
UP_SECONDS = 180
_PACKAGES = (
    "java.lang java.lang.invoke java.lang.reflect java.io java.net java.nio java.util java.util.concurrent "
    "java.util.concurrent.atomic sun.nio.ch sun.nio.cs sun.security.action sun.util.calendar"
)
OPENED = tuple(f"--add-opens=java.base/{name}=ALL-UNNAMED" for name in _PACKAGES.split())
"""Options for a Spark driver on Java 17."""
_DAEMONS = {
    "resourcemanager": ("org.apache.hadoop.yarn.server.resourcemanager.ResourceManager", 256),
    "nodemanager": ("org.apache.hadoop.yarn.server.nodemanager.NodeManager", 192),
    "historyserver": ("org.apache.hadoop.mapreduce.v2.hs.JobHistoryServer", 192),
}
"""Main class, and MiB of heap."""
SOON = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
"""Options for a JVM that should start fast, not run fast."""
_EXACT = "-XX:+UnlockDiagnosticVMOptions -XX:+DebugNonSafepoints"
"""Options for stacks that are exact where methods are inlined."""
_FINAL = ("FINISHED", "FAILED", "KILLED")


class YarnCluster:
    """The cluster on a lab with running hosts, which see `software` and a shared folder."""

    def __init__(self, lab: Lab, made: Software) -> None:
        self.lab = lab
        self.software = made

    @property
    def nodes(self) -> list[Host]:
        """The hosts with a NodeManager."""
        return [host for host in self.lab.hosts.values() if host is not self.lab.coord]

    def up(self) -> YarnCluster:
        """Start the daemons and wait until every node is registered."""
        self._write_configuration()
        self._start_daemon(self.lab.coord, "resourcemanager", "yarn")
        for node in self.nodes:
            self._start_daemon(node, "nodemanager", "root")

        def registered() -> bool:
            metrics = self.rest("/ws/v1/cluster/metrics") or {}
            active: int = metrics.get("clusterMetrics", {}).get("activeNodes", 0)
            return active == len(self.nodes)

        wait_for("all nodes registered", registered, UP_SECONDS)
        return self

    def keep_history(self) -> None:
        """Start the server that knows MapReduce jobs once they have ended."""
        self._start_daemon(self.lab.coord, "historyserver", "yarn")
        info = f"{HISTORY_SERVER}/ws/v1/history/info"
        wait_for("the history server", lambda: "historyInfo" in self.lab.curl(info), UP_SECONDS)

    def _start_daemon(self, host: Host, name: str, user: str) -> None:
        """Start a daemon; it runs until the host goes down."""
        main_class, heap = _DAEMONS[name]
        java = [
            f"{self.software.java_home}/bin/java", f"-Dproc_{name}", f"-Xmx{heap}m", *SOON.split(),
            f"-Dlab.host={host.name}", "-Dhadoop.log.dir=/data",
            "-cp", f"{CONFIGURATION}:{self.software.hadoop}/*", main_class,
        ]  # fmt: skip
        script = f"setsid {shlex.join(java)} </dev/null >/data/{name}.log 2>&1 &"
        host.run(["bash", "-c", f"{self._exports()} {script}"], user=user)

    # Applications

    def spark(
        self,
        *arguments: str,
        mode: str = "cluster",
        executors: int = 3,
        queue: str = "default",
        user: str = "yarn",
        job: str = "SparkBurn",
        cores: int = 1,
        more: dict[str, str] | None = None,
    ) -> Application:
        """Submit one of the lab's own jobs with these arguments and `more` settings, from the coordinator's
        machine."""
        settings = {
            "spark.executor.instances": str(executors),
            "spark.executor.cores": str(cores),
            "spark.executor.heartbeatInterval": "2s",
            "spark.submit.deployMode": mode,
            "spark.yarn.queue": queue,
            **(more or {}),
        }
        program = ["--class", job, str(self.software.jobs), *arguments]
        return self._spark_submit(self.software.spark, settings, program, user)

    def stages(self, how: str) -> Application:
        """Submit the job whose stages have tasks of 200 ms and a method each."""
        arguments = [how, "600", "30", str(stages.TASK_MILLISECONDS)]
        return self.spark(*arguments, job="SparkStages", cores=stages.HOW[how])

    def waves(self) -> Application:
        """The same, with an executor more every 10 s while tasks wait, up to three; every other stage keeps
        one of them busy, and the others are removed."""
        allocation = {
            "enabled": "true",
            "shuffleTracking.enabled": "true",
            "maxExecutors": "3",
            "schedulerBacklogTimeout": "10s",
            "sustainedSchedulerBacklogTimeout": "10s",
            "executorIdleTimeout": "5s",
        }
        more = {f"spark.dynamicAllocation.{name}": value for name, value in allocation.items()}
        arguments = ["waves", "600", "300", str(stages.TASK_MILLISECONDS)]
        return self.spark(*arguments, job="SparkStages", executors=1, more=more)

    def client(self, home: Path) -> tuple[dict[str, str], dict[str, str]]:
        """The settings and the environment of a driver beside the coordinator, by the PySpark at `home`."""
        assert self.lab.shared is not None
        settings = {
            "spark.yarn.jars": f"local:{home}/jars/*",
            "spark.yarn.stagingDir": f"file://{self.lab.shared}/staging",
            "spark.executor.memory": "512m",
            "spark.driver.memory": "512m",
            "spark.driver.host": "coord",
            "spark.driver.bindAddress": "coord",
            "spark.scheduler.minRegisteredResourcesRatio": "1.0",
            "spark.scheduler.maxRegisteredResourcesWaitingTime": "120s",
        }
        return settings, pyspark_environment(
            home,
            HOME=str(self.lab.home()),
            HADOOP_CONF_DIR=f"{self.lab.shared}{CONFIGURATION.removeprefix('/shared')}",
            SPARK_LOCAL_HOSTNAME="coord",
        )

    def mapreduce(self, *arguments: str) -> Application:
        """Submit one of Hadoop's examples, such as `pi 3 1000`."""
        classes = f"{CONFIGURATION}:{self.software.hadoop}/*"
        program = "org.apache.hadoop.examples.ExampleDriver"
        return self._submit(
            [f"{self.software.java_home}/bin/java", "-Xmx256m", "-cp", classes, program, *arguments]
        )

    def pyspark(self, home: Path, python: Path, jar: Path, program: Path, *arguments: str) -> Application:
        """Submit a Python program with a jar; two executors of one core each. The hosts see all the files."""
        settings = {
            "spark.executor.instances": "2",
            "spark.executor.extraJavaOptions": f"{SOON} {_EXACT}",
            "spark.pyspark.python": str(python),
            "spark.submit.deployMode": "cluster",
        }
        submitted = ["--jars", str(jar), str(program), *arguments]
        return self._spark_submit(home / "jars", settings, submitted, before=["env", f"SPARK_HOME={home}"])

    def _spark_submit(
        self,
        jars: Path,
        settings: dict[str, str],
        program: Sequence[str],
        user: str = "yarn",
        before: Sequence[str] = (),
    ) -> Application:
        settings = {
            "spark.yarn.jars": f"local:{jars}/*",
            "spark.yarn.stagingDir": f"file:///shared/{user}",
            "spark.executor.memory": "512m",
            "spark.executor.memoryOverhead": "256m",
            "spark.driver.memory": "512m",
            "spark.driver.memoryOverhead": "256m",
            "spark.driver.extraJavaOptions": SOON,
            "spark.yarn.report.interval": "500",
            "spark.ui.port": "0",
            **settings,
        }
        command = [
            *before, f"{self.software.java_home}/bin/java", "-Xmx512m", *SOON.split(), *OPENED,
            "-cp", f"{jars}/*:{CONFIGURATION}", "org.apache.spark.deploy.SparkSubmit", "--master", "yarn",
            *(word for name, value in settings.items() for word in ("--conf", f"{name}={value}")), *program,
        ]  # fmt: skip
        return self._submit(command, user)

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

    def rest(self, path: str) -> Any | None:
        """The ResourceManager's answer as JSON; None if there is none yet."""
        try:
            return json.loads(self.lab.curl(f"{RESOURCE_MANAGER}{path}"))
        except ValueError:
            return None

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
            (folder / source.name).write_text(text)
        executor = shutil.copy(Path(__file__).with_name("container-executor"), self.lab.shared)
        Path(executor).chmod(0o755)


class Application:
    """An application that was accepted. What its client says further is kept in a file."""

    def __init__(self, cluster: YarnCluster, identity: str, client: subprocess.Popen[str]) -> None:
        self.cluster = cluster
        self.id = identity
        self.client = client
        self._said = cluster.lab.folder / f"{identity}.out"
        with self._said.open("wb") as out:
            self._drain = subprocess.Popen(["cat"], stdin=client.stdout, stdout=out)

    @property
    def state(self) -> str:
        found = self.cluster.rest(f"/ws/v1/cluster/apps/{self.id}") or {}
        return str(found.get("app", {}).get("state", ""))

    def last_words(self) -> str:
        """What its client said until its end, which is waited for."""
        self.client.wait(UP_SECONDS)
        self._drain.wait(30)
        return self._said.read_text(errors="replace")

    def wait_until_busy(self, executors: int = 3) -> None:
        """Wait until `executors` Spark executors have a task."""

        def busy() -> bool:
            found = self.cluster.rest(f"/proxy/{self.id}/api/v1/applications/{self.id}/executors") or []
            return sum(executor.get("activeTasks", 0) > 0 for executor in found) >= executors

        wait_for(f"{executors} busy executors of {self.id} ({self.state})", busy, UP_SECONDS)

    def wait_until_over(self) -> None:
        wait_for(f"the end of {self.id}", lambda: self.state in _FINAL, UP_SECONDS)

    def finish(self) -> None:
        """Make its tasks end as if their work was done, and with them the application."""
        assert self.cluster.lab.shared is not None
        (self.cluster.lab.shared / f"{self.id}.end").touch()

    def kill(self) -> None:
        """Make the ResourceManager kill it unless it has ended, and wait for its client."""
        if self.client.poll() is not None:
            return
        if self.state not in _FINAL:
            url = f"{RESOURCE_MANAGER}/ws/v1/cluster/apps/{self.id}/state?user.name=yarn"
            body = ["-X", "PUT", "-H", "Content-Type: application/json", "-d", '{"state": "KILLED"}']
            self.cluster.lab.curl(url, *body)
            self.wait_until_over()
        self.client.wait(30)
        self._drain.wait(30)


def make_lab(folder: Path, made: Software, tied: bool = False, show: Sequence[Path] = ()) -> Lab:
    """A lab, not started, whose hosts can run the software, and see other folders."""
    shown = [made.hadoop, made.spark, made.jobs.parent, *show]
    return Lab(folder, hosts.default_plans(), tied=tied, show=shown, shared=folder / "shared")


@contextmanager
def running_cluster(folder: Path, show: Sequence[Path] = (), here: bool = False) -> Iterator[YarnCluster]:
    """A cluster whose hosts see these folders; with `here` the shared one is where this machine has it."""
    hosts.require()
    made = software()
    lab = make_lab(folder, made, tied=True, show=show)
    lab.up()
    try:
        for host in lab.hosts.values() if here else ():
            host.run(["mkdir", "-p", str(lab.folder)])
            host.run(["ln", "-s", "/shared", str(lab.shared)])
        yield YarnCluster(lab, made).up()
    finally:
        lab.down()
