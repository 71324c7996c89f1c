"""Refusals of an API server, with remedies."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from hprofiler.base import bounded_json as foreign_json
from hprofiler.base.errors import HprofilerError, NotYet
from hprofiler.base.text import printable

_LONGEST = 500
# The API server's message about roles; only the user and the rest are shown.
_DENIED = re.compile(
    r'.*User "(?P<who>[^"]+)" cannot (?P<verb>[a-z]+) resource "[^"]*" in API group "[^"]*"'
    r'( in the namespace "[^"]*"| at the cluster scope)?(?P<more>.*)'
)


class KubernetesError(HprofilerError):
    """The API server cannot be reached, refuses, or gives a bad answer."""


class NotRunning(KubernetesError, NotYet):
    """No pod that is asked for runs yet."""


class Forbidden(KubernetesError):
    """The login is valid, but not permitted to do this."""


class Gone(KubernetesError):
    """The object does not exist."""


class BadRequest(KubernetesError):
    """The API server rejects the request."""


class Need(NamedTuple):
    """Rights that a request needs. `verbs` are separated by commas; without `namespace`, in all of them."""

    verbs: str
    resource: str
    namespace: str | None
    group: str = ""

    @property
    def rule(self) -> str:
        """The rule of a role that allows it."""
        return f'- {{apiGroups: ["{self.group}"], resources: ["{self.resource}"], verbs: [{self.verbs}]}}'

    @property
    def where(self) -> str:
        return "in all namespaces" if self.namespace is None else f"in the namespace {self.namespace}"


class Said(NamedTuple):
    """A `Status` object: the API server's message."""

    code: int
    reason: str
    message: str


def said(body: bytes, code: int = 0) -> Said:
    """The message in an answer's body."""
    try:
        status: Any = foreign_json.read(body)
    except ValueError:
        status = None
    if not isinstance(status, dict):
        return Said(code, "", in_short(body[:_LONGEST].decode("utf-8", "replace")))
    reason, message = (status.get(name) for name in ("reason", "message"))
    return Said(
        code,
        reason if isinstance(reason, str) else "",
        in_short(message) if isinstance(message, str) else "",
    )


def in_short(text: str) -> str:
    """A server's or a library's message, shortened."""
    return printable(text[:_LONGEST]).strip()


def refusal(words: Said, server: str, need: Need) -> KubernetesError:
    """The error for a failed request."""
    message = words.message or words.reason or "no reason given"
    if words.code == 400:
        return BadRequest(f"{server} answered 400: {message}", "check whether `kubectl get pods` works")
    if words.code == 401:
        return KubernetesError(
            f"{server} does not accept the credentials: {message}",
            "log in again (the token may have expired), or choose another --context",
        )
    if words.code == 403:
        kind = "ClusterRole" if need.namespace is None else "Role"
        found = _DENIED.fullmatch(message)
        verb = found["verb"] if found else need.verbs.replace(",", " or")
        who, more = (f" {found['who']}", found["more"]) if found else ("", f": {message}")
        return Forbidden(
            f"{server} forbids{who} to {verb} {need.resource} {need.where}{more}",
            f"the smallest {kind} that allows it has the rule  {need.rule}",
        )
    if words.code == 404:
        return Gone(f"{server}: {message}", "check the name, and the namespace (-n)")
    if words.code == 410:
        return KubernetesError(f"{server}: the list expired while it was read: {message}", "try again")
    if words.code == 429:
        return KubernetesError(f"{server} is overloaded: {message}", "try again in a minute")
    return KubernetesError(
        f"{server} answered {words.code}: {message}", "check whether `kubectl get pods` works"
    )
