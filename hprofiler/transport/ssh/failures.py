"""What goes wrong with a connection, said plainly. paramiko's and the system's exceptions end here."""

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
_FILES_REMEDY = "allow more open files (`ulimit -n`), or visit fewer hosts in one run"
_FILES_LACK = (errno.EMFILE, errno.ENFILE)


def socket_failure(error: OSError, route: Route, seconds: float) -> HostError:
    """A TCP connection that did not come about, or broke."""
    where = route.where
    if isinstance(error, socket.gaierror):
        if error.errno in _NO_NAME_SERVER:
            reason = f"the name lookup failed for {route.hostname}: {error.strerror}"
            return HostError("connect", reason, _NAME_SERVER_REMEDY, code="name-unknown")
        return HostError(
            "connect", f"the name {route.hostname} is not known", _NAME_REMEDY, code="name-unknown"
        )
    if isinstance(error, (socket.timeout, TimeoutError)) or error.errno == errno.ETIMEDOUT:
        return timed_out(route, seconds)
    if isinstance(error, ConnectionRefusedError):
        return HostError(
            "connect", f"connection refused by {where}", _REFUSED_REMEDY, code="connection-refused"
        )
    if error.errno in (errno.EHOSTUNREACH, errno.ENETUNREACH):
        return HostError("connect", f"no route to {where}", _ROUTE_REMEDY, code="no-route")
    remedy = _FILES_REMEDY if error.errno in _FILES_LACK else _ROUTE_REMEDY
    return HostError("connect", f"cannot connect to {where}: {error.strerror or error}", remedy)


def timed_out(route: Route, seconds: float) -> HostError:
    return HostError(
        "connect",
        f"timed out after {seconds:.3g} s connecting to {route.where}",
        _TIMEOUT_REMEDY,
        code="timeout",
    )


def closed(route: Route) -> HostError:
    return HostError("connect", f"the connection to {route.where} was closed by hprofiler")


def refused_banner(route: Route, tries: int, said: str) -> HostError:
    return HostError(
        "connect",
        f"sshd on {route.where} closed the connection before the login, {tries} times ({said})",
        "it may have too many connections (MaxStartups): connect to fewer hosts at once with --parallel",
        code="connection-refused",
    )


def proxy_not_started(error: OSError) -> HostError:
    remedy = _FILES_REMEDY if error.errno in _FILES_LACK else ""
    return HostError(
        "connect", f"cannot start the ProxyCommand: {error.strerror}", remedy, code="proxy-failed"
    )


def proxy_ended(route: Route, tries: int, said: str) -> HostError:
    return HostError(
        "connect",
        f"the ProxyCommand for {route.where} ended before the login, {tries} times: {said[-500:]}",
        "try the command by hand; it is in ssh_config",
        code="proxy-failed",
    )


def no_agreement(route: Route, said: str) -> HostError:
    return HostError("connect", f"no SSH connection to {route.where}: {said}")


def not_forwarded(jump: Route, route: Route, said: str) -> HostError:
    return HostError(
        "connect",
        f"the jump host {jump.where} cannot reach {route.where}: {said or 'it closed the connection'}",
        "check that the host is up and that sshd on the jump host allows forwarding",
        code="no-route",
    )


def unknown_key(route: Route, kind: str, fingerprint: str) -> HostError:
    return HostError(
        "connect",
        f"the host key of {route.known_as} is not known ({kind} {fingerprint})",
        f"compare the fingerprint with the host's, then use --accept-new-host-keys"
        f" (adds it to {route.known_hosts[0]}) or ssh there once"
        if route.known_hosts
        else "name a known_hosts file in ssh_config",
        code="host-key-unknown",
    )


def changed_key(route: Route, kind: str, fingerprint: str, place: str) -> HostError:
    return HostError(
        "connect",
        f"the host key of {route.known_as} has CHANGED: it shows {kind} {fingerprint}, {place} has another; "
        "somebody may be listening in",
        f"if the host was reinstalled, remove the old key: ssh-keygen -R '{route.known_as}'",
        code="host-key-changed",
    )


def revoked_key(route: Route, place: str) -> HostError:
    return HostError(
        "connect",
        f"the host key of {route.known_as} is revoked ({place})",
        "do not connect to this host",
        code="host-key-revoked",
    )


def login_timed_out(route: Route, tried: list[str], seconds: float) -> HostError:
    return HostError(
        "connect",
        f"timed out after {seconds:.3g} s while logging in as {route.user} on {route.where}:"
        f" tried {', '.join(tried)}",
        "see what a login there waits for (PAM, LDAP, a home folder over a network), or give it more time"
        " with --timeout",
        code="timeout",
    )


def hung_up(route: Route, tried: list[str]) -> HostError:
    return HostError(
        "connect",
        f"sshd on {route.where} closed the connection during the login as {route.user}:"
        f" tried {', '.join(tried)}",
        "look into its log; if you have more keys than MaxAuthTries allows, name one with --identity",
        code="login-refused",
    )


def not_authenticated(route: Route, tried: list[str], allowed: list[str]) -> HostError:
    tries = ", ".join(tried) or "nothing: there is no key to offer"
    allows = f"; the server allows {', '.join(allowed)}" if allowed else ""
    return HostError(
        "connect",
        f"authentication failed for {route.user} on {route.where}: tried {tries}{allows}",
        "name a key with --identity or a user with --user, or load the key with ssh-add",
        code="login-refused",
    )
