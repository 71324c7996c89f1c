"""`report --open` and `--serve`: the page in a browser, local or through an SSH tunnel."""

from __future__ import annotations

import getpass
import http.server
import os
import secrets
import shutil
import socket
import socketserver
import sys
import webbrowser
from contextlib import suppress
from pathlib import Path

from hprofiler.base.errors import UsageError

# Only users of this machine who know the address can get the page. With `--open` the address is in the
# command line of the browser, which they can read while it starts.
_LOOPBACK = "127.0.0.1"
_TOKEN_BYTES = 16
# An idle connection of a browser must not delay the end.
_SILENCE = 30.0


def open_in_browser(address: str) -> bool:
    """Open an address in the user's browser; False if there is none.

    Text browsers do not count: they would cover the output of the command.
    """
    graphical = sys.platform == "darwin" or any(
        os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")
    )
    if not graphical:
        return False
    with suppress(webbrowser.Error, OSError):
        return webbrowser.open(address)
    return False


class PageServer(http.server.ThreadingHTTPServer):
    """Serves one file to this machine, under a path that nobody can guess.

    `port` 0 takes a free one. Raises UsageError if the port cannot be used.
    """

    daemon_threads = True

    def __init__(self, page: Path, port: int) -> None:
        self.page = page
        self.path = f"/{secrets.token_urlsafe(_TOKEN_BYTES)}/report.html"
        try:
            super().__init__((_LOOPBACK, port), _Handler)
        except OSError as error:
            reason = f"cannot serve on {_LOOPBACK}:{port}: {error.strerror or error}"
            raise UsageError(reason, "choose another port, or leave it out to use a free one") from error

    def server_bind(self) -> None:
        """HTTPServer would look up the name of the address."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = _LOOPBACK, self.socket.getsockname()[1]

    @property
    def address(self) -> str:
        return f"http://{_LOOPBACK}:{self.server_port}{self.path}"

    @property
    def tunnel(self) -> str:
        """The SSH command that makes the address work on another machine."""
        there = f"{_LOOPBACK}:{self.server_port}"
        try:
            user = getpass.getuser()
        except (KeyError, OSError):  # a uid without a name, as in many containers
            user = str(os.getuid())
        return f"ssh -N -L {self.server_port}:{there} {user}@{socket.gethostname()}"

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore browsers that close the connection."""

    def serve(self) -> None:
        """Answer until Ctrl-C."""
        with self, suppress(KeyboardInterrupt):
            self.serve_forever()


class _Handler(http.server.BaseHTTPRequestHandler):
    server: PageServer
    timeout = _SILENCE
    server_version = "hprofiler"
    sys_version = ""

    def do_GET(self) -> None:
        self._answer(with_body=True)

    def do_HEAD(self) -> None:
        self._answer(with_body=False)

    def _answer(self, with_body: bool) -> None:
        try:
            meant = secrets.compare_digest(self.path.encode(), self.server.path.encode())
            file = self.server.page.open("rb") if meant else None
        except OSError:
            file = None
        if file is None:
            self.send_error(404)
            return
        with file:
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(os.fstat(file.fileno()).st_size))
            self.end_headers()
            if with_body:
                shutil.copyfileobj(file, self.wfile)

    def end_headers(self) -> None:
        """Keep the page out of caches, and its address from other sites."""
        self.send_header("Cache-Control", "no-store")
        self.send_header("Referrer-Policy", "no-referrer")
        self.send_header("X-Content-Type-Options", "nosniff")
        super().end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing on the terminal."""
