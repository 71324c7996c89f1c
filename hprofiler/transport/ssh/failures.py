"""Failures of a connection. Exceptions of paramiko and of the system become HostError here."""

from __future__ import annotations

import errno
import socket

from hprofiler.base.errors import HostError
from hprofiler.transport.ssh.route import Route

_TIMEOUT_REMEDY = "check that the host is up and no firewall blocks the port, or raise --timeout"
_NAME_REMEDY = "check the spelling, DNS, or HostName in ssh_config"
_NAME_SERVER_REMEDY = "check the network, the VPN and the name servers of this machine"
_NO_NAME_SERVER = (socket.EAI_AGAIN, socket.EAI_FAIL)
_REFUSED_REMEDY = "check that sshd runs there and listens on this port (--port)"
_ROUTE_REMEDY = "check the network and the host's address"
FILES_REMEDY = "allow more open files (`ulimit -n`), or visit fewer hosts in one run"
FILES_LACK = (errno.EMFILE, errno.ENFILE)


def socket_failure(error: OSError, route: Route, seconds: float) -> HostError:
    """A TCP connection that failed."""
    where = route.where
    if isinstance(error, socket.gaierror):
        if error.errno in _NO_NAME_SERVER:
            reason = f"the name lookup failed for {route.hostname}: {error.strerror}"
            return HostError("connect", reason, _NAME_SERVER_REMEDY, code="name-unknown")
        return HostError(
            "connect", f"the name {route.hostname} is not known", _NAME_REMEDY, code="name-unknown"
        )
    if isinstance(error, TimeoutError) or error.errno == errno.ETIMEDOUT:
        return timed_out(route, seconds)
    if isinstance(error, ConnectionRefusedError):
        return HostError(
            "connect", f"connection refused by {where}", _REFUSED_REMEDY, code="connection-refused"
        )
    if error.errno in (errno.EHOSTUNREACH, errno.ENETUNREACH):
        return HostError("connect", f"no route to {where}", _ROUTE_REMEDY, code="no-route")
    remedy = FILES_REMEDY if error.errno in FILES_LACK else _ROUTE_REMEDY
    return HostError("connect", f"cannot connect to {where}: {error.strerror or error}", remedy)


def timed_out(route: Route, seconds: float) -> HostError:
    return HostError(
        "connect",
        f"timed out after {seconds:.3g} s connecting to {route.where}",
        _TIMEOUT_REMEDY,
        code="timeout",
        parameters={"seconds": seconds},
    )


def closed(route: Route) -> HostError:
    return HostError("connect", f"the connection to {route.where} was closed by hprofiler")


def no_agreement(route: Route, said: str) -> HostError:
    return HostError("connect", f"no SSH connection to {route.where}: {said}")


def revoked_key(route: Route, place: str) -> HostError:
    return HostError(
        "connect",
        f"the host key of {route.known_as} is revoked ({place})",
        "do not connect to this host",
        code="host-key-revoked",
    )
