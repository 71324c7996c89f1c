"""Addresses of the ResourceManagers, from this machine's Hadoop configuration."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from hprofiler.base.errors import UsageError
from hprofiler.base.paths import is_file

MAX_FILE = 8 << 20
_VARIABLE = re.compile(r"\$\{([^${}\s]+)\}")
_DEPTH = 20
_LONGEST = 10_000  # of a value: longer ones are not addresses, and nested ones would fill the memory


def configured(environment: Mapping[str, str] = os.environ) -> tuple[str, ...] | None:
    """Base addresses from `yarn-site.xml` in HADOOP_CONF_DIR (or YARN_CONF_DIR), or None.

    Raises UsageError for a file that cannot be used.
    """
    folder = _folder(environment)
    if folder is None:
        return None
    file = folder / "yarn-site.xml"
    return resource_managers(properties_of(file), str(file))


def is_configured(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether there is such a file."""
    return _folder(environment) is not None


def _folder(environment: Mapping[str, str]) -> Path | None:
    for variable in ("YARN_CONF_DIR", "HADOOP_CONF_DIR"):
        folder = environment.get(variable)
        if folder and is_file(Path(folder) / "yarn-site.xml"):
            return Path(folder)
    return None


def properties_of(file: Path) -> dict[str, str]:
    # Imported late: a Ctrl-C during the import of its native half would be lost.
    import xml.etree.ElementTree as ElementTree

    try:
        if file.stat().st_size > MAX_FILE:
            raise UsageError(f"{file} is larger than {MAX_FILE >> 20} MiB")
        content = _decoded(file.read_bytes())
        if "<!ENTITY" in content:  # the parser would expand them without bound
            raise UsageError(
                f"{file} defines XML entities, which are not supported", "name the ResourceManager with -c"
            )
        root = ElementTree.fromstring(content)
    except OSError as error:
        raise UsageError(f"{file}: {error.strerror}", "name the ResourceManager with -c") from error
    except ElementTree.ParseError as error:
        raise UsageError(f"{file}: {error}", "name the ResourceManager with -c") from error
    pairs = ((item.findtext("name"), item.findtext("value") or "") for item in root.iter("property"))
    return {name.strip(): value.strip() for name, value in pairs if name and len(value) <= _LONGEST}


def _decoded(content: bytes) -> str:
    """The text as UTF-8; the declared encoding is ignored, because entities could hide in it."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return content.decode("latin-1")


def resource_managers(properties: Mapping[str, str], where: str) -> tuple[str, ...]:
    """Base addresses from Hadoop's properties; `where` says whose they are. UsageError if there are none."""
    https = value_of(properties, "yarn.http.policy").upper() == "HTTPS_ONLY"
    is_ha = value_of(properties, "yarn.resourcemanager.ha.enabled").lower() == "true"
    names = value_of(properties, "yarn.resourcemanager.ha.rm-ids") if is_ha else ""
    suffixes = [f".{name.strip()}" for name in names.split(",") if name.strip()] or [""]
    found = tuple(address for suffix in suffixes if (address := _address(properties, suffix, https)))
    if not found:
        reason = f"{where} does not say where the ResourceManager is"
        raise UsageError(reason, "name it with -c http://rm:8088")
    return found


def _address(properties: Mapping[str, str], suffix: str, https: bool) -> str:
    kind, port = ("https.address", 8090) if https else ("address", 8088)
    scheme = "https" if https else "http"
    address = value_of(properties, f"yarn.resourcemanager.webapp.{kind}{suffix}")
    host = value_of(properties, f"yarn.resourcemanager.hostname{suffix}")
    if address.startswith("0.0.0.0") or not address:  # it listens everywhere, or by default
        own_port = address.partition(":")[2] or port
        address = f"{host}:{own_port}" if host and host != "0.0.0.0" else ""
    return f"{scheme}://{address}" if address else ""


def value_of(properties: Mapping[str, str], name: str) -> str:
    """A property with `${other}` expanded, as Hadoop does."""
    value = properties.get(name, "")
    for _ in range(_DEPTH):
        filled = _VARIABLE.sub(lambda match: properties.get(match.group(1), match.group()), value)
        if len(filled) > _LONGEST:
            return ""
        if filled == value:
            break
        value = filled
    return "" if _VARIABLE.search(value) else value
