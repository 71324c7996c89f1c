"""A cluster of several users: two ResourceManagers, containers that run as their applications' users.

rm1 is on coord with the ZooKeeper that says which of them is active, rm2 on host1. They keep their state in a
file system that both see, so that applications outlive a ResourceManager.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.lab.hosts import Lab
from tests.lab.yarn.cluster import SOON, UP_SECONDS, Application, YarnCluster, eventually, limits, settings_of
from tests.lab.yarn.software import PythonSpark, Software

HERE = Path(__file__).parent
STANDBY = "http://host1:8088"
_EXECUTOR = "/shared/container-executor"
_NODE = "yarn.nodemanager"
_MANAGER = "yarn.resourcemanager"
_STORE = "org.apache.hadoop.yarn.server.resourcemanager.recovery.FileSystemRMStateStore"
PROPERTIES = {
    f"{_MANAGER}.cluster-id": "lab",
    f"{_MANAGER}.ha.enabled": "true",
    f"{_MANAGER}.ha.rm-ids": "rm1,rm2",
    f"{_MANAGER}.hostname.rm1": "coord",
    f"{_MANAGER}.hostname.rm2": "host1",
    f"{_MANAGER}.webapp.address.rm1": "coord:8088",
    f"{_MANAGER}.webapp.address.rm2": "host1:8088",
    f"{_MANAGER}.connect.retry-interval.ms": "500",
    f"{_MANAGER}.recovery.enabled": "true",
    f"{_MANAGER}.store.class": _STORE,
    f"{_MANAGER}.fs.state-store.uri": "file:///shared/state",
    f"{_MANAGER}.zk-address": "coord:2181",
    f"{_MANAGER}.zk-timeout-ms": "4000",
    "yarn.client.failover-sleep-base-ms": "200",
    "yarn.client.failover-sleep-max-ms": "1000",
    f"{_NODE}.container-executor.class": "org.apache.hadoop.yarn.server.nodemanager.LinuxContainerExecutor",
    f"{_NODE}.linux-container-executor.path": _EXECUTOR,
    f"{_NODE}.linux-container-executor.group": "yarn",
    f"{_NODE}.container-localizer.java.opts": f"-Xmx128m {SOON}",
    f"{_NODE}.linux-container-executor.nonsecure-mode.limit-users": "false",
}


JVMS = {f"spark.{name}.extraJavaOptions": SOON for name in ("driver", "executor", "yarn.am")}
"""Settings for jobs by whose speed nothing is judged."""


class SharedCluster(YarnCluster):
    """Two NodeManagers, as root; `start_standby` brings the second ResourceManager."""

    def __init__(self, lab: Lab, made: Software, python_spark: PythonSpark) -> None:
        super().__init__(lab, made, PROPERTIES, node_user="root")
        self.python_spark = python_spark

    def up(self) -> SharedCluster:
        assert self.lab.shared is not None
        executor = shutil.copy(HERE / "container-executor", self.lab.shared)
        Path(executor).chmod(0o755)
        shutil.copy(HERE / "jobs" / "burn.py", self.lab.shared)
        self.start_daemon(self.lab.coord, "zookeeper")
        super().up()
        return self

    def start_standby(self) -> None:
        """Start rm2 and wait until it stands by."""
        self.start_daemon(self.lab.hosts["host1"], "resourcemanager")
        self._wait_for(STANDBY, "STANDBY")

    def fail_over(self) -> None:
        """Have rm1 crash, and wait until rm2 has taken over and the nodes are back."""
        self.kill_daemon(self.lab.coord, "resourcemanager")
        self.active = STANDBY
        self._wait_for(STANDBY, "ACTIVE")
        self.wait_for_nodes(len(self.nodes))

    def pyspark(self, *arguments: str, user: str, executors: int = 1) -> Application:
        """Submit the lab's own burn.py with these arguments, in cluster mode."""
        made = self.python_spark
        settings = {
            **limits(executors),
            **JVMS,
            "spark.pyspark.python": made.interpreter,
            "spark.executorEnv.PYTHONDONTWRITEBYTECODE": "1",
        }
        words = ["--deploy-mode", "cluster", *settings_of(settings), "/shared/burn.py", *arguments]
        home = {"SPARK_HOME": str(made.spark)}
        return self.submit_spark(made.spark / "jars", words, user, home)

    def _wait_for(self, base: str, state: str) -> None:
        def is_so() -> bool:
            found = self.rest("/ws/v1/cluster/info", base) or {}
            return bool(found.get("clusterInfo", {}).get("haState") == state)

        eventually(is_so, f"{base} is not {state}", UP_SECONDS)
