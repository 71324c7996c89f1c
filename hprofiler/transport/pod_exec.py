"""Commands in a container, by way of the API server of Kubernetes."""

from __future__ import annotations

import contextlib
import re
import threading
from typing import TYPE_CHECKING, NamedTuple

from hprofiler.base.errors import ConnectionLost, ContainerEnded, HostError
from hprofiler.base.text import printable
from hprofiler.kubernetes import Forbidden, KubernetesError
from hprofiler.model import Host
from hprofiler.transport.base import (
    CONTAINER_TOOLS,
    OTHER_WAYS_IN,
    STDERR_TAIL,
    NoShell,
    Transport,
)

if TYPE_CHECKING:
    from hprofiler.kubernetes.cluster import Cluster
    from hprofiler.kubernetes.commands import Command

_LOOK_SECONDS = 30.0
_LOST = "the connection to the container was lost"
# The messages of runc and crun.
_NO_SHELL = re.compile(r"executable file (`sh` )?not found|no such file or directory", re.IGNORECASE)
# The API server's and the kubelet's.
_ENDED = re.compile(r"container not found|completed pod|pods? \S+ not found")
_NOISE = re.compile(r"(Internal error occurred: )+")
_LOOK = f"for t in {' '.join(CONTAINER_TOOLS)}; do command -v $t >/dev/null || exit 1; done"


class Debugging(NamedTuple):
    """The image of debug containers, and how many seconds one of them may live."""

    image: str
    seconds: int


class ExecTransport(Transport):
    """Runs commands in a container; the host's address is NAMESPACE/POD/CONTAINER.

    With `debugging` a container without a shell gets a debug container beside it.
    """

    leaves_nothing = True

    def __init__(self, host: Host, cluster: Cluster, debugging: Debugging | None = None) -> None:
        super().__init__(host)
        namespace, pod, container = host.address.split("/")
        self.inside = next(iter(host.containers), None)
        self._cluster = cluster
        self._debugging = debugging
        self._where: tuple[str, str, str] = (namespace, pod, container)
        self._unused = False

    def destination(self) -> str:
        name = self._cluster.user
        return f"exec into {'/'.join(self._where)} by {self._cluster.server}" + (
            f" as {name}" if name else ""
        )

    def _connect(self) -> None:
        """Each command opens its own connection; only a debug container must be added first."""
        if self._debugging is None:
            return
        try:
            usable = self.run(_LOOK, b"", _LOOK_SECONDS).exit_status == 0
        except NoShell:
            usable = False
        if not usable:
            self._add_debug_container(self._debugging)

    def _add_debug_container(self, debugging: Debugging) -> None:
        """Make commands run in a debug container, which sees the processes of the other."""
        from hprofiler.kubernetes.debugging import add_debug_container

        self._tell("container", f"a debug container of {debugging.image} beside {'/'.join(self._where)}")
        try:
            name = add_debug_container(self._cluster, self._where, *debugging, self._closed)
        except KubernetesError as error:
            raise HostError("connect", error.reason, error.remedy) from error
        with self._lock:
            self._where = (*self._where[:2], name)
            self.inside = None
            self._unused = True
            closed = self._closed.is_set()
        if closed:
            self.close()

    def _start(self, command: str) -> _ExecChannel:
        from hprofiler.kubernetes.commands import start

        try:
            running = start(self._cluster, self._where, ["sh", "-c", command], STDERR_TAIL)
        except Forbidden as error:
            raise HostError("connect", error.reason, f"{error.remedy}; or use SSH: --via ssh") from error
        except KubernetesError as error:
            kind = ContainerEnded if _ENDED.search(error.reason) else HostError
            raise kind("connect", error.reason, error.remedy) from error
        self._unused = False
        return _ExecChannel(self, running)

    def close(self) -> None:
        super().close()
        with self._lock:
            unused, self._unused = self._unused, False
        if unused:  # no agent was started there, which would end it
            from hprofiler.kubernetes.debugging import LAST

            threading.Thread(target=self.last, args=(LAST,), name="hprofiler-last").start()


class _ExecChannel:
    def __init__(self, transport: ExecTransport, command: Command) -> None:
        self._transport = transport
        self._command = command
        self._refused: HostError | None = None

    def write(self, data: bytes) -> None:
        try:
            self._command.write(data)
        except OSError as error:
            raise self._lost(error) from error
        self._transport.bytes_sent += len(data)

    def read(self, size: int) -> bytes:
        try:
            data = self._command.read(size)
        except OSError as error:
            raise self._lost(error) from error
        self._transport.bytes_received += len(data)
        words = None if data else self._command.failure()
        if words is None:
            return data
        said = _NOISE.sub("", printable(words.message or words.reason))
        if _NO_SHELL.search(said):
            raise NoShell("connect", "the container has no sh", OTHER_WAYS_IN)
        kind = ContainerEnded if _ENDED.search(said) else HostError
        raise kind("connect", f"the command cannot be run in the container: {said}")

    def _lost(self, error: OSError) -> HostError:
        return self._refused or ConnectionLost("connect", f"{_LOST}: {error}")

    def end_input(self) -> None:
        if self._command.can_end_input:
            with contextlib.suppress(OSError):  # it has ended already
                self._command.end_input()
            return
        self._refused = HostError(
            "connect",
            "this API server cannot end the input of a command",
            "use Kubernetes 1.30 or later, or SSH: --via ssh",
        )
        self.close()

    def stderr_tail(self) -> str:
        return self._command.stderr(0.5).decode("utf-8", "replace").strip()

    def exit_status(self, timeout: float) -> int | None:
        return self._command.exit_status(timeout)

    def close(self) -> None:
        self._command.close()

    leave = close
