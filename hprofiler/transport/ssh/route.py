"""The route to a host, from the command line, the host list and ssh_config."""

from __future__ import annotations

import getpass
import os
import pwd
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import paramiko

from hprofiler.base.errors import HostError, UsageError
from hprofiler.base.paths import at_home, is_file, usual
from hprofiler.base.text import printable
from hprofiler.model import Host

_SYSTEM_CONFIG = Path("/etc/ssh/ssh_config")
_KNOWN_HOSTS = "~/.ssh/known_hosts ~/.ssh/known_hosts2"
_SYSTEM_KNOWN_HOSTS = "/etc/ssh/ssh_known_hosts /etc/ssh/ssh_known_hosts2"
# ssh prints its default keys if ssh_config names none. All releases have at least four.
_DEFAULT_KEY = re.compile(r"~/\.ssh/id_\w+")
_MOST_NAMED = 3
# In known_hosts other names would mean several names, a pattern, or no name.
_KNOWABLE = re.compile(r"(?![!|#@])[^\s,*?]+")
_JUMP = re.compile(
    r"(?:ssh://)?(?:(?P<user>.*)@)?"
    r"(?:\[(?P<v6>[^]]*)\]|(?P<host>[^:]+|.*:.*:.*))(?::(?P<port>[^:]*))?/?"
)
_AGENT = "SSH_AUTH_SOCK"
_CONFIG_REMEDY = "correct the ssh_config file, or name another one with --ssh-config"

Settings = Mapping[str, "list[str]"]
"""The values of each keyword of ssh_config, in lower case."""


