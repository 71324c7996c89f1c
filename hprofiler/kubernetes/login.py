"""Credential plugins: programs in a kubeconfig that print a token or a certificate."""

from __future__ import annotations

import json
import os
import ssl
import subprocess
import tempfile
import threading
from collections.abc import Generator, Mapping
from typing import Any

from hprofiler.base import bounded_json as foreign_json
from hprofiler.base.errors import UsageError
from hprofiler.kubernetes.http import httpx
from hprofiler.kubernetes.problems import KubernetesError, in_short

_GROUP = "client.authentication.k8s.io"
_VERSIONS = tuple(f"{_GROUP}/{version}" for version in ("v1", "v1beta1", "v1alpha1"))
MAX_ANSWER = 1 << 20
MAX_SECONDS = 300.0
"""Enough for a login in a browser."""


class PluginLogin(httpx.Auth):
    """Runs the plugin at once, and again when the token expires."""

    def __init__(self, plugin: Mapping[str, Any], cluster: Mapping[str, Any], server: str) -> None:
        """`plugin` and `cluster` as in the kubeconfig. Raises HprofilerError."""
        self._command, self._environment = _command(plugin, cluster, server)
        self._hint = plugin.get("installHint")
        self._lock = threading.Lock()
        self._failure: KubernetesError | None = None
        self._status = self._log_in()

    def certify(self, context: ssl.SSLContext) -> None:
        """Load the certificate that the plugin printed, if any."""
        certificate, key = (self._status.get(f"client{name}Data") for name in ("Certificate", "Key"))
        if not isinstance(certificate, str) or not isinstance(key, str):
            return
        with tempfile.NamedTemporaryFile() as file:  # readable by the owner only
            file.write(f"{certificate}\n{key}\n".encode())
            file.flush()
            try:
                context.load_cert_chain(file.name)
            except (ssl.SSLError, OSError) as error:
                raise KubernetesError(
                    f"{self._command[0]} returned no usable certificate: {error}"
                ) from error

    def sync_auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        """For httpx: sends the token, and a new one once if it is refused."""
        token = self._token()
        if token is None:
            yield request
            return
        request.headers["Authorization"] = f"Bearer {token}"
        answer = yield request
        if answer.status_code == 401:
            request.headers["Authorization"] = f"Bearer {self._renewed(token)}"
            yield request

    def _token(self) -> str | None:
        token = self._status.get("token")
        return token if isinstance(token, str) else None

    def _renewed(self, refused: str) -> str | None:
        """A token other than the refused one. One thread fetches it for all."""
        with self._lock:
            if self._failure is not None:
                raise self._failure
            if self._token() == refused:
                try:
                    self._status = self._log_in()
                    if self._token() is None:
                        reason = (
                            f"{self._command[0]}, the kubeconfig's login program, printed no token this time"
                        )
                        raise KubernetesError(reason, "check whether kubectl works")
                except KubernetesError as error:
                    self._failure = error
                    raise
            return self._token()

    def _log_in(self) -> dict[str, Any]:
        program = self._command[0]
        try:
            done = subprocess.run(
                self._command,
                env=self._environment,
                stdout=subprocess.PIPE,
                check=False,
                timeout=MAX_SECONDS,
            )
        except subprocess.TimeoutExpired:  # which contains the arguments and the output
            reason = f"{program}, the login program of the kubeconfig, took over {MAX_SECONDS:g} s"
            raise KubernetesError(reason, "check whether kubectl works") from None
        except OSError as error:
            hint = f": {in_short(self._hint)}" if isinstance(self._hint, str) else ""
            raise KubernetesError(
                f"cannot run {program}, the login program of the kubeconfig: {error.strerror}",
                f"install it{hint}",
            ) from error
        if done.returncode:
            reason = f"{program}, the login program of the kubeconfig, ended with status {done.returncode}"
            raise KubernetesError(reason, f"read what {program} wrote, and check whether kubectl works")
        return _status(done.stdout, program)


def _command(
    plugin: Mapping[str, Any], cluster: Mapping[str, Any], server: str
) -> tuple[list[str], dict[str, str]]:
    """The plugin's command line and environment."""
    version, program = plugin.get("apiVersion"), plugin.get("command")
    arguments = plugin.get("args") or []
    if version not in _VERSIONS or not isinstance(program, str) or not isinstance(arguments, list):
        known = ", ".join(_VERSIONS)
        raise UsageError(f"the kubeconfig's exec plugin has the version {version!r} (known: {known})")
    environment = dict(os.environ)
    for variable in plugin.get("env") or []:
        if isinstance(variable, dict):
            environment[str(variable.get("name"))] = str(variable.get("value"))
    asked: dict[str, Any] = {"interactive": os.isatty(0)}
    if plugin.get("provideClusterInfo") is True:
        asked["cluster"] = {**cluster, "server": server}
    information = {"apiVersion": version, "kind": "ExecCredential", "spec": asked}
    environment["KUBERNETES_EXEC_INFO"] = json.dumps(information)
    return [program, *map(str, arguments)], environment


def _status(answer: bytes, program: str) -> dict[str, Any]:
    try:
        status = foreign_json.read(answer[:MAX_ANSWER])["status"]
    except (ValueError, KeyError, TypeError) as error:
        reason = f"{program}, the login program of the kubeconfig, printed no credentials"
        raise KubernetesError(reason, "check whether kubectl works") from error
    if not isinstance(status, dict):
        raise KubernetesError(f"{program} printed no credentials", "check whether kubectl works")
    return status
