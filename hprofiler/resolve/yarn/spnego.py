"""Kerberos over HTTP (SPNEGO), with the library of `hprofiler[kerberos]`.

The library makes and checks tokens. This module sends them, once per request, and does not read the body of a
refusal, which may be endless.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, cast
from urllib.parse import urlsplit

import requests

SCHEME = "Negotiate"
_ASKED = re.compile(r"\bnegotiate\b", re.IGNORECASE)
_NO_CREDENTIALS = 7  # GSS_S_NO_CRED of RFC 2744


class KerberosError(Exception):
    """There is no ticket, or the server did not prove its identity."""

    def __init__(self, reason: str, remedy: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.remedy = remedy


def negotiation() -> Callable[[], requests.auth.AuthBase] | None:
    """Authentication for one request; None if the library is not installed.

    One per request, because the library keeps state per server, which threads would mix up.
    """
    try:
        from requests_gssapi import OPTIONAL, HTTPSPNEGOAuth
    except ImportError:
        return None
    return lambda: _Negotiation(HTTPSPNEGOAuth(mutual_authentication=OPTIONAL))


def is_asked(response: requests.Response) -> bool:
    """Whether a server requires Kerberos."""
    asked = response.headers.get("WWW-Authenticate", "")
    return response.status_code == 401 and _ASKED.search(asked) is not None


def was_tried(response: requests.Response) -> bool:
    """Whether the request had a token."""
    return str(response.request.headers.get("Authorization", "")).startswith(f"{SCHEME} ")


class _Negotiation(requests.auth.AuthBase):
    def __init__(self, tokens: Any) -> None:
        self._tokens = tokens

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        cast(Any, request).register_hook("response", self._answered)
        return request

    def _answered(self, response: Any, **options: Any) -> requests.Response:
        """If the server asks for a token, repeat the request with one."""
        if not is_asked(response):
            return response  # type: ignore[no-any-return]
        response.request.headers["Authorization"] = self._token(response)
        response.close()
        answer: requests.Response = response.connection.send(response.request, **options)
        answer.history.append(response)
        if answer.status_code < 400 and _ASKED.search(answer.headers.get("WWW-Authenticate", "")):
            self._check_server(answer)
        return answer

    def _token(self, response: requests.Response) -> str:
        try:
            return str(self._tokens.generate_request_header(response, _host(response)))
        except requests.RequestException as error:
            raise KerberosError(*_explained(error)) from error
        except ValueError as error:  # not base64
            raise KerberosError("it sent something that is not a token", "check the address") from error

    def _check_server(self, answer: requests.Response) -> None:
        try:
            context = self._tokens.context[_host(answer)]
            # Otherwise the next use of the context would report a wrong token.
            context.__DEFER_STEP_ERRORS__ = False
            known = self._tokens.authenticate_server(answer) and context.complete
        except ValueError:  # not base64
            known = False
        if not known:
            reason = "the server did not prove its identity"
            raise KerberosError(reason, "check the address")


def _host(response: requests.Response) -> str:
    return urlsplit(response.url).hostname or ""


def _explained(error: BaseException) -> tuple[str, str]:
    """Kerberos' own message, and a remedy."""
    if getattr(error.__context__, "maj_code", 0) >> 16 & 0xFF == _NO_CREDENTIALS:
        return "there is no ticket", "run kinit"
    words = re.sub(r".*Minor \(\d+\): |, Token:.*", "", str(error), flags=re.DOTALL)
    return words, "run kinit; if that does not help, check that Kerberos knows the host by this name"
