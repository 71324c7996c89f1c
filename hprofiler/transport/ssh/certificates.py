"""Certificates of hosts and users, as `ssh-keygen -s` makes them (OpenSSH's PROTOCOL.certkeys)."""

from __future__ import annotations

import base64
import binascii
import time
from collections.abc import Collection
from fnmatch import fnmatchcase
from pathlib import Path

import paramiko

SUFFIX = "-cert-v01@openssh.com"
# How many numbers a public key has.
_NUMBERS = {"ssh-ed25519": 1, "ssh-rsa": 2}
_HOST = 2
# Signatures that OpenSSH does not accept either.
_WEAK = "ssh-rsa"


class Certificate:
    """A certificate's content, unchecked. Raises ValueError if it cannot be read."""

    def __init__(self, blob: bytes) -> None:
        message = paramiko.Message(blob)
        try:
            kind = message.get_text()
            if not kind.endswith(SUFFIX):
                raise ValueError(f"{kind[:100]!r} is not a kind of certificate")
            self.kind = kind.removesuffix(SUFFIX)
            message.get_string()  # a random number
            key = paramiko.Message()
            key.add_string(self.kind)
            for _ in range(_NUMBERS.get(self.kind, 2)):
                key.add_string(message.get_string())
            self.key = key.asbytes()
            message.get_int64()  # its serial number
            self.type = message.get_int()
            message.get_string()  # its name
            names = paramiko.Message(message.get_string())
            self.names: list[str] = []
            while names.get_remainder():
                self.names.append(names.get_text())
            self.begin, self.end = message.get_int64(), message.get_int64()
            self.options = message.get_string()
            for _ in ("extensions", "reserved"):
                message.get_string()
            self.authority = message.get_string()
            self.signed = blob[: len(blob) - len(message.get_remainder())]
            self.signature = message.get_string()
        except (IndexError, UnicodeDecodeError, paramiko.SSHException) as error:
            raise ValueError("it is damaged") from error
        if not self.signature or message.get_remainder():
            raise ValueError("it is damaged")


def read_certificate(path: Path) -> tuple[Certificate, bytes]:
    """A certificate's file, and the certificate as it is sent. Raises OSError and ValueError."""
    words = path.read_text(encoding="utf-8", errors="replace").split()
    try:
        blob = base64.b64decode(words[1], validate=True)
    except (IndexError, binascii.Error) as error:
        raise ValueError("it is not a certificate") from error
    return Certificate(blob), blob


def why_not_trusted(blob: bytes, name: str, authorities: Collection[bytes]) -> str:
    """Why a host's certificate does not vouch for the host's key; "" if it does."""
    try:
        certificate = Certificate(blob)
    except ValueError as error:
        return str(error)
    if certificate.authority not in authorities:
        return "another authority signed it"
    if certificate.type != _HOST:
        return "it is for users, not for hosts"
    if certificate.names and not any(fnmatchcase(name, one.lower()) for one in certificate.names):
        return f"it is for {', '.join(certificate.names)[:200]}, not for {name}"
    if not certificate.begin <= time.time() < certificate.end:
        return "it is not valid now"
    if certificate.options:
        return "it has options that are not known"
    return "" if _is_signed(certificate) else "its signature is wrong"


def _is_signed(certificate: Certificate) -> bool:
    try:
        kind = paramiko.Message(certificate.authority).get_text()
        if paramiko.Message(certificate.signature).get_text() == _WEAK:
            return False
        authority = paramiko.PKey.from_type_string(kind, certificate.authority)
        return bool(authority.verify_ssh_sig(certificate.signed, paramiko.Message(certificate.signature)))
    except (paramiko.SSHException, paramiko.pkey.UnknownKeyType, ValueError):
        return False
