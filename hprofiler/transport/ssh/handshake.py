"""Logs in over an open socket: key exchange, host key, authentication."""

from __future__ import annotations

import base64
import hashlib
import logging
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import paramiko

from hprofiler.base.errors import HostError
from hprofiler.transport.ssh import failures
from hprofiler.transport.ssh.certificates import SUFFIX, why_not_trusted
from hprofiler.transport.ssh.keys import KeyRing
from hprofiler.transport.ssh.known_hosts import KnownHosts, Verdict, without_port
from hprofiler.transport.ssh.route import Route
from hprofiler.transport.ssh.sockets import Attempt

# Without a handler Python prints paramiko's tracebacks on stderr.
logging.getLogger("paramiko").addHandler(logging.NullHandler())


class RefusedBanner(Exception):
    """The peer closed the connection before the login; another try may succeed. The text is its message."""


def shake_hands(
    link: paramiko.Transport, route: Route, known_hosts: KnownHosts, seconds: float, attempt: Attempt
) -> None:
    """Key exchange within `seconds`, by a known kind of host key if any. Raises RefusedBanner, HostError."""
    link.banner_timeout = link.handshake_timeout = seconds
    options = link.get_security_options()
    offered = list(options.key_types)
    known = known_hosts.kinds(route.known_hosts, route.known_as)
    names = (
        name
        for kind in known
        for name in (("rsa-sha2-512", "rsa-sha2-256", kind) if kind == "ssh-rsa" else (kind,))
    )
    if known_hosts.authorities(route.known_hosts, route.known_as):
        # Before plain keys, even known ones, as ssh does.
        offered = [*(f"{name}{SUFFIX}" for name in offered if name != "ssh-rsa"), *offered]
        options.key_types = offered
    elif wanted := [name for name in names if name in offered]:
        options.key_types = (*wanted, *(name for name in offered if name not in wanted))
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


def check_host_key(link: paramiko.Transport, route: Route, known_hosts: KnownHosts) -> None:
    """Raises HostError unless the host's key is known, or new and new ones are accepted."""
    shown = link.get_remote_server_key()
    key, kind = shown.asbytes(), shown.get_name()
    fingerprint = "SHA256:" + base64.b64encode(hashlib.sha256(key).digest()).decode().rstrip("=")
    revoked = known_hosts.revoked(route.revoked, key)
    if revoked:
        raise failures.revoked_key(route, str(revoked))
    why = _why_not_certified(shown, route, known_hosts)
    if why == "":
        return
    verdict, place = known_hosts.check(route.known_hosts, route.known_as, key)
    if verdict is Verdict.REVOKED:
        raise failures.revoked_key(route, place)
    if verdict is Verdict.CHANGED:
        raise HostError(
            "connect",
            f"the host key of {route.known_as} has CHANGED: it shows {kind} {fingerprint}, {place} has "
            "another; somebody may be listening in",
            f"if the host was reinstalled, remove the old key: ssh-keygen -R '{route.known_as}'",
            code="host-key-changed",
        )
    if verdict is Verdict.KNOWN:
        return
    if not route.accept_new or not route.known_hosts:
        remedy = "name a known_hosts file in ssh_config"
        if route.known_hosts:
            remedy = (
                "compare the fingerprint with the host's, then use --accept-new-host-keys"
                f" (adds it to {route.known_hosts[0]}) or ssh there once"
            )
        reason = f"the host key of {route.known_as} is not known ({kind} {fingerprint})"
        if why:
            reason += f", and {why}"
            remedy = "give the host a valid certificate of this authority, or add its key to known_hosts"
        raise HostError("connect", reason, remedy, code="host-key-unknown")
    try:
        known_hosts.add(route.known_hosts[0], route.known_as, kind, key)
    except OSError as error:
        raise HostError(
            "connect",
            f"cannot add the host's key to {route.known_hosts[0]}: {error.strerror}",
            "make it writable",
        ) from error


def _why_not_certified(shown: paramiko.PKey, route: Route, known_hosts: KnownHosts) -> str | None:
    """Why no certificate vouches for the host's key; "" if one does, None if there is no authority."""
    known = known_hosts.authorities(route.known_hosts, route.known_as)
    if not known:
        return None
    place = next(iter(known.values()))
    certificate = getattr(shown, "public_blob", None)
    if certificate is None:
        return f"it shows no certificate, which {place} asks for"
    trusted = [
        authority
        for authority in known
        if not known_hosts.revoked(route.revoked, authority)
        and known_hosts.check(route.known_hosts, route.known_as, authority)[0] is not Verdict.REVOKED
    ]
    why = why_not_trusted(certificate.key_blob, without_port(route.known_as), trusted)
    return f"its certificate is not accepted ({place}): {why}" if why else ""


def log_in(link: paramiko.Transport, route: Route, keys: KeyRing, seconds: float, attempt: Attempt) -> None:
    """Offer each credential until the host accepts one, within `seconds`; time at prompts does not count.

    Raises HostError with everything that was tried.
    """
    left = seconds
    tried: list[str] = []
    for name, offer in _offers(link, route, keys):
        if attempt.closed.is_set():  # during a prompt for a passphrase
            raise failures.closed(route)
        tried.append(name)
        if offer is None:
            continue
        link.auth_timeout, began = left, time.monotonic()
        try:
            more = offer()
        except paramiko.AuthenticationException:
            pass  # a refusal, a timeout or a closed connection
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
            raise HostError(
                "connect",
                f"sshd on {route.where} closed the connection during the login as {route.user}:"
                f" tried {', '.join(tried)}",
                "look into its log; if you have more keys than MaxAuthTries allows, name one with --identity",
                code="login-refused",
            )
        if left <= 0:
            raise HostError(
                "connect",
                f"timed out after {seconds:.3g} s while logging in as {route.user} on {route.where}:"
                f" tried {', '.join(tried)}",
                "see what a login there waits for (PAM, LDAP, a home folder over a network), or give it more"
                " time with --timeout",
                code="timeout",
                parameters={"seconds": seconds},
            )
    link.auth_timeout = left
    tries = ", ".join(tried) or "nothing: there is no key to offer"
    allowed = _allowed(link, route)
    allows = f"; the server allows {', '.join(allowed)}" if allowed else ""
    raise HostError(
        "connect",
        f"authentication failed for {route.user} on {route.where}: tried {tries}{allows}",
        "name a key with --identity or a user with --user, or load the key with ssh-add",
        code="login-refused",
    )


def _allowed(link: paramiko.Transport, route: Route) -> list[str]:
    """The methods that the server accepts; asked only after ours failed."""
    try:
        link.auth_none(route.user)
    except paramiko.BadAuthenticationType as error:
        return list(error.allowed_types)
    except (paramiko.SSHException, EOFError, OSError):
        pass  # it closed the connection
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
    method: Any = getattr(link, "auth_gssapi_with_mic", None)
    if method is None or not getattr(paramiko, "GSS_AUTH_AVAILABLE", False):
        return None
    return lambda: list(method(route.user, route.hostname, False) or [])
