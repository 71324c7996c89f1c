"""Addresses and command lines without passwords."""

from __future__ import annotations

import re

HIDDEN = "***@"
_SCHEME = re.compile(r"\s*(?:[a-z][a-z0-9+.-]*://)?", re.IGNORECASE)
# A comma ends an address only before another scheme: it may be part of a password.
_NEXT = re.compile(r",(?=\s*https?://)", re.IGNORECASE)
# As in the agent's mask.rs: an address ends at a space or the next scheme.
_IN_TEXT = re.compile(r"(?<=//)(?:(?![a-z][a-z0-9+.-]{0,20}://)\S)*@", re.IGNORECASE)

# Names, ends of names and tokens are those of mask.rs.
_WORDS = (
    *("pass-word", "pass-wd", "pass-phrase", "pass-code", "secret", "token", "credential", "signature"),
    *("api-key", "access-key", "account-key", "private-key", "encryption-key(?!size|gen)", "azure-sas"),
)
_SHORT_WORDS = (
    *("(?<!by)(?<!com)pass(?![a-z])", "pwd(?![a-z]|.dir)", "(?<![a-z])pw(?![a-z])"),
    r"(?<=[./])sas\b",
)
# Keys of data, which names of files have too: /key=5/part-0
_OF_DATA = ("mon", "partition", "sort", "primary", "foreign", "join", "group", "row")
_KEY = "".join(f"(?<!{word})(?<!{word}[-_.])" for word in _OF_DATA) + "(?<!/)key"
_ENDINGS = (_KEY, "pw", "auth", "authorization", "cookie", "creds", "jwt", "sas", "sig", "[.-]pat")
_TOKENS = ("eyJ", "gh[pos]_", "github_pat_", "glpat-", "xox[bp]-", "AIza", r"ya29\.", r"hvs\.")
_LIKE_WORDS = "|".join((*(word.replace("-", "[-_.]?") for word in _WORDS), *_SHORT_WORDS))
# Name and value may be quoted, as in JSON, with spaces around the sign.
_NAME = rf"(?:(?:{_LIKE_WORDS})[\w.-]{{0,99}}|{'|'.join(_ENDINGS)})[\"'\\]*"
_VALUE = r"(?=\S)&*(?:([\"'])(?:\\.|(?!\2)[^\\])*\2?)?[^\s&]*"
_NAMED = re.compile(rf"({_NAME}\s*[=:]\s*){_VALUE}", re.IGNORECASE)
# `--password hunter2`, but not `-Dtoken Main`
_OPTION = re.compile(rf"((?<!\S)-(?![DX])[\w.-]{{0,99}}?{_NAME}\s+)(?![\s=:])\S+", re.IGNORECASE)
_BEARER = re.compile(r"(\b(?:bearer|basic)\s+)\S+", re.IGNORECASE)
_TOKEN = re.compile(rf"(?<![\w./+-])(?:{'|'.join(_TOKENS)})[\w./+-]{{16,}}")
_OF_ORACLE = re.compile(r"(?<=jdbc:oracle:)([^\s/@]*/)\S*@")


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
    return _IN_TEXT.sub(HIDDEN, _OF_ORACLE.sub(rf"\1{HIDDEN}", told))


def hide_values(word: str) -> str:
    """A word with the values of `password=`, `token:`, `--secret ` and the like hidden, and known tokens."""
    for pattern in (_BEARER, _TOKEN, _OPTION, _NAMED):
        word = pattern.sub("***" if pattern is _TOKEN else r"\1***", word)
    return word


def has_secret(text: str) -> bool:
    """Whether a text has a value or a login that would be hidden."""
    return hide_in_word(hide_values(text), None) != text


def _hidden(address: str) -> str:
    scheme = _SCHEME.match(address)
    begin = scheme.end() if scheme else 0
    _, at, place = address[begin:].rpartition("@")
    return address[:begin] + HIDDEN + place if at else address
