"""The lab's ssh material: one user key, a host key for every host, known_hosts, homes."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

Entry = tuple[str, str, int]
"""(name, address, port) of a host."""


def make_key(path: Path, kind: str = "ed25519", passphrase: str = "") -> Path:
    """A key pair at `path` and `path`.pub, unless it is there."""
    if not path.exists():
        command = ["ssh-keygen", "-q", "-t", kind, "-N", passphrase, "-C", "test", "-f", str(path)]
        subprocess.run(command, check=True)
    return path


def known_hosts_line(entry: Entry, public_key: Path) -> str:
    """A line with a host's name and address."""
    name, address, port = entry
    names = [name, address] if port == 22 else [f"[{name}]:{port}", f"[{address}]:{port}"]
    kind, key = public_key.read_text().split()[:2]
    return f"{','.join(names)} {kind} {key}\n"


def client_config(entries: Iterable[Entry]) -> str:
    """An ssh_config with the hosts' addresses, because the coordinator has no resolver for them."""
    return "".join(f"Host {name}\n  HostName {address}\n  Port {port}\n" for name, address, port in entries)


def make_home(home: Path, keys: Path, uid: int) -> Path:
    """The home of a lab user, owned by `uid`, with key, known_hosts and config in ~/.ssh."""
    ssh = home / ".ssh"
    ssh.mkdir(parents=True, exist_ok=True)
    for source, name in (("id", "id_ed25519"), ("known_hosts", "known_hosts"), ("config", "config")):
        shutil.copyfile(keys / source, ssh / name)
        (ssh / name).chmod(0o600)
    for path in (home, ssh, *ssh.iterdir()):
        os.chown(path, uid, uid)
    ssh.chmod(0o700)
    return home
