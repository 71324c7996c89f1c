"""A ResourceManager whose application is where a fault wants it.

python -m tests.lab.chaos.manager PORT FILE     answers each path with what FILE has for it now
"""

from __future__ import annotations

import http.server
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.lab.hosts import Lab
from tests.unit.yarn_server import CLUSTER, app, attempt, container_id

PORT = 8088
ADDRESS = f"http://coord:{PORT}"
_NUMBERS = {"host1": 1, "host2": 2, "host3": 3}


class Manager:
    """Runs in the coordinator's network, and knows one running application of user yarn."""

    def __init__(self, lab: Lab, folder: Path, application: str) -> None:
        self._application = application
        self._file = folder / "manager.json"
        self.say({})
        command = [sys.executable, "-m", "tests.lab.chaos.manager", str(PORT), str(self._file)]
        self._process = subprocess.Popen(lab.coordinator(command))

    def container(self, host: str, attempt_number: int = 1) -> str:
        """The id of the application's container on a host, in an attempt."""
        return container_id(_NUMBERS[host], self._application, attempt_number)

    def say(self, attempts: Mapping[str, int]) -> None:
        """From now on it has containers on these hosts, of these attempts."""
        newest = max(attempts.values(), default=1)
        known = [attempt(n, self._application, "FAILED") for n in range(1, newest)]
        known.append(attempt(newest, self._application))
        base = f"{CLUSTER}/apps/{self._application}"
        containers = [self._listed(host, n) for host, n in attempts.items() if n == newest]
        answers: dict[str, Any] = {
            base: {"app": app(self._application, user="yarn", applicationType="LAB")},
            f"{base}/appattempts": {"appAttempts": {"appAttempt": known}},
            f"{base}/appattempts/{known[-1]['appAttemptId']}/containers": {"container": containers},
        }
        new = self._file.with_suffix(".new")
        new.write_text(json.dumps(answers))
        os.replace(new, self._file)

    def _listed(self, host: str, number: int) -> dict[str, str]:
        address = {"nodeHttpAddress": f"http://{host}:8042", "nodeId": f"{host}:8041"}
        return {"containerId": self.container(host, number), "containerState": "RUNNING", **address}

    def end(self) -> None:
        self._process.kill()
        self._process.wait()


def _serve(port: int, file: Path) -> None:
    class Answering(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found = json.loads(file.read_text()).get(self.path.partition("?")[0])
            body = json.dumps(found if found is not None else {}).encode()
            self.send_response(404 if found is None else 200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    http.server.ThreadingHTTPServer(("", port), Answering).serve_forever()


if __name__ == "__main__":
    _serve(int(sys.argv[1]), Path(sys.argv[2]))
