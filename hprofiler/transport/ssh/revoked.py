"""RevokedHostKeys of ssh_config: keys that no host may show. ssh trusts nobody where it cannot read them."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator
from pathlib import Path

from hprofiler.base.errors import HostError

_KRL = b"SSHKRL\n\0"
_REMEDY = "mend the file that RevokedHostKeys names in ssh_config"


def read_revoked(file: Path) -> frozenset[bytes]:
    """The keys of a text file, one public key a line. Raises HostError where they are not all known."""
    try:
        data = file.read_bytes()
    except OSError as error:
        reason = f"cannot read the revoked host keys in {file}: {error.strerror}"
        raise HostError("connect", reason, _REMEDY) from error
    if data.startswith(_KRL):
        reason = f"the revoked host keys in {file} are a KRL (ssh-keygen -k), which hprofiler cannot read"
        remedy = "name a text file with one revoked public key a line in RevokedHostKeys; --ssh-config FILE"
        raise HostError("connect", reason, f"{remedy} leaves your own ssh_config as it is")
    return frozenset(_keys(data.decode("utf-8", "replace"), file))


def _keys(text: str, file: Path) -> Iterator[bytes]:
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        try:
            yield base64.b64decode(words[1], validate=True)
        except (IndexError, binascii.Error, ValueError) as error:
            raise HostError("connect", f"{file}:{number} is no public key", _REMEDY) from error
