"""An API server: bounded requests, and commands in containers."""

from __future__ import annotations

import builtins
import json
import ssl
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import partial
from typing import Any, NamedTuple

from lightkube.config.client_adapter import ConnectionParams
from lightkube.core.exceptions import ConfigError

from hprofiler.base import bounded_json as foreign_json
from hprofiler.base.background import TooLate, within
from hprofiler.base.errors import UsageError
from hprofiler.base.passwords import shown_url
from hprofiler.kubernetes import Access
from hprofiler.kubernetes.configuration import Configuration, configured
from hprofiler.kubernetes.http import httpx
from hprofiler.kubernetes.login import PluginLogin
from hprofiler.kubernetes.problems import KubernetesError, Need, in_short, refusal, said
from hprofiler.kubernetes.websocket import WebSocket, opening_headers, upgraded

MAX_ANSWER = 64 << 20
MAX_REFUSAL = 64 << 10
MAX_LIST = 128 << 20
LIST_SECONDS = 120.0
PAGE = 500
MAX_PAGES = 100
CONNECT_SECONDS = 10.0
_REACHABLE = "check the address, the VPN and $HTTPS_PROXY, and whether kubectl works"
_ADDRESSES = "check server and proxy-url in the kubeconfig, $HTTPS_PROXY, $HTTP_PROXY and $ALL_PROXY"

_SWITCHING = 101

Params = Mapping[str, str]


class TooLong(Exception):
    """The answer is too long."""


class Packed(Exception):
    """The answer is compressed, so its length is not known."""


class Bounds(NamedTuple):
    """Limits of an answer: bytes, and seconds for the whole request."""

    size: int
    seconds: float


class Cluster:
    """Sends requests with bounds in bytes and time. Thread-safe.

    `namespace` and `user` (a name or None) are the context's, `server` its address for messages.
    """

    def __init__(self, access: Access) -> None:
        """Raises HprofilerError for a bad configuration and a failed login."""
        configuration = configured(access.kubeconfig, access.context)
        self.namespace: str = configuration.single.namespace
        self.server = in_short(shown_url(configuration.single.cluster.server).rstrip("/"))
        self.user = configuration.single.context.user
        self._name = configuration.cluster.get("tls-server-name")
        self._timeout = access.timeout
        self._client = _client(configuration, access.timeout)
        # The client would read the whole body of a refused login: `_send` follows the login itself.
        self._login = self._client.auth or httpx.Auth()
        self._no_login: Any = httpx.Auth() if self._client.auth else httpx.USE_CLIENT_DEFAULT

    def get(self, path: str, parameters: Params, need: Need) -> Any:
        """The JSON at a path. Raises KubernetesError."""
        return self._parsed(self._body("GET", path, parameters, need))

    def patch(self, path: str, change: Mapping[str, Any], need: Need) -> Any:
        """Change an object (strategic merge). Raises KubernetesError."""
        return self._parsed(self._body("PATCH", path, {}, need, change))

    def list(self, path: str, parameters: Params, need: Need) -> builtins.list[dict[str, Any]]:
        """The objects of a list, fetched in pages. Raises KubernetesError."""
        items: list[dict[str, Any]] = []
        page: dict[str, str] = {**parameters, "limit": str(PAGE)}
        size, end = 0, time.monotonic() + LIST_SECONDS
        for _ in range(MAX_PAGES):
            body = self._body("GET", path, page, need)
            size += len(body)
            # Pages are bounded one by one, but there may be many.
            if size > MAX_LIST:
                reason = f"{self.server} lists more than {MAX_LIST >> 10} KiB"
                raise KubernetesError(reason, "narrow the selector")
            if time.monotonic() > end:
                reason = f"{self.server} took over {LIST_SECONDS:g} s for one list"
                raise KubernetesError(reason, "narrow the selector")
            answer = self._parsed(body)
            found = answer.get("items") if isinstance(answer, dict) else None
            if not isinstance(found, list):
                raise KubernetesError(f"{self.server} answered with something that is not a list", _REACHABLE)
            items += [item for item in found if isinstance(item, dict)]
            metadata = answer.get("metadata")
            more = metadata.get("continue") if isinstance(metadata, dict) else None
            if not more:
                return items
            page["continue"] = str(more)
        raise KubernetesError(
            f"{self.server} lists more than {PAGE * MAX_PAGES} objects", "narrow the selector"
        )

    def websocket(self, path: str, parameters: Sequence[tuple[str, str]], need: Need) -> WebSocket:
        """A connection for commands in containers. Raises KubernetesError."""
        bounds = Bounds(MAX_REFUSAL, self._timeout)
        with self._translated(bounds):
            request = self._request("GET", path, list(parameters), headers=opening_headers())
            response, body = self._send(request, bounds)
            if response.status_code == _SWITCHING:
                return upgraded(response)
        raise refusal(said(body, response.status_code), self.server, need)

    def _body(
        self, verb: str, path: str, parameters: Params, need: Need, change: Mapping[str, Any] | None = None
    ) -> bytes:
        content = None if change is None else json.dumps(change).encode()
        headers = {"Accept": "application/json"}
        if content is not None:
            headers["Content-Type"] = "application/strategic-merge-patch+json"
        bounds = Bounds(MAX_ANSWER, self._timeout)
        with self._translated(bounds):
            request = self._request(verb, path, dict(parameters), content=content, headers=headers)
            response, body = self._send(request, bounds)
        if response.status_code != 200:
            response.close()
            raise refusal(said(body, response.status_code), self.server, need)
        return body

    def _parsed(self, body: bytes) -> Any:
        try:
            return foreign_json.read(body)
        except ValueError as error:
            raise KubernetesError(
                f"{self.server} answered with something that is not JSON", _REACHABLE
            ) from error

    def _request(self, verb: str, path: str, parameters: Any, **more: Any) -> httpx.Request:
        extensions: dict[str, Any] = {"sni_hostname": self._name} if isinstance(self._name, str) else {}
        extensions["timeout"] = self._client.timeout.as_dict()
        return self._client.build_request(verb, path, params=parameters, extensions=extensions, **more)

    def _send(self, request: httpx.Request, bounds: Bounds) -> tuple[httpx.Response, bytes]:
        """An answer and its body. An upgraded connection stays open, others are closed.

        Raises TooLate, TooLong, Packed, and errors of the library and the login.
        """
        flow = self._login.sync_auth_flow(request)
        try:
            request = next(flow)
            while True:
                work = partial(self._send_once, request, bounds)
                answer, body = within(bounds.seconds, work)
                try:
                    request = flow.send(answer)
                except StopIteration:
                    return answer, body
        finally:
            flow.close()

    def _send_once(self, request: httpx.Request, bounds: Bounds) -> tuple[httpx.Response, bytes]:
        end = time.monotonic() + bounds.seconds
        answer = self._client.send(request, stream=True, auth=self._no_login)
        if answer.status_code == _SWITCHING:
            if time.monotonic() > end:  # the caller has given up
                answer.close()
            return answer, b""
        with closing(answer):
            if answer.headers.get("Content-Encoding", "identity").lower() != "identity":
                raise Packed
            body = bytearray()
            for piece in answer.iter_raw():
                body += piece
                if len(body) > bounds.size:
                    raise TooLong
                if time.monotonic() > end:
                    raise TooLate
            return answer, bytes(body)

    @contextmanager
    def _translated(self, bounds: Bounds) -> Iterator[None]:
        try:
            yield
        except TooLong:
            reason = f"{self.server} answered with more than {bounds.size >> 10} KiB"
            raise KubernetesError(reason, "narrow the selector") from None
        except Packed:
            reason = f"{self.server} compresses its answers, although hprofiler asked it not to"
            raise KubernetesError(
                reason, "check the proxies between this machine and the API server"
            ) from None
        except httpx.ConnectTimeout as error:
            reason = f"{self.server} cannot be reached within {CONNECT_SECONDS:g} s"
            raise KubernetesError(reason, _REACHABLE) from error
        except (TooLate, httpx.TimeoutException) as error:
            reason = f"{self.server} did not answer within {bounds.seconds:g} s"
            raise KubernetesError(reason, _REACHABLE) from error
        except (httpx.InvalidURL, httpx.LocalProtocolError):  # the message may contain part of a secret
            raise KubernetesError(
                f"{self.server}: its address or the credentials contain characters that cannot be sent"
            ) from None
        except (httpx.HTTPError, ConfigError, OSError, ValueError) as error:
            raise self._unreachable(error) from error

    def _unreachable(self, error: BaseException) -> KubernetesError:
        cause: BaseException | None = error
        while cause is not None:
            if isinstance(cause, ssl.SSLError):
                why = getattr(cause, "verify_message", "") or cause.reason or str(cause)
                remedy = "check the kubeconfig's certificate-authority, and that this is the right cluster"
                return KubernetesError(f"{self.server}: TLS: {in_short(str(why))}", remedy)
            cause = cause.__cause__ or cause.__context__
        why = in_short(str(error)) or type(error).__name__
        return KubernetesError(f"{self.server} cannot be reached: {why}", _REACHABLE)

    def close(self) -> None:
        """Close idle connections."""
        self._client.close()