@dataclass(frozen=True)
class SshOptions:
    """The command line's options for SSH. None means the value in ssh_config, else OpenSSH's default.

    `identity` is a private key's file. `config_path` replaces the user's and the system's ssh_config;
    `known_hosts` the user's known_hosts. `timeout` is in seconds, for connecting and for a silent peer.
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
    """One connection to make. `jumps` are the hosts to go through, in order, as ssh_config writes them.

    `agent` is the socket of the ssh-agent, "" for none.
    """

    hostname: str
    port: int
    user: str
    identities: tuple[Path, ...]
    identities_only: bool
    certificates: tuple[Path, ...]
    agent: str
    jumps: tuple[str, ...]
    proxy_command: str | None
    known_hosts: tuple[Path, ...]
    revoked: tuple[Path, ...]
    known_as: str
    accept_new: bool
    gssapi: bool

    @property
    def where(self) -> str:
        """Host and port for messages."""
        return self.hostname if self.port == 22 else f"{self.hostname} port {self.port}"

    @property
    def login(self) -> str:
        """User and address: `user@host:port`."""
        host = f"[{self.hostname}]" if ":" in self.hostname else self.hostname
        return f"{self.user}@{host}:{self.port}"


class RouteFinder:
    """Asks `ssh -G` for the configuration of a host. Thread-safe."""

    def __init__(self, options: SshOptions) -> None:
        self._options = options
        self._config = options.config_path
        self._account = _account() if shutil.which("ssh") else None
        own = usual("~/.ssh/config")
        if self._account and own and not self._config and Path(self._account.pw_dir) != own.parent.parent:
            self._config = own if is_file(own) else None  # ssh ignores $HOME

    def find(self, host: Host) -> Route:
        """The route to a host that the user named. Raises HostError."""
        options = self._options
        return self._route(host.address, host.user or options.user, host.port or options.port, None)

    def find_jump(self, spec: str, jumps: tuple[str, ...] | None) -> Route:
        """The route to a jump host `[user@]host[:port]`; its own ProxyJump counts if `jumps` is None."""
        parts = _JUMP.fullmatch(spec)
        if parts is None or (parts["port"] and not _port(parts["port"])):
            raise HostError("connect", f"ProxyJump {spec!r} is not [user@]host[:port]", _CONFIG_REMEDY)
        port = _port(parts["port"]) if parts["port"] else None
        return self._route(parts["v6"] or parts["host"], parts["user"] or None, port, jumps)

    def _route(
        self, address: str, user: str | None, port: int | None, jumps: tuple[str, ...] | None
    ) -> Route:
        settings = self._ask_ssh(address, user, port) if self._account else self._read(address)

        def value(name: str, otherwise: str = "") -> str:
            return settings.get(name, [otherwise])[0]

        hostname = value("hostname", address)
        port = port or _port(value("port", "22"))
        if not port:
            raise HostError("connect", f"ssh_config gives the port {value('port')!r}", _CONFIG_REMEDY)
        own_name = _own_name()
        user = user or value("user") or own_name
        tokens = {"h": hostname, "n": address, "p": str(port), "r": user, "u": own_name, "d": "~", "%": "%"}

        def files(names: str) -> tuple[Path, ...]:
            words = (_expand(name, tokens) for name in names.split() if name.lower() != "none")
            return tuple(map(_at_home, words))

        if jumps is None:
            jump = value("proxyjump", "none")
            jumps = () if jump.lower() == "none" else tuple(filter(None, map(str.strip, jump.split(","))))
        command = value("proxycommand", "none")
        named = settings.get("identityfile", [])
        if len(named) > _MOST_NAMED and all(map(_DEFAULT_KEY.fullmatch, named)):
            named = []
        mine = [str(self._options.identity)] if self._options.identity else []
        identities = [*mine, *(_expand(name, tokens) for name in named if name.lower() != "none")]
        known_hosts = str(self._options.known_hosts or "") or value(
            "userknownhostsfile", _KNOWN_HOSTS if usual("~/.ssh") else ""
        )
        return Route(
            hostname=hostname,
            port=port,
            user=user,
            identities=tuple(dict.fromkeys(map(_at_home, identities))),
            identities_only=value("identitiesonly") in ("yes", "true"),
            certificates=tuple(
                _at_home(_expand(name, tokens))
                for name in settings.get("certificatefile", [])
                if name.lower() != "none"
            ),
            agent=_agent(value("identityagent", _AGENT), tokens),
            jumps=jumps,
            proxy_command=None if jumps or command.lower() == "none" else _expand(command, tokens),
            known_hosts=files(known_hosts) + files(value("globalknownhostsfile", _SYSTEM_KNOWN_HOSTS)),
            revoked=files(value("revokedhostkeys", "none")),
            known_as=_known_as(value("hostkeyalias"), hostname, port),
            accept_new=self._options.accept_new_host_keys
            or value("stricthostkeychecking", "ask") in ("accept-new", "no", "off", "false"),
            gssapi=value("gssapiauthentication") in ("yes", "true"),
        )

    def _ask_ssh(self, address: str, user: str | None, port: int | None) -> Settings:
        command = ["ssh", "-G", "-T"]
        command += ["-F", str(self._config)] if self._config else []
        command += ["-l", user] if user else []
        command += ["-p", str(port)] if port else []
        seconds = self._options.timeout
        try:
            done = subprocess.run(
                [*command, "--", address], stdin=subprocess.DEVNULL, capture_output=True, timeout=seconds
            )
        except subprocess.TimeoutExpired as error:
            reason = f"`ssh -G` did not read ssh_config within {seconds:.3g} s"
            raise HostError("connect", reason, "see what its `Match exec` and `Include` lines do") from error
        except (OSError, ValueError) as error:
            raise HostError("connect", f"cannot run `ssh -G`: {error}") from error
        if done.returncode:
            said = printable(done.stderr.decode("utf-8", "replace").strip()[-500:])
            raise HostError("connect", f"ssh cannot read ssh_config: {said}", _CONFIG_REMEDY)
        assert self._account
        in_home = f"{self._account.pw_dir}/.ssh/known_hosts"
        settings: dict[str, list[str]] = {}
        for line in done.stdout.decode("utf-8", "replace").splitlines():
            name, _, value = line.partition(" ")
            settings.setdefault(name, []).append(value.replace(in_home, "~/.ssh/known_hosts"))
        return settings

    def _read(self, address: str) -> Settings:
        """Reads the configuration with paramiko if there is no `ssh`."""
        _own_name()  # paramiko needs it too
        named = self._options.config_path
        paths = [named] if named else [usual("~/.ssh/config"), _SYSTEM_CONFIG]
        try:
            texts = [path.read_text("utf-8", "replace") for path in paths if path and path.exists()]
            config = paramiko.SSHConfig.from_text("\nHost *\n".join(texts))
            found: dict[str, Any] = dict(config.lookup(address))
        except OSError as error:
            raise HostError("connect", f"cannot read ssh_config: {error}", _CONFIG_REMEDY) from error
        except Exception as error:  # paramiko raises many kinds here, ImportError (Match exec) among them
            raise HostError("connect", f"ssh_config is not valid: {error}", _CONFIG_REMEDY) from error
        include = found.get("include", "")
        # Debian's file includes a folder that is empty.
        if include and not (include.startswith("/") and not any(Path("/").glob(include[1:]))):
            reason = "ssh_config has an Include, which only the program `ssh` can read"
            raise HostError("connect", reason, "install OpenSSH's client, or use --ssh-config")
        return {name: [one] if isinstance(one, str) else one or ["none"] for name, one in found.items()}


def _account() -> pwd.struct_passwd | None:
    """`ssh` refuses to run for a user who has none, as in many containers."""
    try:
        return pwd.getpwuid(os.getuid())
    except KeyError:
        return None


def _agent(name: str, tokens: Mapping[str, str]) -> str:
    """The socket of IdentityAgent: a path, `$VARIABLE`, SSH_AUTH_SOCK or none."""
    if name == _AGENT or name.startswith("$"):
        return os.environ.get(name.removeprefix("$").strip("{}"), "")
    return "" if name.lower() == "none" else str(_at_home(_expand(name, tokens)))


def _expand(text: str, tokens: Mapping[str, str]) -> str:
    return re.sub("%(.)", lambda found: tokens.get(found[1], found[0]), text)


def _port(text: str) -> int:
    """The port in a text, or 0 if it is not one (`²` is a digit for Python, but not a number)."""
    number = int(text) if re.fullmatch("[0-9]{1,5}", text) else 0
    return number if number < 65536 else 0


def _at_home(name: str) -> Path:
    try:
        return at_home(name)
    except UsageError as error:
        raise HostError("connect", error.reason, error.remedy) from error


def _own_name() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError) as error:
        reason = f"the user who runs this ({os.getuid()}) has no user name on this machine"
        raise HostError("connect", reason, "give it one: LOGNAME=me hprofiler ...") from error


def _known_as(alias: str, hostname: str, port: int) -> str:
    name = (alias or hostname).lower()
    if not _KNOWABLE.fullmatch(name) or not name.isprintable():
        option = "HostKeyAlias" if alias else "HostName"
        reason = f"{option} {name[:200]!r} in ssh_config is not a valid name for known_hosts"
        raise HostError("connect", reason, _CONFIG_REMEDY)
    return name if alias or port == 22 else f"[{name}]:{port}"
