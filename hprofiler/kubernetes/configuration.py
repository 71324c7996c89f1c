"""Cluster and user: kubeconfig files, read as by kubectl, or a pod's service account."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from lightkube.config.kubeconfig import KubeConfig, SingleConfig
from lightkube.config.models import User
from lightkube.core.exceptions import ConfigError

from hprofiler.base.errors import UsageError
from hprofiler.base.paths import at_home, is_file, usual

MAX_FILE = 8 << 20
_LISTS = ("clusters", "contexts", "users")
_REMEDY = "name a file with --kubeconfig or $KUBECONFIG, and a context with --context"
# Keys with paths relative to the file: section -> member -> keys.
_PATHS = {
    "clusters": ("cluster", ("certificate-authority",)),
    "users": ("user", ("client-certificate", "client-key", "tokenFile")),
}


class Configuration(NamedTuple):
    """One context. `cluster` and `user` are raw, for members that `single` does not know."""

    single: SingleConfig
    cluster: Mapping[str, Any]
    user: Mapping[str, Any]


def configured(
    kubeconfig: str | None, context: str | None, environment: Mapping[str, str] = os.environ
) -> Configuration:
    """The chosen context. Raises UsageError."""
    files = _files(kubeconfig, environment)
    if not files:
        return _service_account(context, environment)
    merged = _merged(files)
    try:
        single = KubeConfig.from_dict(merged, fname=files[0]).get(context)
    except ConfigError as error:
        raise UsageError(f"{_named(files)}: {error}{_known(merged, context)}", _REMEDY) from error
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UsageError(f"{_named(files)} is not valid: {error!r}", _REMEDY) from error
    if single is None:
        raise UsageError(f"{_named(files)} has no current context", _REMEDY)
    return Configuration(
        single._replace(user=single.user or User()),
        _entry(merged, "clusters", "cluster", single.context.cluster),
        _entry(merged, "users", "user", single.context.user),
    )


def _files(kubeconfig: str | None, environment: Mapping[str, str]) -> list[Path]:
    """The files to read, the first has priority; none for the pod's service account."""
    if kubeconfig is not None:
        return [at_home(kubeconfig)]
    named = [Path(name) for name in environment.get("KUBECONFIG", "").split(os.pathsep) if name]
    if named:
        there = [path for path in named if is_file(path)]
        return there or named[:1]
    file = usual("~/.kube/config")
    return [file] if file and is_file(file) else []


def _service_account(context: str | None, environment: Mapping[str, str]) -> Configuration:
    if context is not None or "KUBERNETES_SERVICE_HOST" not in environment:
        raise UsageError("no Kubernetes cluster is configured: there is no ~/.kube/config", _REMEDY)
    try:
        single = KubeConfig.from_service_account().get()
    except (ConfigError, OSError, KeyError) as error:
        raise UsageError(f"this pod has no service account: {error}", _REMEDY) from error
    assert single is not None
    return Configuration(single, {}, {})


def _merged(files: list[Path]) -> dict[str, Any]:
    """Merge all files; the first entry of a name and the first current context count."""
    merged: dict[str, Any] = {name: {} for name in _LISTS}
    for file in files:
        read = _read(file)
        for name in _LISTS:
            for entry in read.get(name) or []:
                if isinstance(entry, dict) and isinstance(entry.get("name"), str):
                    merged[name].setdefault(entry["name"], _absolute(name, entry, file.absolute().parent))
        current = read.get("current-context")
        if current and "current-context" not in merged:
            merged["current-context"] = current
    return {**merged, **{name: list(merged[name].values()) for name in _LISTS}}


def _read(file: Path) -> dict[str, Any]:
    try:
        with file.open("rb") as opened:
            content = opened.read(MAX_FILE + 1)
    except OSError as error:
        raise UsageError(f"{file}: {error.strerror}", _REMEDY) from error
    if len(content) > MAX_FILE:
        raise UsageError(f"{file} is larger than {MAX_FILE >> 20} MiB: not a kubeconfig", _REMEDY)
    try:
        read = yaml.safe_load(content)
    except Exception as error:  # a value that does not fit its tag (`!!bool maybe`) raises various errors
        raise UsageError(f"{file} is not YAML: {' '.join(str(error).split())}", _REMEDY) from error
    if not isinstance(read, dict) or not all(isinstance(read.get(name) or [], list) for name in _LISTS):
        raise UsageError(f"{file} is not a kubeconfig", _REMEDY)
    return read


def _absolute(section: str, entry: dict[str, Any], folder: Path) -> dict[str, Any]:
    """An entry with absolute paths."""
    member, keys = _PATHS.get(section, ("", ()))
    inner = entry.get(member)
    if not isinstance(inner, dict):
        return entry
    paths: dict[str, Any] = {
        key: str(folder / inner[key]) for key in keys if isinstance(inner.get(key), str) and inner[key]
    }
    plugin = inner.get("exec")
    if isinstance(plugin, dict) and "/" in str(plugin.get("command", "")):
        paths["exec"] = {**plugin, "command": str(folder / plugin["command"])}
    return {**entry, member: {**inner, **paths}}


def _entry(merged: Mapping[str, Any], section: str, member: str, name: str | None) -> Mapping[str, Any]:
    found = next((entry.get(member) for entry in merged[section] if entry["name"] == name), None)
    return found if isinstance(found, dict) else {}


def _known(merged: Mapping[str, Any], context: str | None) -> str:
    if context is None:
        return ""
    names = ", ".join(entry["name"] for entry in merged["contexts"][:20])
    return f"; it has {names}" if names else "; it has none"


def _named(files: list[Path]) -> str:
    return os.pathsep.join(str(file) for file in files)
