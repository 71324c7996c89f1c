"""Keeps a Kubernetes cluster up, for people to play with.

    python -m tests.lab.k8s up | down | status | try | spark ARGS... | coord CMD...

`try` starts pods of every shape, `spark` submits the lab's SparkBurn: `spark cpu 600 2`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from tests.lab import cache, hosts
from tests.lab.cache import Unavailable
from tests.lab.k8s import pods, spark
from tests.lab.k8s.cluster import KubeCluster, make_lab
from tests.lab.k8s.software import software

WELCOME = """\
The cluster's kubeconfig is {kubeconfig}; its network is the lab's own, so go through `coord`:
  {python} -m tests.lab.k8s try                                        pods of every shape, and a deployment
  {python} -m tests.lab.k8s coord {python} -m hprofiler -t 5 -j k8s:pod/plain
  {python} -m tests.lab.k8s coord {python} -m hprofiler -t 5 -j k8s:deployment/spread --via ssh --user root
  {python} -m tests.lab.k8s coord kubectl get pods -o wide             where there is a kubectl
  {python} -m tests.lab.k8s down                                       takes it away\
"""


def _python() -> str:
    """This Python, as short as it can be written here."""
    path = os.path.relpath(sys.executable)
    return sys.executable if path.startswith("..") else path


def main(arguments: Sequence[str]) -> int:
    verb, rest = (arguments[0] if arguments else "status"), list(arguments[1:])
    if verb not in ("up", "down", "status", "try", "spark", "coord"):
        print(__doc__, file=sys.stderr)
        return 2
    made, job = software(), spark.software()
    cluster = KubeCluster(make_lab(cache.folder("k8s-hosts"), made, show=job.show()), made)
    if verb == "up":
        cluster.lab.up()
        cluster.up()
        print(WELCOME.format(kubeconfig=cluster.kubeconfig, python=_python()))
    elif verb == "down":
        cluster.down()
    elif verb == "try":
        cluster.create(*pods.shapes("host1").values(), pods.deployment("spread", 2, pods.shapes("")["plain"]))
    elif verb == "spark" and rest:
        spark.Application(cluster, job).submit(*rest)
    elif verb == "coord" and rest:
        os.environ.update(HOME=str(cluster.lab.home()), KUBECONFIG=str(cluster.kubeconfig))
        command = cluster.lab.coordinator(rest)
        os.execvp(command[0], command)
    for plan in cluster.lab.plans:
        print(f"{plan.name} {plan.address} {'up' if plan.name in cluster.lab.hosts else 'down'}")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(hosts.why_not() or main(sys.argv[1:]))
    except Unavailable as problem:
        sys.exit(str(problem))
