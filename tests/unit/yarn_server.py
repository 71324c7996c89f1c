"""ResourceManagers and NodeManagers for tests: HTTP servers on loopback, with answers of YARN's shapes."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from tests.unit.http_server import Handler, HttpServer

APP = "application_1700000000000_0042"
CLUSTER = "/ws/v1/cluster"
PROXY = f"/proxy/{APP}/api/v1/applications/{APP}"


class Answer:
    """What a path is answered with; `body` as JSON unless it is bytes. A server refuses clients that do not
    accept its Content-Type, if there is one."""

    def __init__(self, body: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> None:
        self.status = status
        self.headers = dict(headers or {})
        self.content_type = self.headers.get("Content-Type")
        self.body = body if isinstance(body, bytes) else json.dumps(body).encode()


Gate = Callable[[Mapping[str, str]], tuple[Answer | None, Mapping[str, str]]]
"""From a request's headers: what it is refused with, if it is, and headers of the answer."""


class Server:
    """Answers from `paths` (path without the query); all else is a 404 as YARN's. A context manager."""

    def __init__(
        self, paths: Mapping[str, Any] | None = None, tls: Any = None, gate: Gate | None = None
    ) -> None:
        self.paths: dict[str, Answer] = {}
        self.set(paths or {})
        self.asked: list[tuple[str, str]] = []
        self.headers: list[Mapping[str, str]] = []
        server = self

        class Answering(Handler):
            def do_GET(self) -> None:
                path, _, query = self.path.partition("?")
                server.asked.append((path, query))
                server.headers.append(dict(self.headers))
                refused, more = gate(self.headers) if gate else (None, {})
                answer = refused or server.paths.get(path) or server.paths.get("*") or missing(path)
                if answer.content_type and self.headers["Accept"] not in ("*/*", answer.content_type):
                    answer = not_acceptable(path)
                self.reply(answer.status, answer.body, {**answer.headers, **more})

        self.http = HttpServer(Answering, tls)
        self.address = self.http.address
        self.url = self.http.url

    def set(self, paths: Mapping[str, Any]) -> None:
        for path, body in paths.items():
            self.paths[path] = body if isinstance(body, Answer) else Answer(body)

    def __enter__(self) -> Server:
        self.http.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.http.stop()


def site(properties: Mapping[str, str]) -> str:
    """A file of Hadoop's configuration, such as yarn-site.xml."""
    items = (f"<property><name>{n}</name><value> {v} </value></property>" for n, v in properties.items())
    return f"<configuration>{''.join(items)}</configuration>"


def missing(path: str) -> Answer:
    return remote_exception(404, f"{path} was not found")


def log_answer(archive: bytes) -> Answer:
    """An event log, with the headers that history servers of Spark 3.5 and 4.3 send."""
    named = {"Content-Disposition": "attachment; filename=eventLogs.zip"}
    return Answer(archive, 200, {"Content-Type": "application/octet-stream", **named})


def not_acceptable(path: str) -> Answer:
    """What history servers of Spark 3.5 and 4.3 answer to a client that does not accept a log's type."""
    body = {"servlet": "org.glassfish.jersey.servlet.ServletContainer", "message": "Not Acceptable"}
    return Answer({**body, "url": path, "status": "406"}, 406)


def remote_exception(status: int, message: str) -> Answer:
    body = {"exception": "NotFoundException", "message": message, "javaClassName": "org.apache.hadoop.X"}
    return Answer({"RemoteException": body}, status)


def container_id(number: int, app: str = APP, attempt: int = 1) -> str:
    return f"container_e17_{app.partition('_')[2]}_{attempt:02}_{number:06}"


def app(identity: str = APP, **members: Any) -> dict[str, Any]:
    usual = {
        "id": identity,
        "user": "etl",
        "name": "nightly load",
        "queue": "root.nightly",
        "state": "RUNNING",
        "finalStatus": "UNDEFINED",
        "applicationType": "SPARK",
        "applicationTags": "",
        "allocatedMB": 3072,
        "runningContainers": 4,
        "elapsedTime": 90_000,
    }
    return {**usual, **members}


def attempt(number: int = 1, identity: str = APP, state: str = "RUNNING") -> dict[str, Any]:
    name = f"appattempt_{identity.partition('_')[2]}_{number:06}"
    return {"id": number, "appAttemptId": name, "appAttemptState": state, "nodeId": "n1:8041"}


def container(number: int, node: str, state: str = "RUNNING", identity: str = APP) -> dict[str, Any]:
    return {
        "containerId": container_id(number, identity),
        "containerState": state,
        "nodeHttpAddress": f"http://{node}:8042",
        "nodeId": f"{node}:8041",
    }


def executor(identity: str, number: int | None, node: str, tasks: int = 0, **members: Any) -> dict[str, Any]:
    base = f"http://{node}:8042/node/containerlogs/{container_id(number or 0)}/etl"
    logs = {} if number is None else {"stdout": f"{base}/stdout?start=-4096", "stderr": f"{base}/stderr"}
    return {
        "id": identity,
        "hostPort": f"{node}:40001",
        "activeTasks": tasks,
        "executorLogs": logs,
        **members,
    }


def application_paths(
    containers: list[dict[str, Any]], identity: str = APP, **members: Any
) -> dict[str, Any]:
    """All that the ResourceManager says of one application, without its Spark driver."""
    name = attempt(1, identity)["appAttemptId"]
    return {
        f"{CLUSTER}/apps/{identity}": {"app": app(identity, **members)},
        f"{CLUSTER}/apps/{identity}/appattempts": {"appAttempts": {"appAttempt": [attempt(1, identity)]}},
        f"{CLUSTER}/apps/{identity}/appattempts/{name}/containers": {"container": containers},
    }


def spark_paths(executors: list[dict[str, Any]], stages: list[int]) -> dict[str, Any]:
    return {f"{PROXY}/executors": executors, f"{PROXY}/stages": [{"stageId": stage} for stage in stages]}


def small_cluster() -> dict[str, Any]:
    """A driver on n1, executors on n1 and n2."""
    containers = [container(1, "n1"), container(2, "n2"), container(3, "n1"), container(4, "n3", "COMPLETE")]
    executors = [executor("driver", 1, "n1"), executor("1", 2, "n2", tasks=1), executor("2", 3, "n1")]
    return {**application_paths(containers), **spark_paths(executors, [7, 3])}
