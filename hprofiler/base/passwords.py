"""Addresses and command lines without passwords."""

from __future__ import annotations

import re

HIDDEN = "***@"
_SCHEME = re.compile(r"\s*(?:[a-z][a-z0-9+.-]*://)?", re.IGNORECASE)
# A comma ends an address only before another scheme: it may be part of a password.
_NEXT = re.compile(r",(?=\s*https?://)", re.IGNORECASE)
# An address ends at a space or the next scheme. A user without a password is a secret only in web addresses.
_TO_AT = r"(?:(?![a-z][a-z0-9+.-]{0,20}://)\S)*@"
_IN_TEXT = re.compile(
    rf"(?:(?<=http://)|(?<=https://)|(?<=//)(?=[^\s@]{{0,300}}[:/])){_TO_AT}", re.IGNORECASE
)
# `kim:password@host`, but not `image:tag@sha256:…`
_PLAIN = re.compile(r"(?<![\w./:@-])(?!jdbc:)[\w.-]+:[^\s/@][^\s/]{0,200}@(?!sha256:)")
_OF_ORACLE = re.compile(r"(?<=jdbc:oracle:)([^\s/@]*/)\S*@")

# What has none of these has no name of a secret: they are found much faster than the patterns below.
_ROOTS = (
    *("pass", "pw", "secret", "token", "cred", "key", "sas", "auth", "cookie", "jwt", "sig", ".pat", "-pat"),
)

# The names, tokens and programs are those of mask.rs; both are tested with tests/secrets.json.
_WORDS = (
    *("pass-word", "pass-wd", "pass-phrase", "pass-code", "secret", "token", "credential", "signature"),
    *("api-key", "access-key", "account-key", "private-key", "encryption-key", "azure-sas"),
)
_SHORT_WORDS = (
    *("(?<!by)(?<!com)pass(?![a-z]|.dir)", "pwd(?![a-z]|.dir)", "(?<![a-z])pw(?![a-z]|.dir)"),
    r"(?<=[./])sas(?![a-z]|.dir)",
)
# Keys of data, which names of files have too: /key=5/part-0
_OF_DATA = ("partition", "sort", "foreign", "join", "group", "row")
_KEY = "".join(f"(?<!{word})(?<!{word}[-_.])" for word in _OF_DATA) + "(?<!mon)(?<!/)key"
_ENDINGS = (_KEY, "pw", "auth", "authorization", "cookie", "creds", "jwt", "sas", "sig", "[.-]pat")
_TOKENS = (*("eyJ", "gh[pos]_", "github_pat_", "glpat-", "xox[bp]-", "AIza", r"ya29\.", r"hvs\."),)
_LIKE_WORDS = "|".join((*(word.replace("-", "[-_.]?") + "(?!size|gen)" for word in _WORDS), *_SHORT_WORDS))
# Name and value may be quoted, as in JSON, with spaces around the sign.
_NAME = rf"(?:(?:{_LIKE_WORDS})[\w.-]{{0,99}}|(?:{'|'.join(_ENDINGS)})[-_.]*)[\"'\\]*"
_SIGNED = re.compile(rf"{_NAME}\s*[=:]\s*", re.IGNORECASE)
_VALUE = re.compile(r"(?=\S)&*(?:([\"'])(?:\\.|(?!\1)[^\\])*\1?)?[^\s&]*")
_OF_PLACE = re.compile(r"[\w.-]*$")
# `--password hunter2`, but not `-Dtoken Main`
_OPTION = re.compile(rf"((?<!\S)-(?![DX])[\w.-]{{0,99}}?{_NAME}\s+)(?![\s=:])\S+", re.IGNORECASE)
_HEADER = re.compile(r"(\bbearer\s+|[=:][\"']?\s*basic\s+)\S+", re.IGNORECASE)
_TOKEN = re.compile(rf"(?<![\w./+-])(?:{'|'.join(_TOKENS)})[\w./+-]{{16,}}")
# Programs with a login in an option, attached or as the next word. The end of a path or a class counts.
_LOGINS = tuple(
    (
        tuple(re.findall(r"\w[\w-]+", programs)),
        re.compile(rf"(?<![^\s\"'])(?:[^\s\"']*[/.])?(?:{programs})[^\s./]*(?=\s)", re.IGNORECASE),
        re.compile(login),
    )
    for programs, login in (
        ("mysql|mariadb|mongo|sshpass|beeline|login|7z", r"(?<!\S)(-p\s*)\S+"),
        ("sqlcmd|mosquitto_|zip", r"(?<!\S)(-P\s*)\S+"),
        ("redis-cli", r"(?<!\S)(-a\s*)\S+"),
        ("ldap", r"(?<!\S)(-w\s*)\S+"),
        ("smbclient", r"(?<!\S)(-U\s*)\S+"),
        ("curl", r"(?<!\S)(-[A-Za-z]*[uU]\s*|--(?:proxy-)?user\s+)\S+"),
        (r"(?:sqlplus|sqlldr|rman|expdp|impdp)(?=\s)", r"(?<!\S)(?![/@.-])([^\s/]*/)\S+"),
    )
)


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
    if "@" not in told:
        return told
    told = _IN_TEXT.sub(HIDDEN, _OF_ORACLE.sub(rf"\1{HIDDEN}", told))
    return _PLAIN.sub(HIDDEN, told)


def hide_values(word: str) -> str:
    """A word with the values of `password=`, `token:`, `--secret ` and the like hidden, and known tokens."""
    folded = word.casefold()
    if "bearer" in folded or "basic" in folded:
        word = _HEADER.sub(r"\1***", word)
    word = _TOKEN.sub("***", word)
    may_name = any(root in folded for root in _ROOTS)
    word = _OPTION.sub(r"\1***", word) if may_name else word
    for names, program, login in _LOGINS:
        if any(name in folded for name in names) and (found := program.search(word)):
            word = word[: found.end()] + login.sub(r"\1***", word[found.end() :])
    if not may_name:
        return word
    shown, at = [], 0
    while name := _SIGNED.search(word, at):
        value = None if _is_place(name) else _VALUE.match(word, name.end())
        shown += [word[at : name.end()], "***" if value else ""]
        at = value.end() if value else name.end()
    return "".join(shown) + word[at:]


def _is_place(name: re.Match[str]) -> bool:
    """Whether a colon follows a host before its port, or a file in a class path."""
    sign = name[0].rstrip()
    before = name.string[max(0, name.start() - 300) : name.start()]
    before = _OF_PLACE.sub("", before)
    between_paths = before.endswith("/") and name.string.startswith("/", name.end())
    return sign.endswith(":") and (before.endswith("//") or between_paths or sign.endswith(".jar:"))


def has_secret(text: str) -> bool:
    """Whether a text has a value or a login that would be hidden."""
    return hide_in_word(hide_values(text), None) != text


def _hidden(address: str) -> str:
    scheme = _SCHEME.match(address)
    begin = scheme.end() if scheme else 0
    _, at, place = address[begin:].rpartition("@")
    return address[:begin] + HIDDEN + place if at else address
