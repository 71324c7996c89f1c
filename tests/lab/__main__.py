"""Runs the lab's hosts, or a cluster on them, for manual tests.

    python -m tests.lab hosts|yarn|k8s up | down | status | coord CMD... | enter HOST CMD...
    python -m tests.lab yarn spark cpu 600 3           a Spark job of three executors, busy for ten minutes
    python -m tests.lab yarn mapreduce pi 3 1000000000
    python -m tests.lab k8s try                        pods of every shape, and a deployment

The network is the lab's own: `coord` runs a command of this machine in it, `enter` one of a host.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from tests.lab import cache, hosts
from tests.lab.hosts import Lab
from tests.lab.k8s import cluster as k8s
from tests.lab.k8s import pods
from tests.lab.k8s import software as k8s_software
from tests.lab.yarn import cluster as yarn
from tests.lab.yarn import software as yarn_software


def main(arguments: Sequence[str]) -> int:
    place, verb, *rest = arguments if len(arguments) > 1 else ("", "")
    cluster: k8s.KubeCluster | yarn.YarnCluster | None = None
    if place == "k8s":
        made = k8s_software.software()
        cluster = k8s.KubeCluster(k8s.make_lab(cache.folder("k8s-hosts"), made), made)
    elif place == "yarn":
        software = yarn_software.software()
        cluster = yarn.YarnCluster(yarn.make_lab(cache.folder("yarn-hosts"), software), software)
    lab = cluster.lab if cluster else Lab(cache.folder("hosts"), hosts.default_plans())
    if verb == "up":
        lab.up()
        if cluster:
            cluster.up()
    elif verb == "down":
        (cluster if isinstance(cluster, k8s.KubeCluster) else lab).down()
    elif verb == "enter" and len(rest) > 1:
        command = lab.hosts[rest[0]].command(rest[1:])
        os.execvp(command[0], command)
    elif verb == "coord" and rest:
        os.environ["HOME"] = str(lab.home())
        if isinstance(cluster, k8s.KubeCluster):
            os.environ["KUBECONFIG"] = str(cluster.kubeconfig)
        command = lab.coordinator(rest)
        os.execvp(command[0], command)
    elif verb == "spark" and isinstance(cluster, yarn.YarnCluster):
        print(cluster.spark(*rest).id)
    elif verb == "mapreduce" and isinstance(cluster, yarn.YarnCluster):
        print(cluster.mapreduce(*rest).id)
    elif verb == "try" and isinstance(cluster, k8s.KubeCluster):
        running, idle = pods.shapes("host1", "host2", {"fleet": "shapes"})
        cluster.create(*running.values(), *idle, pods.deployment("spread", 2, running["plain"]))
    elif verb != "status" or place not in ("hosts", "yarn", "k8s"):
        print(__doc__, file=sys.stderr)
        return 2
    for plan in lab.plans:
        print(f"{plan.name} {plan.address} {'up' if plan.name in lab.hosts else 'down'}")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(hosts.why_not() or main(sys.argv[1:]))
    except cache.Unavailable as problem:
        sys.exit(str(problem))