def _client(configuration: Configuration, timeout: float) -> httpx.Client:
    """The HTTP client of a context: TLS, login and proxy from the kubeconfig."""
    parameters = _credentials(configuration, timeout)
    # One connection per container: each command keeps its own.
    unlimited = httpx.Limits(max_connections=None)
    try:
        return httpx.Client(**parameters, limits=unlimited, headers={"Accept-Encoding": "identity"})
    except ImportError as error:
        reason = "a SOCKS proxy needs a library that is not installed (socksio)"
        raise UsageError(reason, "pip install socksio, or use an http:// proxy") from error
    except (httpx.InvalidURL, ValueError, TypeError):  # the message may contain part of a password
        raise UsageError("the address of the API server or of its proxy is not valid", _ADDRESSES) from None


def _credentials(configuration: Configuration, timeout: float) -> dict[str, Any]:
    single, proxy = configuration.single, configuration.cluster.get("proxy-url")
    patience = httpx.Timeout(timeout, connect=CONNECT_SECONDS)
    try:
        made = ConnectionParams(timeout=patience, proxy=proxy if isinstance(proxy, str) else None)
        parameters: dict[str, Any] = made.httpx_params(single)
        plugin = configuration.user.get("exec")
        if isinstance(plugin, dict):
            login = PluginLogin(plugin, configuration.cluster, single.cluster.server)
            login.certify(parameters["verify"])
            parameters["auth"] = login
        return parameters
    except ConfigError as error:
        raise UsageError(f"the kubeconfig cannot be used: {in_short(str(error))}") from error
    except (OSError, ValueError, TypeError) as error:  # bad or missing certificates and keys
        where = getattr(error, "filename", None)
        why = in_short(f"{where}: {error.strerror}" if isinstance(error, OSError) and where else str(error))
        raise UsageError(
            f"the kubeconfig's credentials cannot be used: {why}", "check whether kubectl works"
        ) from error
