"""What the command line says of SSH connections."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class SshOptions:
    """None means: what ssh_config says, else OpenSSH's default.

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
