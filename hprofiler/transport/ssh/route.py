"""How to get to a host: what the command line, the host list and ssh_config say together."""

from __future__ import annotations

import getpass
import io
import os
import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hprofiler.base.errors import HostError, UsageError
from hprofiler.base.paths import at_home, usual
from hprofiler.model import Host
from hprofiler.transport.ssh.config_file import read_config

if TYPE_CHECKING:
    import paramiko

_USER_DIR = "~/.ssh"
_SYSTEM_DIR = Path("/etc/ssh")
# A line of known_hosts takes other names for several, for a pattern, or for no name at all.
_KNOWABLE = re.compile(r"(?![!|#@])[^\s,*?]+")
_CONFIG_REMEDY = "correct the ssh_config file, or name another one with --ssh-config"


@dataclass(frozen=True)
class SshOptions:
    """The command line's options for SSH. None means: what ssh_config says, else OpenSSH's default.

    `identity` is a private key's file. `config_path` replaces the user's and the system's ssh_config;
    `known_hosts` the user's known_hosts. `timeout` is seconds to connect in, and for a silent peer.
    `become` is None or `sudo`.
    """

    user: str | None = None
    port: int | None = None
    identity: Path | None = None
    config_path: Path | None = None
    known_hosts: Path | None = None
    accept_new_host_keys: bool = False
    timeout: float = 30.0
    become: str | None = None


@dataclass(frozen=True)
class Route:
    """One connection to make. `jumps` are the hosts to go through, in order, as ssh_config writes them."""

    hostname: str
    port: int
    user: str
    identities: tuple[Path, ...]
    identities_only: bool
    jumps: tuple[str, ...]
    proxy_command: str | None
    known_hosts: tuple[Path, ...]
    revoked: tuple[Path, ...]
    known_as: str
    accept_new: bool
    gssapi: bool

    @property
    def where(self) -> str:
        """The far end in words for a message."""
        return self.hostname if self.port == 22 else f"{self.hostname} port {self.port}"

    @property
    def login(self) -> str:
        """As whom and where to: `user@host:port`."""
        host = f"[{self.hostname}]" if ":" in self.hostname else self.hostname
        return f"{self.user}@{host}:{self.port}"


class RouteFinder:
    """Reads ssh_config once, and answers for any number of hosts; from any thread."""

    def __init__(self, options: SshOptions) -> None:
        self._options = options
        self._lock = threading.Lock()
        self._config: paramiko.SSHConfig | None = None

    def find(self, host: Host) -> Route:
        """The route to a host that the user asked for. Raises HostError."""
        options = self._options
        return self._route(host.address, host.user or options.user, host.port or options.port, None)

    def find_jump(self, spec: str, jumps: tuple[str, ...] | None) -> Route:
        """The route to a jump host `[user@]host[:port]`; its own ProxyJump counts where `jumps` is None."""
        text = spec[len("ssh://") :] if spec.startswith("ssh://") else spec
        user, _, address = text.rpartition("@")
        port: int | None = None
        if address.startswith("["):
            address, _, rest = address[1:].partition("]")
            port_text = rest.lstrip(":")
        else:
            address, _, port_text = address.partition(":") if address.count(":") == 1 else (address, "", "")
        if port_text:
            port = _number(port_text)
            if not port:
                raise HostError("connect", f"ProxyJump {spec!r} has no valid port", _CONFIG_REMEDY)
        return self._route(address, user or None, port, jumps)

    def _route(
        self, address: str, user: str | None, port: int | None, jumps: tuple[str, ...] | None
    ) -> Route:
        own_name = _own_name()
        config = self._lookup(address)
        hostname = str(config.get("hostname", address))
        port = port or _port(config.get("port", "22"))
        user = user or config.get("user") or own_name
        strict = str(config.get("stricthostkeychecking", "ask")).lower()
        jumps = _jumps(config) if jumps is None else jumps
        return Route(
            hostname=hostname,
            port=port,
            user=user,
            identities=self._identities(config),
            identities_only=_yes(config, "identitiesonly"),
            jumps=jumps,
            proxy_command=None if jumps else _command(config, address),
            known_hosts=self._known_hosts(config),
            revoked=_revoked(config),
            known_as=_known_as(config.get("hostkeyalias"), hostname, port),
            accept_new=self._options.accept_new_host_keys or strict in ("accept-new", "no", "off"),
            gssapi=_yes(config, "gssapiauthentication"),
        )

    def _identities(self, config: Mapping[str, Any]) -> tuple[Path, ...]:
        named = [str(self._options.identity)] if self._options.identity else []
        named += [name for name in config.get("identityfile", []) if name.lower() != "none"]
        return tuple(dict.fromkeys(_at_home(name) for name in named))

    def _known_hosts(self, config: Mapping[str, Any]) -> tuple[Path, ...]:
        """The user's files first: the first of all is where new keys go."""
        users: list[str] = []
        if self._options.known_hosts:
            users = [str(self._options.known_hosts)]
        elif "userknownhostsfile" in config:
            users = str(config["userknownhostsfile"]).split()
        elif home := usual(_USER_DIR):
            users = [f"{home}/known_hosts", f"{home}/known_hosts2"]
        systems = str(
            config.get(
                "globalknownhostsfile", f"{_SYSTEM_DIR}/ssh_known_hosts {_SYSTEM_DIR}/ssh_known_hosts2"
            )
        ).split()
        return tuple(_expanded(name) for name in users + systems if name != "none")

    def _lookup(self, address: str) -> dict[str, Any]:
        try:
            with self._lock:  # a lookup may ask the resolver; not worth more than one at a time
                if self._config is None:
                    self._config = self._read()
                return dict(self._config.lookup(address))
        except UsageError as error:
            raise HostError("connect", error.reason, error.remedy) from error
        except Exception as error:  # paramiko raises many kinds here, ImportError (Match exec) among them
            raise HostError("connect", f"ssh_config is not valid: {error}", _CONFIG_REMEDY) from error

    def _read(self) -> paramiko.SSHConfig:
        import paramiko

        _keep_our_input()
        if self._options.config_path:
            try:
                text = read_config(self._options.config_path, usual(_USER_DIR) or _SYSTEM_DIR)
            except OSError as error:
                raise UsageError(f"cannot read {self._options.config_path}: {error.strerror}") from error
            return paramiko.SSHConfig.from_text(text)
        text = ""
        for folder, name in ((usual(_USER_DIR), "config"), (_SYSTEM_DIR, "ssh_config")):
            if folder is None:
                continue
            try:
                text += read_config(folder / name, folder) + "Host *\n"
            except FileNotFoundError:
                continue
            except OSError as error:
                raise UsageError(f"cannot read {folder / name}: {error.strerror}") from error
        return paramiko.SSHConfig.from_text(text)


