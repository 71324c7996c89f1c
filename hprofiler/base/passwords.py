"""Addresses as people may read them: with whoever logs in left out."""

from __future__ import annotations

import re

HIDDEN = "***@"
_SCHEME = re.compile(r"\s*(?:[a-z][a-z0-9+.-]*://)?", re.IGNORECASE)
# A comma ends an address where another one begins with a scheme: it may as well be part of a password.
_NEXT = re.compile(r",(?=\s*https?://)", re.IGNORECASE)
# As in the agent's mask.rs: an address ends where a blank or the next one's scheme begins.
_IN_TEXT = re.compile(r"(?<=//)(?:(?![a-z][a-z0-9+.-]{0,20}://)\S)*@", re.IGNORECASE)

_WORDS = ("password", "passwd", "passphrase", "secret", "token", "credential", "apikey", "accesskey")
_ENDINGS = ("key", r"(?<!by)(?<!com)pass", "pwd", "auth")
_LIKE_WORDS = "|".join("[-_.]*".join(word) for word in _WORDS)
# As there, too: name and value may stand in quotes, as in JSON, with blanks beside the sign.
_NAME = rf"(?:(?:{_LIKE_WORDS})[\w.-]*|{'|'.join(_ENDINGS)})[\"'\\]*"
_VALUE = r"(?=[^\s&])(?:([\"'])(?:\\.|(?!\2)[^\\])*\2?)?[^\s&]*"
_NAMED = re.compile(rf"({_NAME}\s*[=:]\s*){_VALUE}", re.IGNORECASE)


def hide_logins(addresses: str) -> str:
    """A comma list of addresses, with or without schemes; `***@` stands for all up to an address's last `@`.

    That hides too much of an address with an `@` in its path, and never too little.
    """
    return ",".join(map(_hidden, _NEXT.split(addresses)))


def hide_in_word(word: str, addresses: str | None) -> str:
    """A word of a command line, in which one option gave these addresses."""
    told = word.replace(addresses, hide_logins(addresses)) if addresses else word
    return _IN_TEXT.sub(HIDDEN, told)


def hide_values(word: str) -> str:
    """A word without what follows `password=`, `token:`, `"secret": ` and the like."""
    return _NAMED.sub(r"\1***", word)


def _hidden(address: str) -> str:
    scheme = _SCHEME.match(address)
    begin = scheme.end() if scheme else 0
    _, at, place = address[begin:].rpartition("@")
    return address[:begin] + HIDDEN + place if at else address
