"""From an open socket to a login: key exchange, host key, authentication."""

from __future__ import annotations

import base64
import hashlib
import logging
import threading
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from hprofiler.base.errors import HostError
from hprofiler.transport.ssh import failures
from hprofiler.transport.ssh.keys import KeyRing
from hprofiler.transport.ssh.known_hosts import KnownHosts, Verdict
from hprofiler.transport.ssh.route import Route
from hprofiler.transport.ssh.sockets import Attempt

if TYPE_CHECKING:
    import paramiko

# Without a handler Python prints paramiko's tracebacks on stderr.
logging.getLogger("paramiko").addHandler(logging.NullHandler())


class RefusedBanner(Exception):
    """The peer hung up before or during the key exchange; worth another try. The text is what it said."""


def shake_hands(
    link: paramiko.Transport, route: Route, known_hosts: KnownHosts, seconds: float, attempt: Attempt
) -> None:
    """Key exchange within `seconds`, with a known kind of host key if any. RefusedBanner, HostError."""
    import paramiko

    link.banner_timeout = link.handshake_timeout = seconds
    _prefer(link, known_hosts.kinds(route.known_hosts, route.known_as))
    finished = threading.Event()
    attempt.on_close(finished.set)  # paramiko does not set it for a connection that we close
    link.start_client(event=finished)
    if not finished.wait(seconds):
        raise failures.timed_out(route, seconds)
    if link.is_active():
        return
    if attempt.closed.is_set():
        raise failures.closed(route)
    error = link.get_exception()
    if isinstance(error, paramiko.ssh_exception.IncompatiblePeer):
        raise failures.no_agreement(route, str(error))
    if error is None or isinstance(error, (EOFError, ConnectionError)) or "banner" in str(error):
        raise RefusedBanner("it closed the connection" if error is None or not str(error) else str(error))
    if isinstance(error, OSError):
        raise failures.socket_failure(error, route, seconds)
    raise failures.no_agreement(route, str(error))


def _prefer(link: paramiko.Transport, kinds: list[str]) -> None:
    options = link.get_security_options()
    offered = list(options.key_types)
    wanted = [name for kind in kinds for name in _algorithms(kind) if name in offered]
    if wanted:
        options.key_types = (*wanted, *(name for name in offered if name not in wanted))


def _algorithms(kind: str) -> tuple[str, ...]:
    return ("rsa-sha2-512", "rsa-sha2-256", kind) if kind == "ssh-rsa" else (kind,)


def check_host_key(link: paramiko.Transport, route: Route, known_hosts: KnownHosts) -> None:
    """Raises HostError unless the host's key is known, or new and new ones are accepted."""
    shown = link.get_remote_server_key()
    key, kind = shown.asbytes(), shown.get_name()
    fingerprint = "SHA256:" + base64.b64encode(hashlib.sha256(key).digest()).decode().rstrip("=")
    revoked = known_hosts.revoked(route.revoked, key)
    if revoked:
        raise failures.revoked_key(route, str(revoked))
    verdict, place = known_hosts.check(route.known_hosts, route.known_as, key)
    if verdict is Verdict.REVOKED:
        raise failures.revoked_key(route, place)
    if verdict is Verdict.CHANGED:
        raise failures.changed_key(route, kind, fingerprint, place)
    if verdict is Verdict.KNOWN:
        return
    if not route.accept_new or not route.known_hosts:
        raise failures.unknown_key(route, kind, fingerprint)
    try:
        known_hosts.add(route.known_hosts[0], route.known_as, kind, key)
    except OSError as error:
        raise HostError(
            "connect",
            f"cannot add the host's key to {route.known_hosts[0]}: {error.strerror}",
            "make it writable",
        ) from error


def log_in(link: paramiko.Transport, route: Route, keys: KeyRing, seconds: float, attempt: Attempt) -> None:
    """Offer what there is until the host takes one, within `seconds`, in which no time to type counts.

    Raises HostError naming everything that was tried.
    """
    import paramiko

    left = seconds
    tried: list[str] = []
    for name, offer in _offers(link, route, keys):
        if attempt.closed.is_set():  # while somebody was to type
            raise failures.closed(route)
        tried.append(name)
        if offer is None:
            continue
        link.auth_timeout, began = left, time.monotonic()
        try:
            more = offer()
        except paramiko.AuthenticationException:
            pass  # paramiko's word for a refusal, for no answer in time and for a connection that ends
        except (paramiko.SSHException, EOFError, OSError) as error:
            if link.is_active():
                tried[-1] += f" ({error})"
        else:
            if link.is_authenticated():
                return
            tried[-1] += f" (accepted, but the server requires {', '.join(more)} as well)"
            break
        finally:
            left -= time.monotonic() - began
        if attempt.closed.is_set():
            raise failures.closed(route)
        if not link.is_active():
            raise failures.hung_up(route, tried)
        if left <= 0:
            raise failures.login_timed_out(route, tried, seconds)
    link.auth_timeout = left
    raise failures.not_authenticated(route, tried, _allowed(link, route))


def _allowed(link: paramiko.Transport, route: Route) -> list[str]:
    """The methods that the server would take; asked only when ours failed."""
    import paramiko

    try:
        link.auth_none(route.user)
    except paramiko.BadAuthenticationType as error:
        return list(error.allowed_types)
    except (paramiko.SSHException, EOFError, OSError):
        pass  # it has hung up; the message goes without
    return []


def _offers(
    link: paramiko.Transport, route: Route, keys: KeyRing
) -> Iterator[tuple[str, Callable[[], list[str]] | None]]:
    kerberos = _kerberos(link, route)
    if kerberos and route.gssapi:
        yield "Kerberos", kerberos
    for name, key in keys.credentials(route):
        yield name, (lambda key=key: link.auth_publickey(route.user, key)) if key else None  # type: ignore[misc]
    if kerberos and not route.gssapi:
        yield "Kerberos", kerberos


def _kerberos(link: paramiko.Transport, route: Route) -> Callable[[], list[str]] | None:
    """Kerberos by gssapi-with-mic, where this paramiko has it (releases before 5) with a gssapi library."""
    import paramiko

    method: Any = getattr(link, "auth_gssapi_with_mic", None)
    if method is None or not getattr(paramiko, "GSS_AUTH_AVAILABLE", False):
        return None
    return lambda: list(method(route.user, route.hostname, False) or [])
