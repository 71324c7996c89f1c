"""A headless Firefox, controlled by WebDriver BiDi, which needs no driver."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from websocket import WebSocket, create_connection

_LISTENING = "WebDriver BiDi listening on "
_ANSWER_SECONDS = 120
# Whatever Firefox wants of the network goes to a port of this machine where nobody listens.
_PREFERENCES = {
    "network.proxy.type": 1,
    "network.proxy.http": "127.0.0.1",
    "network.proxy.http_port": 9,
    "network.proxy.ssl": "127.0.0.1",
    "network.proxy.ssl_port": 9,
    "network.proxy.allow_hijacking_localhost": False,
    "network.captive-portal-service.enabled": False,
    "network.dns.disablePrefetch": True,
}


def firefox_program() -> str | None:
    return shutil.which("firefox-esr") or shutil.which("firefox")


class Firefox:
    """One tab; `complaints` are what pages wrote to the console as an error or a warning."""

    def __init__(self, socket: WebSocket) -> None:
        self.complaints: list[str] = []
        self._socket = socket
        self._asked = 0
        self._ask("session.new", capabilities={})
        self._ask("session.subscribe", events=["log.entryAdded"])
        self._tab = self._ask("browsingContext.getTree")["contexts"][0]["context"]

    def open(self, address: str) -> None:
        """Open a page anew, even if only the part behind the # differs."""
        for one in ("about:blank", address):
            self._ask("browsingContext.navigate", context=self._tab, url=one, wait="complete")

    def evaluate(self, expression: str) -> Any:
        """The value of an expression; a promise is awaited."""
        asked = {"expression": expression, "target": {"context": self._tab}, "awaitPromise": True}
        answer = self._ask("script.evaluate", **asked)
        assert answer["type"] == "success", answer
        return answer["result"].get("value")

    def _ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._asked += 1
        self._socket.send(json.dumps({"id": self._asked, "method": method, "params": parameters}))
        while True:
            message: dict[str, Any] = json.loads(self._socket.recv())
            if message.get("method") == "log.entryAdded" and message["params"]["level"] in ("error", "warn"):
                self.complaints.append(message["params"]["text"])
            if message.get("id") == self._asked:
                assert message["type"] == "success", message
                result: dict[str, Any] = message["result"]
                return result


@contextmanager
def firefox(profile: Path) -> Iterator[Firefox]:
    lines = [f"user_pref({json.dumps(name)}, {json.dumps(value)});" for name, value in _PREFERENCES.items()]
    (profile / "user.js").write_text("\n".join(lines))
    program = firefox_program()
    assert program is not None
    command = [program, "--headless", "--no-remote", "--profile", str(profile), "--remote-debugging-port=0"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, errors="replace")
    try:
        assert process.stderr is not None
        address = next(line for line in process.stderr if _LISTENING in line).split(_LISTENING)[1].strip()
        socket = create_connection(f"{address}/session", timeout=_ANSWER_SECONDS, suppress_origin=True)
        yield Firefox(socket)
        socket.close()
    finally:
        process.terminate()
        process.communicate(timeout=60)
