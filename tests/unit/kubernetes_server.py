"""A small API server: lists, refusals, and commands that run on this machine in place of a container.

It uses real HTTP and WebSockets, over TLS where a certificate is given. Tests set its answers.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import socket
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import yaml
from wsproto.connection import Connection, ConnectionType
from wsproto.events import BytesMessage, CloseConnection
from wsproto.utilities import LocalProtocolError

from tests.unit.http_server import Handler, HttpServer

ID = "0123456789abcdef" * 4
V5, V4 = "v5.channel.k8s.io", "v4.channel.k8s.io"
GOODBYE_SECONDS = 10.0
_GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"

Query = dict[str, list[str]]
Reply = tuple[int, Any]


def pod(
    name: str,
    namespace: str = "default",
    labels: dict[str, str] | None = None,
    node: str = "node1",
    containers: Sequence[str] = ("main",),
    states: dict[str, dict[str, Any]] | None = None,
    **status: Any,
) -> dict[str, Any]:
    """A pod as the API server has it, whose containers run unless `states` says otherwise."""
    made = []
    for number, container in enumerate(containers):
        state = (states or {}).get(container, {"running": {"startedAt": "2026-01-01T00:00:00Z"}})
        identity = hashlib.sha256(f"{namespace}/{name}/{number}".encode()).hexdigest()
        made.append({"name": container, "state": state, "containerID": f"containerd://{identity}"})
    return {
        "metadata": {"name": name, "namespace": namespace, "labels": labels or {}},
        "spec": {"nodeName": node, "containers": [{"name": one} for one in containers]},
        "status": {"phase": "Running", "hostIP": "10.0.0.1", "containerStatuses": made, **status},
    }


def waiting(reason: str, message: str = "") -> dict[str, Any]:
    return {"waiting": {"reason": reason, "message": message}}


def status(code: int, reason: str, message: str) -> dict[str, Any]:
    return {"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": message}


class ApiServer:
    """Answers `pods` to every list and runs commands; has other `replies` for paths (without first /)."""

    def __init__(self, certificate: tuple[Path, Path] | None = None) -> None:
        self.pods: list[dict[str, Any]] = []
        self.replies: dict[str, Callable[[Query], Reply]] = {}
        self.environment: dict[str, str] | None = None
        self.refuse_exec: Reply | None = None
        self.exec_status: dict[str, Any] | None = None
        self.asked: list[tuple[str, Query]] = []
        self.tokens: list[str] = []
        self.running: list[subprocess.Popen[bytes]] = []
        self.connections: list[socket.socket] = []
        context: ssl.SSLContext | None = None
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*certificate)
        self._server = HttpServer(_handler(self), context)
        self.url = self._server.url
        self._server.start()

    def kubeconfig(self, folder: Path, cluster: dict[str, Any] | None = None, **user: Any) -> str:
        """A kubeconfig file for it, with the namespace `default`."""
        config = {
            "current-context": "test",
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "me"}}],
            "clusters": [{"name": "test", "cluster": {"server": self.url, **(cluster or {})}}],
            "users": [{"name": "me", "user": user or {"token": "secret"}}],
        }
        file = folder / "kubeconfig"
        file.write_text(yaml.safe_dump(config))
        return str(file)

    def break_connections(self) -> None:
        """Close the connection of every command without a closing frame."""
        for connection in self.connections:
            _hang_up(connection)

    def close(self) -> None:
        self._server.stop()
        for process in self.running:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(1)  # a shell whose caller hung up removes its file
            process.kill()


@contextlib.contextmanager
def serving(certificate: tuple[Path, Path] | None = None) -> Iterator[ApiServer]:
    server = ApiServer(certificate)
    try:
        yield server
    finally:
        server.close()


def _handler(api: ApiServer) -> type[Handler]:
    class Answering(Handler):
        def do_GET(self) -> None:
            self._answer(None)

        def do_PATCH(self) -> None:
            self._answer(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

        def _answer(self, body: Any) -> None:
            parts = urlsplit(self.path)
            query = parse_qs(parts.query)
            if body is not None:
                query["body"] = [body]
            api.asked.append((parts.path, query))
            api.tokens.append(self.headers.get("Authorization", ""))
            reply = api.replies.get(parts.path.lstrip("/"))
            if self.headers.get("Upgrade") == "websocket" and reply is None:
                self._exec(query)
                return
            code, answer = reply(query) if reply else (200, {"items": api.pods, "metadata": {}})
            self._send(code, answer if isinstance(answer, bytes) else json.dumps(answer).encode())

        def _send(self, code: int, content: bytes) -> None:
            self.reply(code, content, {"Content-Type": "application/json"})

        def _exec(self, query: Query) -> None:
            if api.refuse_exec is not None:
                code, answer = api.refuse_exec
                self._send(code, json.dumps(answer).encode())
                return
            self.close_connection = True
            offered = [word.strip() for word in self.headers["Sec-WebSocket-Protocol"].split(",")]
            chosen = next(word for word in offered if word in (V5, V4))
            key = self.headers["Sec-WebSocket-Key"] + _GUID
            self.send_response(101)
            self.send_header("Upgrade", "websocket")
            self.send_header("Connection", "Upgrade")
            self.send_header(
                "Sec-WebSocket-Accept", base64.b64encode(hashlib.sha1(key.encode()).digest()).decode()
            )
            self.send_header("Sec-WebSocket-Protocol", chosen)
            self.end_headers()
            api.connections.append(self.connection)
            _Session(api, self.connection, query["command"]).run()

    return Answering


def _hang_up(connection: socket.socket) -> None:
    """Without a closing frame; waiting calls return with an error or the end of the stream."""
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


class _Session:
    """One command: its streams on channels, as the API server has them. One thread receives, others send in
    turn."""

    def __init__(self, api: ApiServer, connection: socket.socket, command: list[str]) -> None:
        self._api = api
        self._connection = connection
        self._command = command
        self._frames = Connection(ConnectionType.SERVER)
        self._sending = threading.Lock()

    def run(self) -> None:
        if self._api.exec_status is not None:
            self._finish(self._api.exec_status)
            return
        process = subprocess.Popen(
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=self._api.environment,
        )
        self._api.running.append(process)
        feeder = threading.Thread(target=self._feed, args=(process,), daemon=True)
        feeder.start()
        readers = [
            threading.Thread(target=self._pass_on, args=(stream, channel), daemon=True)
            for channel, stream in ((1, process.stdout), (2, process.stderr))
        ]
        for reader in readers:
            reader.start()
        for reader in readers:
            reader.join()
        self._finish(_ended(process.wait()))
        feeder.join(GOODBYE_SECONDS)
        _hang_up(self._connection)
        feeder.join()

    def _pass_on(self, stream: Any, channel: int) -> None:
        while piece := stream.read1(32 << 10):
            self._send(channel, piece)

    def _send(self, channel: int, data: bytes) -> None:
        with self._sending, contextlib.suppress(OSError, ValueError, LocalProtocolError):
            self._connection.sendall(self._frames.send(BytesMessage(bytes((channel,)) + data)))

    def _finish(self, words: dict[str, Any]) -> None:
        self._send(3, json.dumps(words).encode())
        with self._sending, contextlib.suppress(OSError, ValueError, LocalProtocolError):
            self._connection.sendall(self._frames.send(CloseConnection(1000)))

    def _feed(self, process: subprocess.Popen[bytes]) -> None:
        """The command's stdin, until its end (protocol 5) or that of the connection."""
        assert process.stdin is not None
        message = bytearray()
        with contextlib.suppress(OSError, ValueError):
            while piece := self._connection.recv(64 << 10):
                self._frames.receive_data(piece)
                for event in self._frames.events():
                    if not isinstance(event, BytesMessage):
                        continue
                    message += event.data
                    if event.message_finished:
                        whole, message = bytes(message), bytearray()
                        if whole[:2] == b"\xff\x00":
                            process.stdin.close()
                        elif whole[:1] == b"\x00":
                            process.stdin.write(whole[1:])
                            process.stdin.flush()
        with contextlib.suppress(OSError):
            process.stdin.close()


def _ended(code: int) -> dict[str, Any]:
    if code == 0:
        return {"status": "Success", "metadata": {}}
    causes = [{"reason": "ExitCode", "message": str(code if code > 0 else 128 - code)}]
    return {
        "status": "Failure",
        "reason": "NonZeroExitCode",
        "message": f"command terminated with exit code {code}",
        "details": {"causes": causes},
    }