class _NothingToRead:
    """Runs commands of `Match exec` for paramiko. They have no input, as with ssh; it gives them ours."""

    def __init__(self, invoke: Any) -> None:
        self._invoke = invoke

    def run(self, command: str, **options: Any) -> Any:
        return self._invoke.run(command, in_stream=io.StringIO(), **options)


def _keep_our_input() -> None:
    """For all lookups: paramiko has no option for it, and other threads need sys.stdin as it is."""
    from paramiko import config

    invoke = getattr(config, "invoke", None)
    if invoke is not None and not isinstance(invoke, _NothingToRead):
        config.invoke = _NothingToRead(invoke)  # type: ignore[attr-defined]


def _port(text: str) -> int:
    port = _number(text)
    if not port:
        raise HostError("connect", f"the port {text!r} in ssh_config is not valid", _CONFIG_REMEDY)
    return port


def _number(text: str) -> int:
    """The port that a text is; 0 for what is none (`²` is a digit to Python, and no number)."""
    number = int(text) if re.fullmatch("[0-9]{1,5}", text) else 0
    return number if number < 65536 else 0


def _yes(config: Mapping[str, Any], name: str) -> bool:
    return str(config.get(name, "no")).lower() in ("yes", "true")


def _jumps(config: Mapping[str, Any]) -> tuple[str, ...]:
    value = str(config.get("proxyjump") or "none")
    return () if value.lower() == "none" else tuple(part.strip() for part in value.split(",") if part.strip())


def _command(config: Mapping[str, Any], address: str) -> str | None:
    """ProxyCommand; paramiko has expanded all but these two tokens."""
    command = config.get("proxycommand")
    return None if command is None else str(command).replace("%n", address).replace("%%", "%")


def _revoked(config: Mapping[str, Any]) -> tuple[Path, ...]:
    names = str(config.get("revokedhostkeys", "none")).split()
    return tuple(_expanded(name) for name in names if name.lower() != "none")


def _expanded(name: str) -> Path:
    return _at_home(name.replace("%d", "~", 1))


def _at_home(name: str) -> Path:
    try:
        return at_home(name)
    except UsageError as error:
        raise HostError("connect", error.reason, error.remedy) from error


def _own_name() -> str:
    """What `ssh_config` may speak of as well."""
    try:
        return getpass.getuser()
    except (KeyError, OSError) as error:
        reason = f"the user who runs this ({os.getuid()}) has no user name on this machine"
        raise HostError("connect", reason, "set one: LOGNAME=me hprofiler …") from error


def _known_as(alias: str | None, hostname: str, port: int) -> str:
    name = (alias or hostname).lower()
    if not _KNOWABLE.fullmatch(name) or not name.isprintable():
        option = "HostKeyAlias" if alias else "HostName"
        reason = f"{option} {name[:200]!r} in ssh_config is not a valid name for known_hosts"
        raise HostError("connect", reason, _CONFIG_REMEDY)
    return name if alias or port == 22 else f"[{name}]:{port}"
