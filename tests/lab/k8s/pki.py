"""The cluster's certificates: one authority, and what it vouches for."""

from __future__ import annotations

import datetime
import ipaddress
from collections.abc import Sequence
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

LIFE = datetime.timedelta(days=3650)


class Authority:
    """A certificate authority; its files, ca.crt and those it vouches for, lie in `folder`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name("lab")
        public = self._key.public_key()
        basic = x509.BasicConstraints(ca=True, path_length=None)
        own = _builder(self._name, self._name, public).add_extension(basic, critical=True)
        identifier = x509.SubjectKeyIdentifier.from_public_key(public)
        self._identifier = x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identifier)
        self._write("ca", own.add_extension(identifier, critical=False))

    @property
    def certificate(self) -> bytes:
        return (self.folder / "ca.crt").read_bytes()

    def vouch(self, file: str, name: str, organization: str = "", hosts: Sequence[str] = ()) -> None:
        """FILE.key and FILE.crt for `name`, for both ends of a connection; `hosts`: where it is found."""
        key = ec.generate_private_key(ec.SECP256R1())
        builder = _builder(_name(name, organization), self._name, key.public_key())
        both = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH])
        builder = builder.add_extension(both, critical=False).add_extension(self._identifier, critical=False)
        if hosts:
            listed = x509.SubjectAlternativeName([_host(host) for host in hosts])
            builder = builder.add_extension(listed, critical=False)
        self._write(file, builder)
        write_key(self.folder / f"{file}.key", key)

    def _write(self, file: str, builder: x509.CertificateBuilder) -> None:
        signed = builder.sign(self._key, hashes.SHA256())
        (self.folder / f"{file}.crt").write_bytes(signed.public_bytes(serialization.Encoding.PEM))


def signing_key(path: Path) -> None:
    """The key that service accounts' tokens are signed with, and beside it, as PATH.pub, its public half."""
    key = ec.generate_private_key(ec.SECP256R1())
    write_key(path, key)
    public = key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    path.with_suffix(".pub").write_bytes(public)


def write_key(path: Path, key: ec.EllipticCurvePrivateKey) -> None:
    text = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )
    path.touch(mode=0o600)
    path.write_bytes(text)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.timezone.utc)
    begin = now - datetime.timedelta(hours=1)  # clocks of test machines jump
    serial = x509.random_serial_number()
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(key)
    return builder.serial_number(serial).not_valid_before(begin).not_valid_after(now + LIFE)


def _name(common: str, organization: str = "") -> x509.Name:
    parts = [x509.NameAttribute(NameOID.COMMON_NAME, common)]
    if organization:
        parts.append(x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization))
    return x509.Name(parts)


def _host(text: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(text))
    except ValueError:
        return x509.DNSName(text)
