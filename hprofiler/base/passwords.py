"""Addresses and command lines without passwords."""

from __future__ import annotations

import re

HIDDEN = "***@"
_SCHEME = re.compile(r"\s*(?:[a-z][a-z0-9+.-]*://)?", re.IGNORECASE)
# A comma ends an address only before another scheme: it may be part of a password.
_NEXT = re.compile(r",(?=\s*https?://)", re.IGNORECASE)
# As in the agent's mask.rs: an address ends at a space or the next scheme.
_IN_TEXT = re.compile(r"(?<=//)(?:(?![a-z][a-z0-9+.-]{0,20}://)\S)*@", re.IGNORECASE)

_WORDS = ("password", "passwd", "passphrase", "secret", "token", "credential", "apikey", "accesskey")
_ENDINGS = ("key", r"(?<!by)(?<!com)pass", "pwd", "auth")
_LIKE_WORDS = "|".join("[-_.]*".join(word) for word in _WORDS)
# As in mask.rs: name and value may be quoted, as in JSON, with spaces around the sign.
_NAME = rf"(?:(?:{_LIKE_WORDS})[\w.-]*|{'|'.join(_ENDINGS)})[\"'\\]*"
_VALUE = r"(?=[^\s&])(?:([\"'])(?:\\.|(?!\2)[^\\])*\2?)?[^\s&]*"
_NAMED = re.compile(rf"({_NAME}\s*[=:]\s*){_VALUE}", re.IGNORECASE)


def hide_logins(addresses: str) -> str:
    """A comma-separated list of addresses; `***@` replaces everything up to the last `@` of each.

    An `@` in a path hides too much, but never too little.
    """
    return ",".join(map(_hidden, _NEXT.split(addresses)))


def shown_url(url: str) -> str:
    """A URL for messages: without password and query."""
    return re.split(r"[?#]", hide_logins(url).replace(HIDDEN, ""))[0][:500]


def hide_in_word(word: str, addresses: str | None) -> str:
    """A word of a command line, with these addresses hidden."""
    told = word.replace(addresses, hide_logins(addresses)) if addresses else word
    return _IN_TEXT.sub(HIDDEN, told)


def hide_values(word: str) -> str:
    """A word with the values of `password=`, `token:`, `"secret": ` and the like hidden."""
    return _NAMED.sub(r"\1***", word)


def _hidden(address: str) -> str:
    scheme = _SCHEME.match(address)
    begin = scheme.end() if scheme else 0
    _, at, place = address[begin:].rpartition("@")
    return address[:begin] + HIDDEN + place if at else address
