"""Commands in containers: one connection each; the first byte of a message is its channel."""

from __future__ import annotations

import contextlib
import threading
from typing import Any

from hprofiler.base import bounded_json as foreign_json
from hprofiler.kubernetes.cluster import Cluster
from hprofiler.kubernetes.problems import Need, Said, in_short, said
from hprofiler.kubernetes.websocket import HALF_CLOSE, Lost, WebSocket

NEED_VERBS = "get, create"
_STDIN, _STDOUT, _STDERR, _STATUS, _CLOSE = 0, 1, 2, 3, 255
_PIECE = 64 << 10
_MOST_WAITING = 4 << 20
_MOST_STATUS = 64 << 10


class Command:
    """A command in a container. Any call may raise Lost if the connection breaks."""

    def __init__(self, socket: WebSocket, stderr_kept: int) -> None:
        self._socket = socket
        self._stderr_kept = stderr_kept
        self._changed = threading.Condition()
        self._stdout = bytearray()
        self._stderr = bytearray()
        self._status = bytearray()
        self._lost: str | None = None
        self._ended = False
        self.can_end_input = socket.protocol == HALF_CLOSE
        threading.Thread(target=self._receive, name="hprofiler-exec", daemon=True).start()

    def write(self, data: bytes) -> None:
        """Send all of `data` to its stdin."""
        for start in range(0, len(data), _PIECE):
            self._socket.send(bytes((_STDIN,)) + data[start : start + _PIECE])

    def end_input(self) -> None:
        """Close its stdin, if the API server can (`can_end_input`)."""
        self._socket.send(bytes((_CLOSE, _STDIN)))

    def read(self, size: int) -> bytes:
        """Up to `size` bytes of its stdout; b"" at the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._stdout or self._ended)
            if not self._stdout and self._lost:
                raise Lost(self._lost)
            data = bytes(self._stdout[:size])
            del self._stdout[:size]
            self._changed.notify_all()
            return data

    def stderr(self, timeout: float) -> bytes:
        """The end of its stderr; waits up to `timeout` seconds for the command to end."""
        with self._changed:
            self._changed.wait_for(lambda: self._ended, timeout)
            return bytes(self._stderr)

    def exit_status(self, timeout: float) -> int | None:
        """The exit status; None if unknown or still running."""
        with self._changed:
            self._changed.wait_for(lambda: self._ended, timeout)
            return exit_status(bytes(self._status))[0]

    def failure(self) -> Said | None:
        """Why it did not start, if known."""
        with self._changed:
            return exit_status(bytes(self._status))[1]

    def close(self) -> None:
        """Close the connection, which ends its stdin. Thread-safe, repeatable."""
        self._socket.close()

    def _receive(self) -> None:
        channel: int | None = None
        try:
            for piece, last in self._socket.messages():
                if channel is None and piece:
                    channel, piece = piece[0], piece[1:]
                self._keep(channel, piece)
                if last:
                    channel = None
        except Lost as error:
            self._lost = str(error)
        finally:
            self._socket.release()
            with self._changed:
                if not self._status:
                    self._lost = self._lost or "the API server closed it"
                self._ended = True
                self._changed.notify_all()

    def _keep(self, channel: int | None, piece: bytes) -> None:
        with self._changed:
            if channel == _STDOUT:
                # A command that writes faster than its output is read has to wait until `close`.
                while len(self._stdout) > _MOST_WAITING and not self._socket.closed:
                    self._changed.wait(1.0)
                self._stdout += piece
            elif channel == _STDERR:
                self._stderr += piece
                del self._stderr[: max(0, len(self._stderr) - self._stderr_kept)]
            elif channel == _STATUS and len(self._status) < _MOST_STATUS:
                self._status += piece
            self._changed.notify_all()


def start(cluster: Cluster, where: tuple[str, str, str], command: list[str], stderr_kept: int) -> Command:
    """Run a command in a container: namespace, pod, name. Raises KubernetesError."""
    namespace, pod, container = where
    asked = [("container", container), *(("command", word) for word in command)]
    streams = [(stream, "true") for stream in ("stdin", "stdout", "stderr")]
    path = f"/api/v1/namespaces/{namespace}/pods/{pod}/exec"
    need = Need(NEED_VERBS, "pods/exec", namespace)
    return Command(cluster.websocket(path, [*asked, *streams], need), stderr_kept)


def exit_status(status: bytes) -> tuple[int | None, Said | None]:
    """Parses the last message: the command's exit status, or the reason if there is none."""
    try:
        words: Any = foreign_json.read(status)
        if words.get("status") == "Success":
            return 0, None
        if words.get("reason") == "NonZeroExitCode":
            causes = words["details"]["causes"]
            found = [cause["message"] for cause in causes if cause.get("reason") == "ExitCode"]
            with contextlib.suppress(ValueError):
                return max(-1, min(255, int(found[0][:4]))), None
    except (ValueError, KeyError, TypeError, AttributeError, IndexError):
        return None, Said(0, "", in_short(status[:500].decode("utf-8", "replace"))) if status else None
    return None, said(status)
