"""The server below those that tests pretend to be: as patient with clients as real ones are."""

from __future__ import annotations

import ssl
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class HttpServer(ThreadingHTTPServer):
    """On loopback, at a port that was free; with `tls` it speaks no other."""

    daemon_threads = True
    request_queue_size = 128  # those that ask in one moment; the usual 5 lets others try again a second later

    def __init__(self, handler: type[BaseHTTPRequestHandler], tls: ssl.SSLContext | None = None) -> None:
        super().__init__(("127.0.0.1", 0), handler)
        if tls is not None:
            # A client that does not greet keeps its own thread waiting, and not the one that accepts.
            self.socket = tls.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)
        self.address = f"127.0.0.1:{self.server_address[1]}"
        self.url = f"{'https' if tls else 'http'}://{self.address}"

    def start(self) -> None:
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()

    def stop(self) -> None:
        self.shutdown()
        self.server_close()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """That a client has let go is told to nobody: another test may be listening to stderr by then."""
        if not isinstance(sys.exc_info()[1], (ConnectionError, TimeoutError, ssl.SSLError)):
            super().handle_error(request, client_address)
