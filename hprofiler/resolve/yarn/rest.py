"""YARN's REST interfaces: finds the active ResourceManager and returns its JSON.

Errors of `requests` become YarnError only here. Answers are bounded and not trusted.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import unquote, urljoin, urlsplit, urlunsplit

import requests

from hprofiler.base import bounded_json as foreign_json
from hprofiler.base.background import TooLate, within
from hprofiler.base.errors import HprofilerError, NotYet, UsageError
from hprofiler.base.passwords import shown_url as shown
from hprofiler.base.text import printable
from hprofiler.resolve.yarn import spnego

CONNECT_SECONDS = 5.0
ANSWER_SECONDS = 10.0
_BODY_SECONDS = 60.0
_HOPS = 5
_PIECE = 1 << 16
_BYTES_OF_VALUE = 16  # the least, since names are longer than values
# Pages of a ResourceManager. In other paths, `cluster` may belong to a gateway.
_PAGES = "about|apps?|appattempt|cluster|container|errors-and-warnings|nodelabels|nodes|queue|scheduler"
_BELOW_BASE = re.compile(rf"/(?:(?:ws/v1|ui2|proxy)(?:/.*)?|cluster(?:/(?:{_PAGES})(?:/.*)?)?)$")
_STANDBY = re.compile(rb"standby RM|active RM", re.IGNORECASE)
_REFRESH = re.compile(r"\s*[0-9]+\s*;\s*url=(\S+)", re.IGNORECASE)
_SEVERAL = "name them all: --yarn http://rm1:8088,http://rm2:8088"
_REACHABLE = "check that it is up and can be reached from here"


class YarnError(HprofilerError):
    """YARN did not answer as requested (exit code 4)."""


class NotRunning(YarnError, NotYet):
    """The application, or its containers, do not run yet."""


class NotFound(YarnError):
    """The server answered 404. `said` is YARN's own message, or ""."""

    def __init__(self, reason: str, remedy: str, said: str) -> None:
        super().__init__(reason, remedy)
        self.said = said


@dataclass(frozen=True)
class Bounds:
    """Limits of an answer: bytes, and seconds for the whole request.

    With `stays`, redirects to unknown servers are refused.
    """

    size: int
    seconds: float
    stays: bool = False


OF_MANAGER = Bounds(64 << 20, 30.0)
OF_NODE = Bounds(4 << 20, 10.0)
OF_DRIVER = Bounds(16 << 20, 20.0, stays=True)  # its first answer may take over 10 s
"""A driver runs its user's code. This is enough for ten thousand executors."""


class _Session(requests.Session):
    """Does not follow redirects: the library would ask any server, and read the whole body of a redirect."""

    def get_redirect_target(self, resp: requests.Response) -> None:
        return None


class Body:
    """The body of an answer, read piece by piece; `url` is the address that gave it."""

    def __init__(self, answer: requests.Response, where: str) -> None:
        self.url = answer.url
        self._where = where
        self._pieces = answer.iter_content(_PIECE)
        self._ahead = b""

    def read(self, size: int) -> bytes:
        """At most so many bytes; none at the end. Raises YarnError if the connection is lost."""
        try:
            piece = self._ahead or next(self._pieces, b"")
        except (OSError, ValueError) as error:
            raise YarnError(f"{self._where}: the connection was lost: {_cause(error)}", _REACHABLE) from error
        self._ahead = piece[size:]
        return piece[:size]


