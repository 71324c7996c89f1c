"""Private keys and the ssh-agent: each is read once in a run, each passphrase asked for once."""

from __future__ import annotations

import base64
import binascii
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import paramiko

from hprofiler.base.paths import is_file, usual
from hprofiler.transport.ssh.certificates import Certificate, read_certificate
from hprofiler.transport.ssh.route import Route

AskPassphrase = Callable[[str], str | None]
_DEFAULT_KEYS = ("~/.ssh/id_ed25519", "~/.ssh/id_ecdsa", "~/.ssh/id_rsa")
_TRIES = 3


class Credential(NamedTuple):
    """A key to offer. If it is None, `name` says why."""

    name: str
    key: paramiko.PKey | None


class KeyRing:
    """The keys of a run. Thread-safe."""

    def __init__(self, ask_passphrase: AskPassphrase | None) -> None:
        """`ask_passphrase(prompt)` returns the passphrase, or None if the user gives none."""
        self._ask = ask_passphrase
        self._lock = threading.Lock()
        self._file_locks: dict[Path, threading.Lock] = {}
        self._files: dict[Path, Credential] = {}
        self._agents: dict[str, list[Credential]] = {}
        self._certificates: dict[Path, tuple[Certificate, bytes] | None] = {}

    def credentials(self, route: Route) -> Iterator[Credential]:
        """The credentials to offer to a host, in ssh's order. A key file is opened only when it is needed.

        A key with a certificate (CertificateFile) is offered with it first.
        """
        for credential in self._keys(route):
            for path in route.certificates:
                known = self._certificate(path)
                if known and credential.key and credential.key.asbytes() == known[0].key:
                    yield Credential(f"{credential.name} with {path}", _certified(credential.key, known[1]))
            yield credential

    def _keys(self, route: Route) -> Iterator[Credential]:
        held_keys = self._agent_keys(route.agent) if route.agent else []
        agent = {credential.key.asbytes(): credential for credential in held_keys if credential.key}
        for path in route.identities:
            held = agent.pop(_public_key(path), None)
            yield held or self._file_key(path)
        if not route.identities_only:
            yield from agent.values()
        if not route.identities:
            for path in filter(None, map(usual, _DEFAULT_KEYS)):
                if is_file(path) and _public_key(path) not in agent:
                    yield self._file_key(path)

    def _agent_keys(self, socket_path: str) -> list[Credential]:
        with self._lock:
            if socket_path not in self._agents:
                self._agents[socket_path] = _ask_agent(socket_path)
            return self._agents[socket_path]

    def _certificate(self, path: Path) -> tuple[Certificate, bytes] | None:
        """None for a file that cannot be read, or is none."""
        with self._lock:
            if path not in self._certificates:
                try:
                    self._certificates[path] = read_certificate(path)
                except (OSError, ValueError):
                    self._certificates[path] = None
            return self._certificates[path]

    def _file_key(self, path: Path) -> Credential:
        with self._lock:
            lock = self._file_locks.setdefault(path, threading.Lock())
        with lock:  # only one host asks for the passphrase
            if path not in self._files:
                self._files[path] = self._load(path)
            return self._files[path]

    def _load(self, path: Path) -> Credential:
        try:
            return Credential(f"key {path}", _with_certificate(_open_key(path, None), path))
        except paramiko.PasswordRequiredException:
            return self._unlock(path)
        except OSError as error:
            return Credential(f"key {path} ({error.strerror or error})", None)
        except (paramiko.SSHException, ValueError):
            return Credential(f"key {path} (not a private key that can be read)", None)

    def _unlock(self, path: Path) -> Credential:
        for _ in range(_TRIES):
            passphrase = self._ask(f"Passphrase for {path}: ") if self._ask else None
            if not passphrase:
                return Credential(f"key {path} (no passphrase given)", None)
            try:
                return Credential(f"key {path}", _with_certificate(_open_key(path, passphrase), path))
            except (paramiko.SSHException, ValueError):
                continue
        return Credential(f"key {path} (wrong passphrase)", None)


def _open_key(path: Path, passphrase: str | None) -> paramiko.PKey:
    """Opens a key of any type. Raises PasswordRequiredException, SSHException, ValueError and OSError."""
    failure: Exception = paramiko.SSHException("no key")
    for kind in (paramiko.Ed25519Key, paramiko.ECDSAKey, paramiko.RSAKey):
        try:
            key: paramiko.PKey = kind.from_private_key_file(str(path), passphrase)
            return key
        except paramiko.PasswordRequiredException:
            raise
        except (paramiko.SSHException, ValueError) as error:
            failure = error
    raise failure


def _with_certificate(key: paramiko.PKey, path: Path) -> paramiko.PKey:
    certificate = path.with_name(path.name + "-cert.pub")
    if is_file(certificate):
        key.load_certificate(str(certificate))
    return key


def _certified(key: paramiko.PKey, certificate: bytes) -> paramiko.PKey:
    """The same private key with a certificate."""
    made: paramiko.PKey = object.__new__(type(key))
    made.__dict__.update(key.__dict__)
    made.load_certificate(paramiko.Message(certificate))
    return made


def _ask_agent(socket_path: str) -> list[Credential]:
    agent = paramiko.agent.AgentSSH()
    try:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.connect(socket_path)
        agent._connect(connection)  # type: ignore[attr-defined]
        keys = agent.get_keys()
    except (paramiko.SSHException, OSError):
        return []
    one_at_a_time = threading.Lock()  # all hosts share the agent's socket
    return [
        Credential(f"agent key {key.comment or key.get_name()}", _locked(key, one_at_a_time)) for key in keys
    ]


def _locked(key: paramiko.AgentKey, lock: threading.Lock) -> paramiko.AgentKey:
    sign = key.sign_ssh_data

    def sign_locked(data: bytes, algorithm: Any = None) -> Any:
        with lock:
            return sign(data, algorithm)

    key.sign_ssh_data = sign_locked  # type: ignore[assignment,method-assign]
    return key


def _public_key(path: Path) -> bytes:
    """The public key beside a private one, or in its place; b"" if there is none."""
    try:
        public = path if path.suffix == ".pub" else path.with_name(path.name + ".pub")
        words = public.read_text(encoding="utf-8", errors="replace").split()
        return base64.b64decode(words[1])
    except (OSError, IndexError, binascii.Error, ValueError):
        return b""
