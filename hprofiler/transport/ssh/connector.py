"""Connections of one run. Files that they share are read once."""

from __future__ import annotations

import random
import time
from functools import partial
from typing import Any

import paramiko

from hprofiler.base.errors import HostError, UsageError
from hprofiler.base.paths import at_home, is_file
from hprofiler.model import Host
from hprofiler.transport.ssh import failures
from hprofiler.transport.ssh.handshake import RefusedBanner, check_host_key, log_in, shake_hands
from hprofiler.transport.ssh.jumps import Hops, Jumps
from hprofiler.transport.ssh.keys import AskPassphrase, KeyRing
from hprofiler.transport.ssh.known_hosts import KnownHosts
from hprofiler.transport.ssh.route import Route, RouteFinder, SshOptions
from hprofiler.transport.ssh.sockets import Attempt, dial, spawn_proxy
from hprofiler.transport.ssh.transport import SshTransport

KEEPALIVE_SECONDS = 15
_TRIES = 6
_FIRST_PAUSE = 0.2
_MOST_JUMPS = 8


class SshConnector:
    """Makes transports that share ssh_config, known hosts, keys, passphrases and jump hosts."""

    def __init__(self, options: SshOptions, ask_passphrase: AskPassphrase | None = None) -> None:
        """`ask_passphrase(prompt)` is called from any thread. Raises UsageError for missing files."""
        for file in (options.identity, options.config_path):
            if file is not None and not is_file(at_home(file)):
                raise UsageError(f"there is no file {file}", "check --identity and --ssh-config")
        self.options = options
        self._routes = RouteFinder(options)
        self._keys = KeyRing(ask_passphrase)
        self._known_hosts = KnownHosts()
        self._jumps = Jumps(self._link)

    def transport(self, host: Host) -> SshTransport:
        """A transport to `host`, not connected yet."""
        return SshTransport(host, self)

    def destination(self, host: Host) -> str:
        """`user@host:port`, and the jump hosts on the way."""
        *jumps, end = self._hops(self._routes.find(host))
        if jumps:
            return f"{end.login} through {', '.join(jump.login for jump in jumps)}"
        return end.login + (" through its ProxyCommand" if end.proxy_command else "")

    def connect(self, host: Host, attempt: Attempt) -> paramiko.Transport:
        return self._link(self._hops(self._routes.find(host)), attempt)

    def _hops(self, route: Route) -> Hops:
        """The routes of its jump hosts in the order of connecting, then the route. Raises HostError."""
        hops = [route]
        while hops[0].jumps:
            if len(hops) > _MOST_JUMPS:
                raise HostError(
                    "connect", "ProxyJump leads through too many hosts", "check for a loop in ssh_config"
                )
            jumps = hops[0].jumps
            hops.insert(0, self._routes.find_jump(jumps[-1], jumps[:-1] or None))
        return tuple(hops)

    def _link(self, hops: Hops, attempt: Attempt) -> paramiko.Transport:
        """A logged-in connection; a refused banner is tried again after a pause. Raises HostError."""
        route = hops[-1]
        deadline = time.monotonic() + self.options.timeout
        pause = _FIRST_PAUSE
        for number in range(1, _TRIES + 1):
            try:
                return self._try(hops, attempt)
            except RefusedBanner as error:
                if attempt.closed.is_set():
                    raise failures.closed(route) from error
                if number == _TRIES or time.monotonic() + pause > deadline:
                    raise self._refused(route, attempt, number, str(error)) from error
            attempt.closed.wait(pause * random.uniform(0.5, 1.5))
            pause *= 2
        raise AssertionError("the last try returns or raises")

    def _refused(self, route: Route, attempt: Attempt, tries: int, said: str) -> HostError:
        if route.proxy_command:
            said = (attempt.complaint() or said)[-500:]
            reason = f"the ProxyCommand for {route.where} ended before the login, {tries} times: {said}"
            return HostError(
                "connect", reason, "try the command by hand; it is in ssh_config", code="proxy-failed"
            )
        return HostError(
            "connect",
            f"sshd on {route.where} closed the connection before the login, {tries} times ({said})",
            "it may have too many connections (MaxStartups): connect to fewer hosts at once with --parallel",
            code="connection-refused",
        )

    def _try(self, hops: Hops, attempt: Attempt) -> paramiko.Transport:
        route, seconds = hops[-1], self.options.timeout
        link: paramiko.Transport | None = None
        channel_or_socket = self._socket(hops, attempt)
        try:
            link = paramiko.Transport(channel_or_socket)
            link.daemon = True
            attempt.on_close(link.close)
            shake_hands(link, route, self._known_hosts, seconds, attempt)
            check_host_key(link, route, self._known_hosts)
            log_in(link, route, self._keys, seconds, attempt)
            link.set_keepalive(KEEPALIVE_SECONDS)
            return link
        except (paramiko.SSHException, EOFError, OSError) as error:
            self._give_up(link, channel_or_socket)
            if attempt.closed.is_set():
                raise failures.closed(route) from error
            raise failures.no_agreement(route, str(error) or type(error).__name__) from error
        except BaseException:
            self._give_up(link, channel_or_socket)
            raise

    def _give_up(self, link: paramiko.Transport | None, channel_or_socket: Any) -> None:
        if link is not None:
            link.close()
        channel_or_socket.close()

    def _socket(self, hops: Hops, attempt: Attempt) -> Any:
        """A socket, or a channel through a jump host that behaves like one."""
        route = hops[-1]
        if route.proxy_command:
            connection, stderr = spawn_proxy(route.proxy_command, attempt.on_close)
            attempt.complaint = partial(stderr.text, 0.5)
            return connection
        if not route.jumps:
            return dial(route, self.options.timeout, attempt.on_close)
        return self._through(hops[:-1], route, attempt)

    def _through(self, hops: Hops, route: Route, attempt: Attempt) -> paramiko.Channel:
        try:
            channel = self._jumps.link(hops, attempt).open_channel(
                "direct-tcpip", (route.hostname, route.port), ("127.0.0.1", 0), timeout=self.options.timeout
            )
        except (paramiko.SSHException, EOFError, OSError) as error:
            said = error.text if isinstance(error, paramiko.ChannelException) else str(error)
            raise HostError(
                "connect",
                f"the jump host {hops[-1].where} cannot reach {route.where}: "
                f"{said or 'it closed the connection'}",
                "check that the host is up and that sshd on the jump host allows forwarding",
                code="no-route",
            ) from error
        attempt.on_close(channel.close)
        return channel

    def close(self) -> None:
        """Close the connections to jump hosts."""
        self._jumps.close()