class Rest:
    """Gets JSON from servers; one per run, thread-safe."""

    def __init__(self, ca_file: str | None = None) -> None:
        self._session = _Session()
        self._known: set[str] = set()
        self._session.headers["Accept"] = "application/json"
        # Compressed data has no bound when unpacked.
        self._session.headers["Accept-Encoding"] = "identity"
        adapter = requests.adapters.HTTPAdapter(pool_connections=64, pool_maxsize=64)
        for scheme in ("http://", "https://"):
            self._session.mount(scheme, adapter)
        self._verify = (
            ca_file or True
        )  # passed with each request, because $REQUESTS_CA_BUNDLE would override the session's
        self._spnego = spnego.negotiation()

    def know(self, urls: Iterable[str]) -> None:
        """Addresses of ResourceManagers; they may redirect to each other."""
        self._known.update(map(_server, urls))

    def get(self, url: str, parameters: Mapping[str, str] | None = None, bounds: Bounds = OF_MANAGER) -> Any:
        """The JSON at `url`. Raises NotFound for 404, else YarnError."""
        return self.get_dated(url, parameters, bounds)[0]

    def get_dated(
        self, url: str, parameters: Mapping[str, str] | None, bounds: Bounds
    ) -> tuple[Any, str | None]:
        """The same, and the `Date` of the answer."""
        try:
            answer, body = within(bounds.seconds, lambda: self._followed(url, parameters, bounds))
        except TooLate:
            reason = f"{shown(url)} took over {bounds.seconds:g} s to answer"
            raise YarnError(reason, "check the load of that server") from None
        _check(answer, body, self._spnego is not None)
        try:
            content = foreign_json.read(body, bounds.size // _BYTES_OF_VALUE)
            return content, answer.headers.get("Date")
        except ValueError as error:
            remedy = "name the base address of the ResourceManager's web interface with -c"
            raise YarnError(
                f"{shown(answer.url)} answered with something that is not JSON", remedy
            ) from error

    @contextmanager
    def opened(
        self, url: str, parameters: Mapping[str, str] | None = None, anywhere: bool = False
    ) -> Iterator[Body]:
        """The body of the answer at `url`, of any length. Raises NotFound for 404, else YarnError.

        Redirects are followed on the same server; `anywhere`: to any, without the login, as WebHDFS needs.
        """
        there, login = url, _of_url(url)
        for _ in range(_HOPS):
            try:
                answer = self._session.get(
                    there,
                    params=parameters,
                    headers={"Accept": "*/*"},  # a history server refuses to send a log as JSON
                    timeout=(CONNECT_SECONDS, _BODY_SECONDS),
                    stream=True,
                    verify=self._verify,
                    auth=login or (self._spnego and self._spnego()),
                )
            except spnego.KerberosError as error:
                raise YarnError(f"{shown(there)} requires Kerberos: {error.reason}", error.remedy) from error
            except (OSError, ValueError) as error:
                raise YarnError(f"{shown(there)} cannot be reached: {_cause(error)}", _REACHABLE) from error
            with answer:
                if answer.is_redirect:
                    elsewhere = _joined(there, answer.headers["Location"])
                    if _server(elsewhere) != _server(there):
                        if not anywhere:
                            reason = f"{shown(url)} redirects to another server, {shown(elsewhere)}"
                            raise YarnError(reason, "name that address")
                        login = None
                    there, parameters = elsewhere, None
                    continue
                if answer.status_code != 200:
                    _check(answer, next(answer.iter_content(_PIECE), b""), self._spnego is not None)
                _refuse_compressed(answer)
                yield Body(answer, shown(there))
                return
        raise YarnError(f"{shown(url)} redirects too often", "check the address")

    def _followed(
        self, url: str, parameters: Mapping[str, str] | None, bounds: Bounds
    ) -> tuple[requests.Response, bytes]:
        """The final answer after redirects, also those of a standby to the active ResourceManager."""
        answer, body = self._fetch(url, parameters, bounds, _of_url(url))
        named = False
        for _ in range(_HOPS):
            elsewhere = answer.headers["Location"] if answer.is_redirect else None
            elsewhere = elsewhere or (None if named else _named_active(answer, body))
            if not elsewhere:
                if bounds is OF_MANAGER:
                    self.know([answer.url])
                return answer, body
            named = named or not answer.is_redirect
            there = _joined(answer.url, elsewhere)
            if bounds.stays and _server(there) not in self._known:
                reason = f"{shown(url)} redirects to {shown(there)}, which is not a known ResourceManager"
                raise YarnError(reason, "check the address")
            # Another server must not get the password; a change to TLS on the same host is fine.
            is_another = cast(Any, self._session).should_strip_auth(url, there)
            login = None if is_another else _of_url(url)
            answer, body = self._fetch(there, None, bounds, login)
        raise YarnError(f"{shown(url)} redirects too often", _SEVERAL)

    def _fetch(
        self,
        url: str,
        parameters: Mapping[str, str] | None,
        bounds: Bounds,
        login: tuple[str, str] | None,
    ) -> tuple[requests.Response, bytes]:
        seconds = bounds.seconds if bounds.stays else ANSWER_SECONDS
        try:
            with self._session.get(
                url,
                params=parameters,
                timeout=(CONNECT_SECONDS, seconds),
                stream=True,
                verify=self._verify,
                auth=login or (self._spnego and self._spnego()),
            ) as answer:
                return answer, b"" if answer.is_redirect else _body(answer, bounds.size)
        except spnego.KerberosError as error:
            reason = f"{shown(url)} requires Kerberos: {_in_short(error.reason)}"
            raise YarnError(reason, error.remedy) from error
        except requests.exceptions.SSLError as error:
            raise YarnError(
                f"{shown(url)}: TLS: {_cause(error)}", "name the CA with --yarn-ca FILE"
            ) from error
        except requests.exceptions.ConnectTimeout as error:
            reason = f"{shown(url)} cannot be reached within {CONNECT_SECONDS:g} s"
            raise YarnError(reason, _REACHABLE) from error
        except requests.exceptions.Timeout as error:
            raise YarnError(f"{shown(url)} did not answer within {seconds:g} s", _REACHABLE) from error
        except (OSError, ValueError) as error:
            raise YarnError(f"{shown(url)} cannot be reached: {_cause(error)}", _REACHABLE) from error


class ResourceManager:
    """The active ResourceManager of a cluster; found at the first request, and again if it changes."""

    def __init__(self, rest: Rest, bases: Iterable[str]) -> None:
        self.rest = rest
        self._bases = list(bases)
        rest.know(self._bases)
        self._lock = threading.Lock()

    @property
    def base(self) -> str:
        """The address of the one that answered last, for messages."""
        return shown(self._bases[0])

    @property
    def scheme(self) -> str:
        """http or https."""
        return urlsplit(self._bases[0]).scheme

    def get(self, path: str, parameters: Mapping[str, str] | None = None) -> Any:
        """The JSON below `/ws/v1/cluster`, from the first ResourceManager that answers."""
        return self.ask(f"/ws/v1/cluster{path}", parameters)

    def ask(self, path: str, parameters: Mapping[str, str] | None = None, bounds: Bounds = OF_MANAGER) -> Any:
        """The JSON at a path below the base. YARN's own 404 is final."""
        return self.ask_dated(path, parameters, bounds)[0]

    def ask_dated(
        self, path: str, parameters: Mapping[str, str] | None, bounds: Bounds
    ) -> tuple[Any, str | None]:
        """The same, and the `Date` of the answer."""
        failures: list[YarnError] = []
        for base in self._bases:
            try:
                answer = self.rest.get_dated(base + path, parameters, bounds)
            except YarnError as error:
                if isinstance(error, NotFound) and error.said:
                    raise
                failures.append(error)
                continue
            with self._lock:
                self._bases = [base, *(other for other in self._bases if other != base)]
            return answer
        if len(failures) == 1 or all(isinstance(failure, NotFound) for failure in failures):
            raise failures[0]
        reasons = "; ".join(failure.reason for failure in failures)
        raise YarnError(f"no ResourceManager answers: {reasons}", failures[0].remedy)


def base_urls(text: str, option: str) -> tuple[str, ...]:
    """The base addresses of a comma-separated list, also copied from a browser or a script.

    `rm:8088`, `http://rm:8088/cluster/apps`, `http://rm:8088/ui2/#/cluster-overview`, a tracking URL and
    `http://rm:8088/ws/v1/cluster/nodes` are all `http://rm:8088`; a gateway's path before that is kept.
    """
    words = [word.strip() for word in text.split(",") if word.strip()]
    # A comma may be part of a password, so a part must not be shown alone.
    told = shown(text) if "@" in text else ""
    bases = tuple(dict.fromkeys(_base(word, option, told or shown(word)) for word in words))
    if not bases:
        raise UsageError(f"{option} is empty", f"write {option} http://rm:8088")
    return bases


def _base(word: str, option: str, told: str) -> str:
    wrong = UsageError(
        f"{option}: {told!r} is not an address of a ResourceManager", f"write {option} http://rm:8088"
    )
    try:
        parts = urlsplit(word if "://" in word else f"http://{word}")
        known = parts.scheme in ("http", "https") and parts.hostname and (parts.port or True)
    except ValueError:
        raise wrong from None
    if not known or not word.isprintable() or " " in word:
        raise wrong
    path = _BELOW_BASE.sub("", parts.path.rstrip("/"))
    return urlunsplit((parts.scheme, parts.netloc, path, "", ""))


def _refuse_compressed(answer: requests.Response) -> None:
    if answer.headers.get("Content-Encoding", "identity").strip().lower() not in ("", "identity"):
        raise YarnError(f"{shown(answer.url)} answered with compressed data", "check the address")


def _body(answer: requests.Response, most: int) -> bytes:
    _refuse_compressed(answer)
    pieces, size = [], 0
    for piece in answer.iter_content(_PIECE):
        pieces.append(piece)
        size += len(piece)
        if size > most:
            raise YarnError(
                f"{shown(answer.url)} answered with more than {most >> 20} MiB", "look into its log"
            )
    return b"".join(pieces)


def _is_standby(body: bytes) -> bool:
    return body[:1] not in (b"{", b"[") and _STANDBY.search(body[:4096]) is not None


def _named_active(answer: requests.Response, body: bytes) -> str | None:
    """The active ResourceManager, from a header of a standby: `Refresh: 3; url=http://rm2:8088/…`."""
    refresh = _REFRESH.match(answer.headers.get("Refresh", "")) if _is_standby(body) else None
    return refresh.group(1) if refresh else None


def _joined(url: str, elsewhere: str) -> str:
    """The target of a redirect. Raises YarnError if it is not an address."""
    try:
        there = urljoin(url, elsewhere)
        if there.startswith(("http://", "https://")) and _server(there):
            return there
    except ValueError:
        pass
    raise YarnError(f"{shown(url)} redirects to something that is not an address", _SEVERAL)


def _server(url: str) -> str:
    """The server of an address, without the user. Raises ValueError."""
    parts = urlsplit(url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    return f"{parts.scheme}://{parts.hostname}:{port}"


def _check(answer: requests.Response, body: bytes, kerberos: bool) -> None:
    where, status = shown(answer.url), answer.status_code
    if _is_standby(body):
        raise YarnError(f"{where} is a standby ResourceManager, and no active one is known", _SEVERAL)
    if status == 404:
        said = _said(body)
        raise NotFound(f"{where}: {said or 'not found'}", "check that -c names a ResourceManager", said)
    if status in (401, 403) and spnego.was_tried(answer):
        said = _said(body) or _in_short(answer.reason)
        remedy = "check with klist whose ticket it is, and whether that user has access"
        raise YarnError(f"{where} refuses the Kerberos ticket: {said}", remedy)
    if spnego.is_asked(answer):
        remedy = "run kinit" if kerberos else "install hprofiler[kerberos] and run kinit"
        raise YarnError(f"{where} requires Kerberos", remedy)
    if status in (401, 403):
        said = _said(body)
        reason = f"{where} refuses: {said}" if said else f"{where} requires a login ({status})"
        raise YarnError(reason, "use -c https://user:password@gateway/…, or kinit")
    if status != 200:
        raise YarnError(
            f"{where} answered {status}: {_said(body) or _in_short(answer.reason)}", "look into its log"
        )


def _said(body: bytes) -> str:
    """A server's own message, from YARN's JSON."""
    try:
        message = foreign_json.read(body)["RemoteException"]["message"]
    except (ValueError, KeyError, TypeError):
        return ""
    return _in_short(message)


def _in_short(words: object) -> str:
    return printable(str(words)[:300])


def _cause(error: BaseException) -> str:
    """The innermost reason of an error; the outer ones only repeat it."""
    cause = error
    for _ in range(10):
        inner = [getattr(cause, "reason", None), *cause.args, cause.__cause__, cause.__context__]
        deeper = next((one for one in inner if isinstance(one, BaseException) and one is not cause), None)
        if deeper is None:
            break
        cause = deeper
    return _in_short(getattr(cause, "strerror", None) or cause)


def _of_url(url: str) -> tuple[str, str] | None:
    """User and password in an address."""
    parts = urlsplit(url)
    return (unquote(parts.username), unquote(parts.password or "")) if parts.username else None
