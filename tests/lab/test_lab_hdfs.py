"""An archive in HDFS: a name node and a data node of the lab's Hadoop on the loopback, reached by WebHDFS."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from datetime import timedelta
from pathlib import Path

import pytest
import requests

from hprofiler.archive.add import add
from hprofiler.archive.check import check
from hprofiler.archive.compact import compact
from hprofiler.archive.prune import prune
from hprofiler.archive.questions import cost
from hprofiler.archive.selection import Asked
from tests.contract.agent_driver import running
from tests.lab import jdks
from tests.lab.procs import wait_for
from tests.lab.test_lab_archive import runs
from tests.lab.yarn.software import HERE, JDK, fetched

pytestmark = [pytest.mark.nightly, pytest.mark.timeout(600)]

SERVERS = "org.apache.hadoop.hdfs.server"


@pytest.fixture(scope="module")
def hdfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of an empty folder."""
    folder = tmp_path_factory.mktemp("hdfs")
    ports = free_ports(5)
    name_node, web, data, data_web, data_ipc = (f"127.0.0.1:{port}" for port in ports)
    configure(
        folder / "core-site.xml", {"fs.defaultFS": f"hdfs://{name_node}", "hadoop.tmp.dir": f"{folder}/data"}
    )
    settings = {
        "dfs.replication": "1",
        "dfs.namenode.http-address": web,
        "dfs.datanode.address": data,
        "dfs.datanode.http.address": data_web,
        "dfs.datanode.ipc.address": data_ipc,
        "dfs.datanode.hostname": "127.0.0.1",
        "dfs.permissions.enabled": "false",
    }
    configure(folder / "hdfs-site.xml", settings)
    for part in ("hdfs", "datanode"):  # their pages, which the jars do not have
        (folder / "webapps" / part).mkdir(parents=True)
    jars = fetched("hadoop", HERE / "hadoop.xml")
    java = [str(jdks.home(JDK) / "bin/java"), "-Xmx256m", "-cp", f"{folder}:{jars}/*"]
    with ExitStack() as started:
        with running(*java, f"{SERVERS}.namenode.NameNode", "-format", "-nonInteractive") as formatting:
            assert formatting.wait() == 0
        for server in ("namenode.NameNode", "datanode.DataNode"):
            started.enter_context(running(*java, f"{SERVERS}.{server}"))
        wait_for("the data node", lambda: can_write(web))
        yield f"webhdfs://{web}/archive"


def free_ports(count: int) -> list[int]:
    with ExitStack() as opened:
        found = [opened.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [one.getsockname()[1] for one in found]


def configure(path: Path, settings: dict[str, str]) -> None:
    properties = (f"<property><name>{k}</name><value>{v}</value></property>" for k, v in settings.items())
    path.write_text(f"<configuration>{''.join(properties)}</configuration>")


def can_write(web: str) -> bool:
    with suppress(requests.RequestException):
        return (
            requests.put(f"http://{web}/webhdfs/v1/ready?op=CREATE&overwrite=true", b"1").status_code == 201
        )
    return False


def amounts(place: str) -> dict[str, float]:
    return {row.name: row.amount for row in cost(Asked(place), "method").rows}


def test_an_archive_in_hdfs_answers_as_one_in_a_folder(hdfs: str, tmp_path: Path) -> None:
    folders = runs(tmp_path)
    places = (hdfs, str(tmp_path / "archive"))
    for place in places:
        assert [one.failure for one in add(folders, place)] == [None] * len(folders)
        assert [one.problems for one in add(folders[:1], place)] == [()]
    # Sums of several runs depend on their order in the last bits.
    of_folder = pytest.approx(amounts(places[1]))
    assert amounts(hdfs) == of_folder
    list(compact(hdfs))
    assert amounts(hdfs) == of_folder
    assert not check(hdfs).problems
    assert prune(hdfs, timedelta(days=-365)) == len(folders)
    assert check(hdfs).runs == 0
